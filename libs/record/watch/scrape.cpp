#include "record/watch/scrape.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "base/errors.h"
#include "base/file.h"
#include "base/numbers.h"
#include "base/prometheus.h"
#include "base/strings.h"
#include "wire/clock.h"

namespace llmprof::record {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(2);  // for one answer
constexpr std::size_t kMostAnswerBytes = 16u << 20;
constexpr std::uint64_t kMostFileBytes = 1u << 30;
constexpr std::string_view kMark = "#scraped ";  // then the time and the bytes that follow

std::int64_t raw_now() { return static_cast<std::int64_t>(wire::read_clock_ns(CLOCK_MONOTONIC_RAW)); }

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// One GET of an answer that is whole when the server closes, within a time that stop() can cut.
class Get {
 public:
  Get(const ScrapeTarget& target, const std::atomic<bool>& stopping)
      : target_(target), stopping_(stopping), until_(Clock::now() + kPatience) {}

  // The body of a 200.
  Result<std::string> run() {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = ::getaddrinfo(target_.host.c_str(), target_.port.c_str(), &hints, &found); error != 0)
      return Error{ErrorCode::kIo, ::gai_strerror(error), ""};
    Result<std::string> answer = Error{ErrorCode::kIo, "no address", ""};
    for (const addrinfo* address = found; address != nullptr && !answer; address = address->ai_next)
      answer = ask(*address);
    ::freeaddrinfo(found);
    if (!answer) return answer;
    return body_of(*answer);
  }

 private:
  Result<std::string> ask(const addrinfo& address) {
    const Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.fd() < 0) return failed(errno);
    if (::connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
      if (errno != EINPROGRESS) return failed(errno);
      LLMPROF_TRY(wait(socket.fd(), POLLOUT));
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return failed(error);
    }
    const std::string request =
        fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/plain\r\nUser-Agent: llmprof\r\nConnection: close\r\n\r\n",
                    target_.path, target_.host);
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t n = ::send(socket.fd(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n >= 0) {
        sent += static_cast<std::size_t>(n);
      } else if (errno == EAGAIN) {
        LLMPROF_TRY(wait(socket.fd(), POLLOUT));
      } else {
        return failed(errno);
      }
    }
    return receive(socket.fd());
  }

  Result<std::string> receive(int fd) {
    std::string answer;
    char part[16384];
    for (;;) {
      const ssize_t n = ::recv(fd, part, sizeof part, 0);
      if (n == 0) return answer;
      if (n > 0) {
        answer.append(part, static_cast<std::size_t>(n));
        if (answer.size() > kMostAnswerBytes) return Error{ErrorCode::kIo, "an answer of more than 16 MiB", ""};
      } else if (errno == EAGAIN) {
        LLMPROF_TRY(wait(fd, POLLIN));
      } else {
        return failed(errno);
      }
    }
  }

  Result<void> wait(int fd, short what) const {
    pollfd one{fd, what, 0};
    while (!stopping_ && Clock::now() < until_) {
      if (::poll(&one, 1, 50) > 0) return {};
    }
    return Error{ErrorCode::kIo, stopping_ ? "the recording ended" : "no answer within 2 s", ""};
  }
  static Error failed(int error) { return {ErrorCode::kIo, std::strerror(error), ""}; }

  static Result<std::string> body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.") || end == std::string::npos) return Error{ErrorCode::kIo, "no HTTP answer", ""};
    if (answer.compare(8, 4, " 200") != 0)
      return Error{ErrorCode::kIo, "HTTP status " + answer.substr(9, 3), ""};
    const std::string head = base::lowercase(answer.substr(0, end));
    const std::string_view body = std::string_view(answer).substr(end + 4);
    if (head.find("\r\ntransfer-encoding: chunked") != std::string::npos) return from_chunks(body);
    const std::size_t length = head.find("\r\ncontent-length:");
    if (length != std::string::npos) {
      const std::string_view text = std::string_view(head).substr(length + 17);
      const auto bytes = base::leading_number<std::size_t>(text.substr(std::min(text.size(), text.find_first_not_of(' '))));
      if (!bytes || *bytes != body.size()) return Error{ErrorCode::kIo, "an answer that is cut", ""};
    }
    return std::string(body);
  }
  static Result<std::string> from_chunks(std::string_view text) {
    std::string body;
    for (;;) {
      std::size_t bytes = 0;
      const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), bytes, 16);
      const std::size_t line = text.find("\r\n");
      if (error != std::errc{} || line == std::string_view::npos) break;
      if (bytes == 0) return body;
      text.remove_prefix(line + 2);
      if (text.size() < bytes + 2) break;
      body.append(text.substr(0, bytes));
      text.remove_prefix(bytes + 2);
    }
    return Error{ErrorCode::kIo, "an answer that is cut", ""};
  }

  const ScrapeTarget& target_;
  const std::atomic<bool>& stopping_;
  Clock::time_point until_;
};

// The rows of one scrape after the other.
class MetricRows {
 public:
  MetricRows(trace::RunWriter& writer, trace::Id& next_id) : writer_(writer), next_id_(next_id) {}

  // How many lines could not be read.
  std::int64_t add(std::int64_t ts_ns, std::string_view text) {
    std::int64_t wrong = 0;
    for (const std::string_view line : base::split(text, '\n')) {
      if (line.empty()) continue;
      if (line.front() == '#') {
        const base::CommentLine comment = base::parse_comment(line);
        if (comment.keyword == "TYPE") kinds_[std::string(comment.name)] = base::metric_kind(comment.rest);
        continue;
      }
      base::SampleLine sample;
      if (base::parse_sample(line, sample) != nullptr) {
        ++wrong;
      } else if (std::isfinite(sample.value)) {
        add_sample(ts_ns, sample);
      } else {
        ++not_finite_;
      }
    }
    return wrong;
  }
  std::int64_t not_finite() const { return not_finite_; }  // values that are NaN or infinite: no rows

 private:
  void add_sample(std::int64_t ts_ns, const base::SampleLine& sample) {
    trace::Strings& strings = writer_.strings();
    trace::MetricRow row{.id = next_id_++, .ts_ns = ts_ns, .name = strings.intern(trace::storable(sample.name)), .value = sample.value};
    if (!sample.labels.empty()) row.labels = strings.intern(trace::storable(sample.labels));
    const std::string_view family = base::metric_family(sample.name, [&](std::string_view name) {
      return kinds_.contains(std::string(name));
    });
    row.kind = strings.intern(family.empty() ? "untyped" : kinds_[std::string(family)]);
    if (const std::string_view unit = base::metric_unit(sample.name); !unit.empty()) row.unit = strings.intern(unit);
    writer_.add(row);
  }

  trace::RunWriter& writer_;
  trace::Id& next_id_;
  std::unordered_map<std::string, std::string> kinds_;  // by family
  std::int64_t not_finite_ = 0;
};

}  // namespace

Result<ScrapeTarget> parse_scrape_url(std::string_view url) {
  const Error wrong{ErrorCode::kUsage, fmt::format("--scrape wants http://HOST:PORT/metrics, not '{}'", url),
                    url.starts_with("https:") ? "metrics are scraped without TLS, from this machine or a trusted network" : ""};
  if (!url.starts_with("http://")) return wrong;
  url.remove_prefix(7);
  const std::size_t slash = url.find('/');
  ScrapeTarget target;
  target.path = slash == std::string_view::npos || slash + 1 == url.size() ? "/metrics" : std::string(url.substr(slash));
  std::string_view place = url.substr(0, slash);
  const std::size_t bracket = place.rfind(']'), colon = place.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    target.port = place.substr(colon + 1);
    place = place.substr(0, colon);
  } else {
    target.port = "80";
  }
  if (place.starts_with('[') && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  target.host = place;
  const auto port = base::parse_number<std::int64_t>(target.port);
  const bool plain = url.find_first_of(" \r\n\t@") == std::string_view::npos;
  if (target.host.empty() || !port || *port < 1 || *port > 65535 || !plain) return wrong;
  return target;
}

Scraper::Scraper(ScrapeOptions options, std::string capture_folder)
    : options_(std::move(options)), file_(std::move(capture_folder) + "/" + kMetricsFile) {}

void Scraper::start() {
  if (options_.target.host.empty() || thread_.joinable()) return;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the thread that waits for the program
  thread_ = std::thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Scraper::work() {
  ::pthread_setname_np(::pthread_self(), "llmprof-scrape");
  for (auto next = Clock::now(); !stopping_; next = std::max(next + options_.every, Clock::now())) {
    scrape();
    while (!stopping_ && Clock::now() < next + options_.every) {
      const auto left = next + options_.every - Clock::now();
      std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(50)));
    }
  }
}

// What it was when half of the time of the answer had passed: the server read its counters in between.
void Scraper::scrape() {
  const std::int64_t asked_ns = raw_now();
  const Result<std::string> body = Get(options_.target, stopping_).run();
  if (!body) {
    if (stopping_) return;
    problem_ = body.error().message;
    if (answered_ > 0) ++failed_;
    return;
  }
  ++answered_;
  if (full_ || base::file_bytes(file_) + body->size() > kMostFileBytes) {
    full_ = true;
    return;
  }
  const std::string text = fmt::format("{}{} {}\n{}\n", kMark, asked_ns + (raw_now() - asked_ns) / 2, body->size(), *body);
  std::FILE* const file = std::fopen(file_.c_str(), "ae");
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size()) full_ = true;
  if (file != nullptr && std::fclose(file) != 0) full_ = true;
}

void Scraper::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Scraper::finish(CaptureInfo& info) {
  stop();
  if (options_.target.host.empty()) return;
  const std::string place = fmt::format("{}:{}{}", options_.target.host, options_.target.port, options_.target.path);
  if (answered_ == 0) {
    info.losses.push_back({trace::Loss::kScrapeFailed, 1,
                           fmt::format("{}: never answered ({})", place, problem_.empty() ? "not asked" : problem_)});
  } else if (failed_ > 0) {
    info.losses.push_back({trace::Loss::kScrapeFailed, failed_, fmt::format("{}: {}", place, problem_)});
  }
  if (full_) info.losses.push_back({trace::Loss::kScrapeFailed, 1, "further metrics were not kept: 1 GiB, or no room"});
}

void ingest_metrics(const std::string& capture_folder, trace::RunWriter& writer, trace::Id& next_id, Ledger& ledger) {
  const Result<std::string> file = base::read_file(capture_folder + "/" + kMetricsFile, kMostFileBytes + kMostAnswerBytes);
  if (!file) return;
  MetricRows rows(writer, next_id);
  std::int64_t wrong = 0;
  std::string_view rest = *file;
  while (rest.starts_with(kMark)) {
    const std::size_t end = rest.find('\n');
    const std::string_view head = rest.substr(kMark.size(), end == std::string_view::npos ? 0 : end - kMark.size());
    std::string_view behind;
    const auto ts_ns = base::leading_number<std::int64_t>(head, behind);
    const auto bytes = base::parse_number<std::uint64_t>(behind.empty() ? behind : behind.substr(1));
    if (!ts_ns || !bytes || *bytes >= rest.size() - end) break;  // its recorder was killed
    wrong += rows.add(*ts_ns, rest.substr(end + 1, *bytes));
    rest.remove_prefix(std::min<std::uint64_t>(rest.size(), end + 1 + *bytes + 1));
  }
  if (!rest.empty()) ledger.add(trace::Loss::kInputTruncated, 1, {}, kMetricsFile);
  if (wrong > 0) ledger.add(trace::Loss::kInputDamaged, wrong, {}, "lines of scraped metrics");
  if (rows.not_finite() > 0)
    ledger.add(trace::Loss::kInputIgnored, rows.not_finite(), {}, "scraped values that are NaN or infinite");
}

}  // namespace llmprof::record
