#include "record/telemetry_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "record/telemetry_message.h"

namespace llmprof::record {
namespace {

constexpr int kPipeBytes = 1 << 20;  // seconds of readings of many devices; where refused, it stays at 64 KiB
constexpr std::size_t kReadBytes = 64 * sizeof(TelemetryMessage);

TelemetryEvent event_of(const TelemetryMessage& message) {
  TelemetryEvent event;
  event.kind = message.kind;
  event.reading = {message.metric, message.device, message.pid, message.ts_ns, message.value};
  event.text = message.text;
  if (message.kind == TelemetryEvent::Kind::kDevice) {
    event.reading = {};
    event.device = {message.device, message.pid == 1 ? "gpu" : "cpu", message.text, message.uuid_high,
                    message.uuid_low};
  }
  return event;
}

void close_both(const int (&ends)[2]) {
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace

Result<std::unique_ptr<TelemetryChild>> TelemetryChild::start(const Open& open, const TelemetryRates& rates) {
  int events[2], stop[2];
  if (::pipe2(events, O_CLOEXEC | O_NONBLOCK) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  if (::pipe2(stop, O_CLOEXEC) != 0) {
    close_both(events);
    return base::errno_error(ErrorCode::kIo, "pipe", errno);
  }
  (void)::fcntl(events[1], F_SETPIPE_SZ, kPipeBytes);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(stop[1]);  // else our own end would keep us waiting
    run_telemetry_child(open, rates, events[1], stop[0]);
  }
  ::close(events[1]);
  ::close(stop[0]);
  if (pid < 0) {
    ::close(events[0]);
    ::close(stop[1]);
    return base::errno_error(ErrorCode::kIo, "fork", errno);
  }
  return std::unique_ptr<TelemetryChild>(new TelemetryChild(pid, events[0], stop[1]));
}

TelemetryChild::~TelemetryChild() {
  stop();
  ::close(events_);
}

// False: the pipe has ended.
bool TelemetryChild::read_some() {
  char buffer[kReadBytes];
  while (true) {
    const ssize_t count = ::read(events_, buffer, sizeof buffer);
    if (count == 0) ended_ = true;
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    bytes_.append(buffer, static_cast<std::size_t>(count));
  }
}

std::vector<TelemetryEvent> TelemetryChild::receive() {
  read_some();
  std::vector<TelemetryEvent> events;
  std::size_t at = 0;
  for (; at + sizeof(TelemetryMessage) <= bytes_.size(); at += sizeof(TelemetryMessage)) {
    TelemetryMessage message;
    std::memcpy(static_cast<void*>(&message), bytes_.data() + at, sizeof message);
    events.push_back(event_of(message));
  }
  bytes_.erase(0, at);
  return events;
}

bool TelemetryChild::stop(std::chrono::milliseconds patience) {
  if (pid_ < 0) return true;
  ::close(std::exchange(stop_, -1));
  const auto until = std::chrono::steady_clock::now() + patience;
  bool ended = false;
  while (!(ended = !read_some())) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wait{events_, POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(left.count()));
  }
  ::kill(pid_, SIGKILL);  // its last word is said, or it hangs
  // A call that hangs in the kernel outlives even that; then init collects it.
  for (int i = 0; i < (ended ? 20 : 1) && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) ::usleep(1000);
  pid_ = -1;
  return ended;
}

}  // namespace llmprof::record
