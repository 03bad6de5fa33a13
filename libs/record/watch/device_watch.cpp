#include "record/watch/device_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "wire/clock.h"

namespace llmprof::record {
namespace {

constexpr int kPipeBytes = 1 << 20;  // seconds of readings of many devices; where refused, it stays at 64 KiB
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kMostWaitingBytes = std::size_t{64} << 20;  // for a parent that does not read
constexpr int kLastWordMs = 2000;
constexpr std::size_t kSamplesAtOnce = 256;  // records of one kind are written together
using Kind = WatchEvent::Kind;

void close_both(const int (&ends)[2]) {
  ::close(ends[0]);
  ::close(ends[1]);
}

// Signals of the terminal are for the program; whoever reads our parent's output must not wait for us.
void leave_everything(int& events, int& orders) {
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE}) {
    ::signal(signal, SIG_IGN);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also in the middle of a call that hangs
  ::prctl(PR_SET_NAME, "llmprof-watch");
  const int null = ::open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; ++descriptor) ::dup2(null, descriptor);
  const int high = ::fcntl(events, F_DUPFD, 500);
  const int higher = ::fcntl(orders, F_DUPFD, 500);
  if (high < 0 || higher < high) return;
  const auto close_range = [](int from, int to) {
    ::syscall(SYS_close_range, static_cast<unsigned>(from), static_cast<unsigned>(to), 0);
  };
  close_range(3, high - 1);
  if (higher - high > 1) close_range(high + 1, higher - 1);
  close_range(higher + 1, -1);
  events = high;
  orders = higher;
}

[[noreturn]] void live(const WatchChild::Body& body, int events, int orders) {
  leave_everything(events, orders);
  WatchSender sender(events);
  body(sender, orders);
  sender.send_all();
  ::_exit(0);  // nothing of the parent is ours to destroy
}

}  // namespace

void append(std::string& bytes, const WatchEvent& event) {
  const WatchHead& head = event;
  const std::uint32_t sizes[] = {static_cast<std::uint32_t>(event.text.size()),
                                 static_cast<std::uint32_t>(event.values.size())};
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  bytes += event.text;
  bytes.append(reinterpret_cast<const char*>(event.values.data()), event.values.size() * sizeof(double));
}

bool take(std::string_view& bytes, WatchEvent& event) {
  WatchHead head;
  std::uint32_t sizes[2];
  constexpr std::size_t kFixed = sizeof head + sizeof sizes;
  if (bytes.size() < kFixed) return false;
  std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
  std::memcpy(sizes, bytes.data() + sizeof head, sizeof sizes);
  const std::size_t text_bytes = sizes[0], values_bytes = std::size_t{sizes[1]} * sizeof(double);
  if (bytes.size() < kFixed + text_bytes + values_bytes) return false;
  event = {head, std::string(bytes.substr(kFixed, text_bytes)), std::vector<double>(sizes[1])};
  if (values_bytes > 0) std::memcpy(event.values.data(), bytes.data() + kFixed + text_bytes, values_bytes);
  bytes.remove_prefix(kFixed + text_bytes + values_bytes);
  return true;
}

void WatchSender::add(const WatchEvent& event) {
  const bool one_of_many = event.kind == Kind::kSample || event.kind == Kind::kReading;
  if (one_of_many && bytes_.size() > kMostWaitingBytes) {
    ++dropped_;
  } else {
    append(bytes_, event);
  }
}

void WatchSender::send() {
  while (!bytes_.empty()) {
    const ssize_t count = ::write(events_, bytes_.data(), bytes_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes_.erase(0, static_cast<std::size_t>(count));
  }
}

void WatchSender::send_all() {
  for (int waited_ms = 0; waited_ms < kLastWordMs; waited_ms += 10) {
    send();
    if (bytes_.empty()) return;
    pollfd wait{events_, POLLOUT, 0};
    ::poll(&wait, 1, 10);
  }
}

Result<std::unique_ptr<WatchChild>> WatchChild::start(const Body& body) {
  int events[2], orders[2];
  if (::pipe2(events, O_CLOEXEC | O_NONBLOCK) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  // A socket: writing to one whose other end is gone can be asked to raise no signal.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, orders) != 0) {
    close_both(events);
    return base::errno_error(ErrorCode::kIo, "socketpair", errno);
  }
  (void)::fcntl(events[1], F_SETPIPE_SZ, kPipeBytes);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(orders[1]);  // else our own end would keep us waiting
    live(body, events[1], orders[0]);
  }
  ::close(events[1]);
  ::close(orders[0]);
  if (pid < 0) {
    ::close(events[0]);
    ::close(orders[1]);
    return base::errno_error(ErrorCode::kIo, "fork", errno);
  }
  return std::unique_ptr<WatchChild>(new WatchChild(pid, events[0], orders[1]));
}

WatchChild::~WatchChild() {
  stop(std::chrono::milliseconds(0));
  ::close(events_);
}

std::vector<WatchEvent> WatchChild::receive() {
  read_some();
  std::vector<WatchEvent> events;
  std::string_view left = bytes_;
  for (WatchEvent event; take(left, event);) events.push_back(std::move(event));
  bytes_.erase(0, bytes_.size() - left.size());
  return events;
}

// False: the pipe has ended.
bool WatchChild::read_some() {
  char buffer[kReadBytes];
  while (true) {
    const ssize_t count = ::read(events_, buffer, sizeof buffer);
    if (count == 0) ended_ = true;
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    bytes_.append(buffer, static_cast<std::size_t>(count));
  }
}

void WatchChild::tell(char word) const {
  if (orders_ >= 0) (void)::send(orders_, &word, 1, MSG_NOSIGNAL);
}

bool WatchChild::stop(std::chrono::milliseconds patience) {
  if (pid_ < 0) return true;
  ::close(std::exchange(orders_, -1));
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

void DeviceWatch::begin(Result<std::unique_ptr<WatchChild>> child) {
  begin_ns_ = wire::now_ns();
  if (child) {
    child_ = std::move(*child);
  } else {
    losses_.push_back({manner_.failed, 1, child.error().message});
  }
}

bool DeviceWatch::receive() {
  const std::lock_guard lock(mutex_);
  if (child_) take(child_->receive());
  return !received_.empty();
}

void DeviceWatch::take(std::vector<WatchEvent> events) {
  for (WatchEvent& event : events) {
    found_ = found_ || event.kind == Kind::kDevice;
    if (event.kind == Kind::kLoss) {
      refused_ = refused_ || event.loss == trace::Loss::kCountersForbidden || event.loss == trace::Loss::kCountersHeld;
      losses_.push_back({event.loss, static_cast<std::int64_t>(event.count), std::move(event.text)});
    } else {
      received_.push_back(std::move(event));
    }
  }
}

void DeviceWatch::write(host::HostLog& log) {
  const std::lock_guard lock(mutex_);
  std::vector<const WatchEvent*> samples;
  for (const WatchEvent& event : received_) {
    if (event.kind == Kind::kSample) samples.push_back(&event);
    if (event.kind != Kind::kSample || samples.size() == kSamplesAtOnce) write_samples(samples, log);
    if (event.kind == Kind::kDevice) write_device(event, log);
    if (event.kind == Kind::kMetric) metrics_[event.device].push_back(event.text);
    if (event.kind == Kind::kSlowed) losses_.push_back({trace::Loss::kTelemetrySlowed, 1, event.text});
    if (event.kind == Kind::kNote)
      log.add(wire::RecordKind::kNote).note = {wire::now_ns(), log.name(manner_.subject), log.name(event.text)};
    if (event.kind == Kind::kReading) {
      const hw::Reading& reading = event.reading;
      log.add(wire::RecordKind::kTelemetry).telemetry = {
          reading.ts_ns, reading.value, log.name(info_of(reading.metric).name), reading.device, reading.pid};
    }
  }
  write_samples(samples, log);
  received_.clear();
}

void DeviceWatch::write_device(const WatchEvent& event, host::HostLog& log) const {
  log.add(wire::RecordKind::kTelemetryDevice).telemetry_device = {event.uuid_high, event.uuid_low, log.name(event.text),
                                                                  manner_.first_device + event.device};
}

// Windows first, then their values.
void DeviceWatch::write_samples(std::vector<const WatchEvent*>& samples, host::HostLog& log) {
  std::uint32_t measurement = measurement_;
  for (const WatchEvent* sample : samples) {
    const auto device = static_cast<std::uint16_t>(manner_.first_device + sample->device);
    log.add(wire::RecordKind::kCounterWindow).counter_window = {
        sample->begin_ns, sample->end_ns, 0, ++measurement, 0, 0, device, wire::CounterScope::kSample, 0, 1};
  }
  for (const WatchEvent* sample : samples) {
    ++measurement_;
    const std::vector<std::string>& metrics = metrics_[sample->device];
    for (std::size_t i = 0; i < std::min(metrics.size(), sample->values.size()); ++i) {
      log.add(wire::RecordKind::kCounter).counter = {sample->end_ns, sample->values[i], measurement_,
                                                     log.name(metrics[i])};
    }
  }
  samples.clear();
}

void DeviceWatch::tell(char word) {
  const std::lock_guard lock(mutex_);
  if (child_) child_->tell(word);
}

void DeviceWatch::stop() {
  const std::lock_guard lock(mutex_);
  if (!child_) return;
  const bool ended = child_->stop(manner_.patience);
  take(child_->receive());
  child_.reset();
  const auto silent_ns = static_cast<std::uint64_t>(manner_.may_be_silent.count());
  if (ended || (!found_ && wire::now_ns() - begin_ns_ < silent_ns)) return;
  losses_.push_back({manner_.failed, 1, "the driver did not answer at the end"});
}

bool DeviceWatch::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void DeviceWatch::finish(CaptureInfo& info) {
  stop();
  std::ranges::copy(losses_, std::back_inserter(info.losses));
  losses_.clear();
}

}  // namespace llmprof::record
