#include "record/control/control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "record/run/capture.h"

namespace llmprof::record {
namespace {

constexpr int kWaiting = 8;  // connections

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: the path of a socket has 1 to {} bytes, this one {}", path,
                             sizeof address.sun_path - 1, path.size()),
                 "choose a shorter one, for example in /tmp"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<int> new_socket() {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return base::errno_error(ErrorCode::kIo, "socket", errno);
  return socket;
}

// Whether the name is free, or a socket that nobody listens at (which is taken away).
Result<void> make_free(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) {
    return Error{ErrorCode::kUsage, path + " exists and is not a socket", "choose another path for the socket"};
  }
  LLMPROF_LET(const int socket, new_socket());
  const bool used = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  if (used) return Error{ErrorCode::kUsage, path + " belongs to another recording", "choose another path"};
  ::unlink(path.c_str());
  return {};
}

// A listening socket that only its owner can connect to. A socket that nobody listens at any more is replaced; anything
// else of that name is refused.
Result<int> listen_at(const std::string& path) {
  LLMPROF_LET(const sockaddr_un address, address_of(path));
  LLMPROF_TRY(make_free(path, address));
  LLMPROF_LET(const int socket, new_socket());
  ::fchmod(socket, 0600);  // before it has a name, so that it never was open to others
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket, kWaiting) == 0) {
    return socket;
  }
  Error error = base::errno_error(ErrorCode::kIo, path, errno);
  error.message = fmt::format("the control socket cannot be made: {}", error.message);
  error.hint = "choose a folder that you may write to";
  ::close(socket);
  return error;
}

Result<int> connect_to(const std::string& path) {
  LLMPROF_LET(const sockaddr_un address, address_of(path));
  LLMPROF_LET(const int socket, new_socket());
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  Error error = base::errno_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, errno);
  error.hint = "is `llmprof record --control " + path + " …` running?";
  ::close(socket);
  return error;
}

// A collector looks at its file five times a second: at a start it must know in time, because CUPTI is switched on. At
// a stop it only needs to know before it writes what came later.
constexpr std::int64_t kStartAheadNs = 250'000'000, kStopAheadNs = 5'000'000;
constexpr std::size_t kMostClients = 16;
constexpr std::size_t kLongestCommand = 256;

std::int64_t now_ns() { return read_clocks().raw_ns; }

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string refusal(const std::string& why) { return base::to_line({{"ok", false}, {"why", why}}) + "\n"; }

void write_all(int socket, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::send(socket, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // who does not wait for the answer does not get it
    at += static_cast<std::size_t>(count);
  }
}

}  // namespace

bool Stretches::switch_at(std::int64_t ts_ns, bool on) {
  if (on == is_on()) return false;
  (on ? begun_ : ended_).push_back(ts_ns);
  return true;
}

std::int64_t Stretches::total_ns(std::int64_t now_ns) const {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < begun_.size(); ++i) {
    const std::int64_t end = i < ended_.size() ? std::min(ended_[i], now_ns) : now_ns;
    total += std::max<std::int64_t>(end - begun_[i], 0);
  }
  return total;
}

Result<std::unique_ptr<Control>> Control::open(Options options) {
  std::unique_ptr<Control> control(new Control(std::move(options)));
  LLMPROF_TRY(control->make_file());
  LLMPROF_TRY(control->make_socket());
  control->stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (control->stop_ < 0) return base::errno_error(ErrorCode::kIo, "eventfd", errno);
  // Signals are the business of the thread that waits for the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  control->thread_ = std::thread([raw = control.get()] { raw->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return control;
}

Control::~Control() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    thread_.join();
  }
  for (const Client& client : clients_) ::close(client.socket);
  for (const int descriptor : {listener_, stop_, file_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
  if (bound_) ::unlink(options_.socket.c_str());
}

Result<void> Control::make_file() {
  const std::string path = fmt::format("{}/{}", options_.capture_folder, kControlFile);
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return base::errno_error(ErrorCode::kIo, path, errno);
  if (options_.start_stopped) return {};
  stretches_.switch_at(options_.begin_ns, true);
  const std::string line = fmt::format("{} on\n", options_.begin_ns);
  if (::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
  return base::errno_error(ErrorCode::kIo, path, errno);
}

Result<void> Control::make_socket() {
  LLMPROF_LET(listener_, listen_at(options_.socket));
  bound_ = true;
  return {};
}

void Control::run() {
  while (true) {
    std::vector<pollfd> waits{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Client& client : clients_) waits.push_back({client.socket, POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    for (std::size_t i = waits.size(); i-- > 2;) {  // from the last: those that are gone are taken out
      if (waits[i].revents == 0 || serve(clients_[i - 2])) continue;
      ::close(clients_[i - 2].socket);
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i - 2));
    }
    if (waits[1].revents != 0) accept_client();
  }
}

void Control::accept_client() {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  const timeval limit{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (clients_.size() < kMostClients) {
    clients_.push_back({socket, ""});
    return;
  }
  write_all(socket, refusal("too many clients at a time"));
  ::close(socket);
}

bool Control::serve(Client& client) {
  char bytes[256];
  const ssize_t count = ::recv(client.socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
  client.received.append(bytes, static_cast<std::size_t>(count));
  for (std::size_t end = 0; (end = client.received.find('\n')) != std::string::npos;) {
    const std::string command = client.received.substr(0, end);
    client.received.erase(0, end + 1);
    write_all(client.socket, answer(command));
  }
  if (client.received.size() <= kLongestCommand) return true;
  write_all(client.socket, refusal("a command is a short line"));
  return false;
}

std::string Control::answer(const std::string& command) {
  if (command == "start") return switch_now(true);
  if (command == "stop") return switch_now(false);
  if (command == "status") return status();
  if (command == "dump") return dump();
  return refusal(fmt::format("'{}' is not start, stop, status or dump", base::printable(command.substr(0, 40))));
}

// Answered when it is so.
std::string Control::switch_now(bool on) {
  const std::int64_t at_ns = now_ns() + (on ? kStartAheadNs : kStopAheadNs);
  {
    const std::lock_guard lock(mutex_);
    if (stretches_.is_on() == on) return refusal(on ? "it is recording already" : "it is stopped already");
  }
  const std::string line = fmt::format("{} {}\n", at_ns, on ? "on" : "off");
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return refusal(fmt::format("the collectors could not be told: {}", std::strerror(errno)));
  }
  {
    const std::lock_guard lock(mutex_);
    stretches_.switch_at(at_ns, on);
  }
  if (const std::int64_t wait_ns = at_ns - now_ns(); wait_ns > 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
  }
  return status();
}

std::string Control::status() const {
  const std::int64_t now = now_ns();
  const std::lock_guard lock(mutex_);
  return base::to_line({{"ok", true},
                        {"recording", stretches_.is_on()},
                        {"stretches", stretches_.count()},
                        {"recorded_seconds", seconds(stretches_.total_ns(now))},
                        {"elapsed_seconds", seconds(now - options_.begin_ns)},
                        {"log_bytes", log_bytes(options_.capture_folder)}}) +
         "\n";
}

std::string Control::dump() {
  const auto made = options_.dump();
  if (!made) return refusal(made.error().message);
  return base::to_line({{"ok", true}, {"run", *made}}) + "\n";
}

std::string Control::summary(std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  const std::size_t count = stretches_.count();
  if (count == 0) return "never switched on";
  return fmt::format("switched on {}, {} in all", count == 1 ? "once" : fmt::format("{} times", count),
                     base::human_ns(static_cast<double>(stretches_.total_ns(now_ns))));
}

Result<std::string> ask_control(const std::string& path, const std::string& command) {
  LLMPROF_LET(const int socket, connect_to(path));
  const std::string line = command + "\n";
  std::string answer;
  char bytes[512];
  ssize_t count = ::send(socket, line.data(), line.size(), MSG_NOSIGNAL);
  while (count > 0 && answer.find('\n') == std::string::npos) {
    count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count > 0) answer.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(socket);
  if (answer.find('\n') == std::string::npos) {
    return Error{ErrorCode::kIo, path + ": the recording ended before it answered", ""};
  }
  return answer.substr(0, answer.find('\n'));
}

}  // namespace llmprof::record
