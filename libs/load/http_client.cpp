#define CURL_DISABLE_TYPECHECK 1
#include "load/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "base/dynlib.h"
#include "base/file.h"
#include "wire/clock.h"

// curl.h wraps these in macros that count arguments; the table wants the functions.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

namespace llmprof::load {
namespace {

#define LLMPROF_CURL_CALLS(X)                          \
  X(global_init, curl_global_init)                     \
  X(version, curl_version)                             \
  X(easy_init, curl_easy_init)                         \
  X(easy_cleanup, curl_easy_cleanup)                   \
  X(easy_setopt, curl_easy_setopt)                     \
  X(easy_getinfo, curl_easy_getinfo)                   \
  X(easy_strerror, curl_easy_strerror)                 \
  X(slist_append, curl_slist_append)                   \
  X(slist_free_all, curl_slist_free_all)               \
  X(multi_init, curl_multi_init)                       \
  X(multi_cleanup, curl_multi_cleanup)                 \
  X(multi_setopt, curl_multi_setopt)                   \
  X(multi_assign, curl_multi_assign)                   \
  X(multi_add_handle, curl_multi_add_handle)           \
  X(multi_remove_handle, curl_multi_remove_handle)     \
  X(multi_socket_action, curl_multi_socket_action)     \
  X(multi_info_read, curl_multi_info_read)
LLMPROF_API(CurlApi, LLMPROF_CURL_CALLS)

constexpr std::uint64_t kNever = UINT64_MAX;
constexpr std::size_t kPassEvents = 64;  // then the schedule is looked at again
constexpr std::size_t kMostLags = 4 << 20;
constexpr long kMostKeptConnections = 1 << 16;

const Result<CurlApi>& curl_api() {
  static const Result<CurlApi> api = [] {
    const std::string names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    Result<CurlApi> loaded = base::load_api<CurlApi>(names, CurlApi::symbols());
    if (loaded) loaded->global_init(CURL_GLOBAL_DEFAULT);
    if (!loaded) loaded.error() = {ErrorCode::kUnsupported, "libcurl is not installed: " + loaded.error().message,
                                   "apt install libcurl4"};
    return loaded;
  }();
  return api;
}

// Loopback never goes through a proxy of the environment, which would measure that.
bool is_loopback(std::string_view url) {
  const std::size_t begin = url.find("://");
  const std::string_view host = begin == std::string_view::npos ? url : url.substr(begin + 3);
  return host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]");
}

// Every connection is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Failure failure_of(CURLcode code, long connect_errno, bool answered) {
  switch (code) {
    case CURLE_OK:
      return Failure::kNone;
    case CURLE_COULDNT_CONNECT:
      return connect_errno == ECONNREFUSED ? Failure::kRefused : Failure::kUnreachable;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return Failure::kUnreachable;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
      return answered ? Failure::kCut : Failure::kReset;
    case CURLE_OPERATION_TIMEDOUT:
      return Failure::kTimeout;
    default:
      return answered ? Failure::kCut : Failure::kClient;
  }
}

}  // namespace

std::string_view status_of(Failure failure) {
  switch (failure) {
    case Failure::kNone:
      return "finished";
    case Failure::kRefused:
      return "refused";
    case Failure::kUnreachable:
      return "unreachable";
    case Failure::kReset:
      return "reset";
    case Failure::kCut:
      return "cut";
    case Failure::kTimeout:
      return "timeout";
    case Failure::kAborted:
      return "aborted";
    case Failure::kClient:
      break;
  }
  return "client error";
}

struct HttpClient::State {
  struct Transfer {
    State* owner = nullptr;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::string body;
    Id id = 0;
    long status = 0;
    bool event_stream = false;
    std::uint64_t last_ns = 0;  // when it was begun, or its last byte came
    char error[CURL_ERROR_SIZE] = {};
  };

  State(const CurlApi& api, const HttpSettings& wanted) : curl(api), settings(wanted) {}
  ~State() {
    for (auto& [id, transfer] : transfers) {
      curl.multi_remove_handle(multi, transfer->easy);
      free(*transfer);
    }
    for (const auto& transfer : idle) free(*transfer);
    if (multi != nullptr) curl.multi_cleanup(multi);
    for (const int descriptor : {epoll, timer}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<void> open();
  std::unique_ptr<Transfer> made();
  void free(Transfer& transfer) const {
    curl.slist_free_all(transfer.headers);
    curl.easy_cleanup(transfer.easy);
  }
  void sleep_until(std::uint64_t until_ns, std::uint64_t now_ns);
  void act(int socket, int mask) {
    int still = 0;
    curl.multi_socket_action(multi, socket, mask, &still);
  }
  void act_on_timer(std::uint64_t now_ns) {
    if (due_ns > now_ns) return;
    due_ns = kNever;
    act(CURL_SOCKET_TIMEOUT, 0);
  }
  void collect();
  Outcome outcome_of(Transfer& transfer, CURLcode code) const;
  void finish(Id id, const Outcome& outcome);
  void give_up_silent(std::uint64_t now_ns);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* state, void* known);
  static int on_timer(CURLM*, long ms, void* state);
  static std::size_t on_data(char* bytes, std::size_t size, std::size_t count, void* transfer);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* transfer);

  CurlApi curl;
  HttpSettings settings;
  CURLM* multi = nullptr;
  int epoll = -1, timer = -1;
  std::uint64_t due_ns = kNever;      // libcurl's own timer
  std::uint64_t armed_ns = 0;         // when `timer` goes off
  std::uint64_t looked_ns = 0;        // for silent ones
  std::uint64_t caught_up_ns = 0;     // all that was there before has been read
  Handler* handler = nullptr;
  std::unordered_map<Id, std::unique_ptr<Transfer>> transfers;
  std::vector<std::unique_ptr<Transfer>> idle;
  std::vector<std::uint32_t> lags_ns;
};

Result<void> HttpClient::State::open() {
  raise_descriptor_limit();
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  multi = curl.multi_init();
  epoll = ::epoll_create1(EPOLL_CLOEXEC);
  timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (multi == nullptr || epoll < 0 || timer < 0) return base::errno_error(ErrorCode::kIo, "cannot wait for answers", errno);
  epoll_event event{.events = EPOLLIN, .data = {.fd = timer}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
  curl.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &State::on_socket);
  curl.multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
  curl.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &State::on_timer);
  curl.multi_setopt(multi, CURLMOPT_TIMERDATA, this);
  curl.multi_setopt(multi, CURLMOPT_MAXCONNECTS, kMostKeptConnections);
  return {};
}

int HttpClient::State::on_socket(CURL*, curl_socket_t socket, int what, void* state, void* known) {
  auto& self = *static_cast<State*>(state);
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(self.epoll, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{.events = 0, .data = {.fd = socket}};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  if (::epoll_ctl(self.epoll, known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) != 0)
    ::epoll_ctl(self.epoll, known == nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  if (known == nullptr) self.curl.multi_assign(self.multi, socket, &self);  // any value: epoll has it
  return 0;
}

int HttpClient::State::on_timer(CURLM*, long ms, void* state) {
  auto& self = *static_cast<State*>(state);
  self.due_ns = ms < 0 ? kNever : wire::now_ns() + static_cast<std::uint64_t>(ms) * 1'000'000;
  return 0;
}

std::size_t HttpClient::State::on_data(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  transfer.last_ns = wire::now_ns();
  transfer.owner->handler->data(transfer.id, static_cast<int>(transfer.status), transfer.event_stream,
                                {bytes, size * count}, transfer.last_ns);
  return size * count;
}

// "HTTP/1.1 200 OK", then "Name: value" lines. Interim answers (100) begin again.
std::size_t HttpClient::State::on_header(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  const std::string_view line(bytes, size * count);
  transfer.last_ns = wire::now_ns();
  constexpr std::string_view kType = "content-type:", kStream = "text/event-stream";
  if (line.starts_with("HTTP/")) {
    transfer.event_stream = false;
    const std::size_t space = line.find(' ');
    transfer.status = space == std::string_view::npos ? 0 : std::strtol(bytes + space, nullptr, 10);
  } else if (line.size() > kType.size() && ::strncasecmp(bytes, kType.data(), kType.size()) == 0) {
    std::string_view value = line.substr(kType.size());
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    transfer.event_stream = value.size() >= kStream.size() && ::strncasecmp(value.data(), kStream.data(), kStream.size()) == 0;
  }
  return line.size();
}

std::unique_ptr<HttpClient::State::Transfer> HttpClient::State::made() {
  if (!idle.empty()) {
    std::unique_ptr<Transfer> transfer = std::move(idle.back());
    idle.pop_back();
    return transfer;
  }
  auto transfer = std::make_unique<Transfer>();
  transfer->owner = this;
  CURL* const easy = transfer->easy = curl.easy_init();
  curl.easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
  curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
  curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, &State::on_data);
  curl.easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, &State::on_header);
  curl.easy_setopt(easy, CURLOPT_HEADERDATA, transfer.get());
  curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings.timeout_ns / 1'000'000));
  if (is_loopback(settings.base_url)) curl.easy_setopt(easy, CURLOPT_PROXY, "");
  if (!settings.ca_file.empty()) curl.easy_setopt(easy, CURLOPT_CAINFO, settings.ca_file.c_str());
  if (!settings.verify_tls) {
    curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  return transfer;
}

Outcome HttpClient::State::outcome_of(Transfer& transfer, CURLcode code) const {
  long connect_errno = 0;
  curl.easy_getinfo(transfer.easy, CURLINFO_OS_ERRNO, &connect_errno);
  Outcome out{failure_of(code, connect_errno, transfer.status != 0), static_cast<int>(transfer.status), ""};
  if (code != CURLE_OK) out.error = *transfer.error != '\0' ? transfer.error : curl.easy_strerror(code);
  return out;
}

void HttpClient::State::finish(Id id, const Outcome& outcome) {
  const auto found = transfers.find(id);
  if (found == transfers.end()) return;
  std::unique_ptr<Transfer> transfer = std::move(found->second);
  transfers.erase(found);
  curl.multi_remove_handle(multi, transfer->easy);
  curl.slist_free_all(transfer->headers);
  transfer->headers = nullptr;
  idle.push_back(std::move(transfer));
  handler->ended(id, outcome, wire::now_ns());
}

void HttpClient::State::collect() {
  int left = 0;
  while (const CURLMsg* message = curl.multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    const CURLcode code = message->data.result;  // the message does not outlive the handle's removal
    finish(transfer->id, outcome_of(*transfer, code));
  }
}

// libcurl knows a limit for the whole, and one in bytes per second; a stream may last, but not be silent.
void HttpClient::State::give_up_silent(std::uint64_t now_ns) {
  if (now_ns - looked_ns < std::min<std::uint64_t>(settings.timeout_ns / 10, 1'000'000'000)) return;
  looked_ns = now_ns;
  std::vector<Id> silent;
  for (const auto& [id, transfer] : transfers) {
    if (now_ns > transfer->last_ns + settings.timeout_ns) silent.push_back(id);
  }
  for (const Id id : silent) {
    const auto status = static_cast<int>(transfers[id]->status);
    finish(id, {Failure::kTimeout, status,
                fmt::format("no byte for {:.3g} s", static_cast<double>(settings.timeout_ns) * 1e-9)});
  }
}

// A timer that goes off earlier stays as it is: setting it for every message would be a call of the system for each.
void HttpClient::State::sleep_until(std::uint64_t until_ns, std::uint64_t now_ns) {
  if (armed_ns > now_ns && armed_ns <= until_ns) return;
  armed_ns = until_ns;
  itimerspec at{};
  const std::uint64_t left_ns = until_ns - now_ns;
  at.it_value = {static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
  ::timerfd_settime(timer, 0, &at, nullptr);
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::make(const HttpSettings& settings) {
  const Result<CurlApi>& api = curl_api();
  if (!api) return Error(api.error());
  auto state = std::make_unique<State>(*api, settings);
  LLMPROF_TRY(state->open());
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(state)));
}

std::string HttpClient::version() {
  const Result<CurlApi>& api = curl_api();
  if (!api) return "";
  const std::string_view all = api->version();
  return std::string(all.substr(0, all.find(' ', all.find(' ') + 1)));
}

void HttpClient::start(Id id, const std::string& path, std::string body, const std::vector<std::string>& headers) {
  State& s = *state_;
  std::unique_ptr<State::Transfer> transfer = s.made();
  transfer->id = id, transfer->status = 0, transfer->event_stream = false, *transfer->error = '\0';
  transfer->last_ns = wire::now_ns();
  transfer->body = std::move(body);
  const auto add = [&](const char* header) { transfer->headers = s.curl.slist_append(transfer->headers, header); };
  for (const std::string& header : s.settings.headers) add(header.c_str());
  for (const std::string& header : headers) add(header.c_str());
  CURL* const easy = transfer->easy;
  if (transfer->body.empty()) {
    s.curl.easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  } else {
    add("Content-Type: application/json");
    add("Expect:");  // a large prompt is not announced first
    s.curl.easy_setopt(easy, CURLOPT_POST, 1L);
    s.curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->body.size()));
    s.curl.easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body.data());
  }
  s.curl.easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
  s.curl.easy_setopt(easy, CURLOPT_URL, (s.settings.base_url + path).c_str());
  s.curl.multi_add_handle(s.multi, easy);
  s.transfers[id] = std::move(transfer);
}

void HttpClient::push(Handler& handler) {
  state_->handler = &handler;
  state_->act_on_timer(wire::now_ns());
  state_->collect();
}

void HttpClient::cancel(Id id, Handler& handler) {
  state_->handler = &handler;
  const auto found = state_->transfers.find(id);
  if (found == state_->transfers.end()) return;
  state_->finish(id, {Failure::kAborted, static_cast<int>(found->second->status), "given up by the client"});
}

void HttpClient::wait(std::uint64_t until_ns, Handler& handler) {
  State& s = *state_;
  s.handler = &handler;
  std::uint64_t now_ns = wire::now_ns();
  const std::uint64_t wake_ns = std::min({until_ns, s.due_ns, now_ns + 100'000'000});
  const bool sleeps = wake_ns > now_ns;
  if (sleeps) s.sleep_until(wake_ns, now_ns);
  epoll_event events[kPassEvents];
  const int count = ::epoll_wait(s.epoll, events, kPassEvents, sleeps ? -1 : 0);
  const std::uint64_t woken_ns = wire::now_ns();
  constexpr std::uint64_t kSleptNs = 20'000;  // less, and something was ready already
  if (s.caught_up_ns == 0 || woken_ns - now_ns > kSleptNs) s.caught_up_ns = woken_ns;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == s.timer) {
      std::uint64_t times = 0;
      if (::read(s.timer, &times, sizeof times) < 0) continue;
    } else {
      const int mask = ((events[i].events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                       ((events[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                       ((events[i].events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0);
      s.act(events[i].data.fd, mask);
    }
  }
  now_ns = wire::now_ns();
  s.act_on_timer(now_ns);
  s.collect();
  s.give_up_silent(now_ns);
  if (count > 0 && s.lags_ns.size() < kMostLags)
    s.lags_ns.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(now_ns - s.caught_up_ns, UINT32_MAX)));
  // What was ready when this pass began has been read, unless there was more than a pass takes.
  if (count < static_cast<int>(kPassEvents)) s.caught_up_ns = woken_ns;
}

std::size_t HttpClient::running() const { return state_->transfers.size(); }
const std::vector<std::uint32_t>& HttpClient::read_lags_ns() const { return state_->lags_ns; }

HttpReply fetch(HttpClient& client, const std::string& path, const std::string& body) {
  struct Whole : HttpClient::Handler {
    void data(HttpClient::Id, int, bool, std::string_view bytes, std::uint64_t) override {
      constexpr std::size_t kMost = std::size_t{16} << 20;
      if (reply.body.size() + bytes.size() <= kMost) reply.body += bytes;
    }
    void ended(HttpClient::Id, const Outcome& outcome, std::uint64_t) override { reply.outcome = outcome, done = true; }
    HttpReply reply;
    bool done = false;
  } whole;
  constexpr HttpClient::Id kId = UINT32_MAX;
  client.start(kId, path, body, {});
  client.push(whole);
  while (!whole.done) client.wait(wire::now_ns() + 1'000'000'000, whole);
  return whole.reply;
}

}  // namespace llmprof::load
