// The process that reads devices: alone with a source and a pipe.

#include "record/watch/telemetry.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "host/pace.h"

namespace llmprof::record {
namespace {

// What goes through the pipe between the telemetry child and its parent: messages of one size, written whole.
struct TelemetryMessage {
  TelemetryEvent::Kind kind = TelemetryEvent::Kind::kReading;
  std::uint32_t device = 0, pid = 0;
  hw::MetricId metric = hw::MetricId::kPower;
  std::uint64_t ts_ns = 0;
  double value = 0;
  std::uint64_t uuid_high = 0, uuid_low = 0;
  char text[208] = {};  // ends with 0

  void set_text(std::string_view words) {
    words = words.substr(0, sizeof text - 1);
    std::memcpy(text, words.data(), words.size());
    text[words.size()] = 0;
  }
};
static_assert(sizeof(TelemetryMessage) == 256 && std::is_trivially_copyable_v<TelemetryMessage>);
constexpr std::size_t kMessagesAtOnce = PIPE_BUF / sizeof(TelemetryMessage);  // so many are written as one

using hw::ReadGroup;
using Kind = TelemetryEvent::Kind;

constexpr std::uint64_t kSecondNs = 1'000'000'000;

// Parts of the CPU time that the groups may take. Power and energy also get what the others leave.
constexpr std::array<double, hw::kReadGroups> kParts{0.5, 0.25, 0.15, 0.05, 0.05};
constexpr double kLimitsHz = 1.0 / 60;
// In place of counters: a little more than the least time that NVML needs between two samples, and what ten a second
// take of a core.
constexpr std::uint64_t kActivityOftenNs = 101'000'000;
constexpr double kActivityOftenShare = 0.03;

std::uint64_t process_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecondNs + static_cast<std::uint64_t>(time.tv_nsec);
}

class Loop {
 public:
  Loop(hw::TelemetrySource& source, const TelemetryRates& rates, int events, int orders)
      : source_(source),
        share_(rates.share),
        rests_(rates.rests),
        events_(events),
        orders_(orders),
        begin_ns_(hw::raw_now_ns()) {
    for (std::size_t i = 0; i < hw::kReadGroups; ++i) {
      const auto group = static_cast<ReadGroup>(i);
      const double hz = group == ReadGroup::kPower    ? rates.power_hz
                        : group == ReadGroup::kLimits ? std::min(kLimitsHz, rates.state_hz)
                                                      : rates.state_hz;
      const auto period_ns = static_cast<std::uint64_t>(1e9 / hz);
      groups_.push_back({group, period_ns, host::Pace(period_ns, rates.share * kParts[i])});
    }
  }

  void run() {
    for (const hw::TelemetryDevice& device : source_.devices()) tell(device);
    add(Kind::kReady);
    send();
    for (const Group& group : groups_) read(group.group);  // the first time may take longer and says nothing
    do {
      send();
    } while (!stopped() && (tick(), true));
    read(ReadGroup::kPower);
    read(ReadGroup::kState);
    tell_costs();
    send();
  }

 private:
  struct Group {
    ReadGroup group;
    std::uint64_t wanted_ns;
    host::Pace pace;
    std::uint64_t reads = 0;
  };

  void tick() {
    const std::uint64_t now = hw::raw_now_ns();
    if (rests_.at(now)) return;
    double left = share_;
    for (std::size_t i = 1; i < groups_.size(); ++i) left -= groups_[i].pace.used_share();
    groups_[0].pace.set_share(std::max(left, share_ * kParts[0]));
    for (Group& group : groups_) {
      if (!group.pace.is_due(now)) continue;
      group.pace.measure(now, [&] { read(group.group); });
      ++group.reads;
      if (group.group == ReadGroup::kState) tell_own_time();
    }
  }

  // Until the next reading is due; true: it is time to end.
  bool stopped() {
    const std::uint64_t now = hw::raw_now_ns();
    std::uint64_t next = now + kSecondNs;
    for (const Group& group : groups_) next = std::min(next, std::max(now, group.pace.next_ns()));
    if (rests_.at(now)) next = rests_.next_change(now);
    pollfd wait{orders_, POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>((next - now) / 1'000'000 + 1)) > 0 && !obeyed();
  }

  // An order of the parent's; false: it has none any more, it is time to end.
  bool obeyed() {
    char order = 0;
    if (::read(orders_, &order, 1) <= 0) return false;
    Group& activity = groups_[static_cast<std::size_t>(ReadGroup::kActivity)];
    if (order == TelemetryChild::kActivityOften) {
      activity.wanted_ns = kActivityOftenNs;
      activity.pace = host::Pace(kActivityOftenNs, kActivityOftenShare);
    }
    return true;
  }

  void read(ReadGroup group) {
    readings_.clear();
    source_.read(group, readings_);
    for (const hw::Reading& reading : readings_) {
      TelemetryMessage& message = add(Kind::kReading);
      message.device = reading.device;
      message.pid = reading.pid;
      message.metric = reading.metric;
      message.ts_ns = reading.ts_ns;
      message.value = reading.value;
    }
    for (const std::string& note : source_.take_notes()) add(Kind::kNote).set_text(note);
  }

  void tell(const hw::TelemetryDevice& device) {
    TelemetryMessage& message = add(Kind::kDevice);
    message.device = device.device;
    message.pid = device.kind == "gpu" ? 1 : 0;
    message.uuid_high = device.uuid_high;
    message.uuid_low = device.uuid_low;
    message.set_text(device.name);
  }

  void tell_own_time() {
    if (source_.devices().empty()) return;
    TelemetryMessage& message = add(Kind::kReading);
    message.device = source_.devices().front().device;
    message.metric = hw::MetricId::kSamplerCpu;
    message.ts_ns = hw::raw_now_ns();
    message.value = static_cast<double>(process_cpu_ns()) * 1e-9;
  }

  void tell_costs() {
    const std::uint64_t lived_ns = hw::raw_now_ns() - begin_ns_;
    for (const Group& group : groups_) {
      const auto seconds = static_cast<double>(lived_ns) * 1e-9;
      const double wanted = static_cast<double>(lived_ns) / static_cast<double>(group.wanted_ns);
      if (wanted < 5 || static_cast<double>(group.reads) > 0.7 * wanted) continue;
      add(Kind::kSlowed)
          .set_text(fmt::format("{}: {:.2g} readings a second, wanted {:.2g}", name_of(group.group),
                                static_cast<double>(group.reads) / seconds,
                                1e9 / static_cast<double>(group.wanted_ns)));
    }
    for (const hw::CallCost& cost : source_.costs()) {
      const auto calls = static_cast<double>(cost.calls);
      add(Kind::kCost)
          .set_text(fmt::format("nvml{}: {} calls, {:.3f} ms of CPU time and {:.3f} ms each", cost.call, cost.calls,
                                static_cast<double>(cost.cpu_ns) * 1e-6 / calls,
                                static_cast<double>(cost.wall_ns) * 1e-6 / calls));
    }
    if (dropped_ > 0) add(Kind::kNote).set_text(fmt::format("{} messages were dropped: nobody took them", dropped_));
  }

  TelemetryMessage& add(Kind kind) {
    messages_.emplace_back();
    messages_.back().kind = kind;
    return messages_.back();
  }

  // The pipe does not block: what finds no room is dropped and counted.
  void send() {
    for (std::size_t at = 0; at < messages_.size(); at += kMessagesAtOnce) {
      const std::size_t count = std::min(kMessagesAtOnce, messages_.size() - at);
      const auto bytes = static_cast<ssize_t>(count * sizeof(TelemetryMessage));
      if (::write(events_, &messages_[at], static_cast<std::size_t>(bytes)) != bytes) dropped_ += count;
    }
    messages_.clear();
  }

  hw::TelemetrySource& source_;
  double share_;
  wire::Rests rests_;
  int events_, orders_;
  std::uint64_t begin_ns_;
  std::vector<Group> groups_;
  std::vector<hw::Reading> readings_;
  std::vector<TelemetryMessage> messages_;
  std::uint64_t dropped_ = 0;
};

// The child's side, until it is told to stop.
void run_telemetry_child(const TelemetryChild::Open& open, const TelemetryRates& rates, int events, int orders) {
  auto source = open();
  if (source) return Loop(**source, rates, events, orders).run();
  TelemetryMessage message;
  message.kind = source.error().code == ErrorCode::kNotFound ? Kind::kNone : Kind::kNote;
  message.set_text(source.error().message);
  (void)!::write(events, &message, sizeof message);
}

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

}  // namespace

Result<std::unique_ptr<TelemetryChild>> TelemetryChild::start(const Open& open, const TelemetryRates& rates) {
  LLMPROF_LET(auto child,
              WatchChild::start([&](int events, int orders) { run_telemetry_child(open, rates, events, orders); }));
  return std::unique_ptr<TelemetryChild>(new TelemetryChild(std::move(child)));
}

std::vector<TelemetryEvent> TelemetryChild::receive() {
  child_->receive();
  std::string& bytes = child_->bytes();
  std::vector<TelemetryEvent> events;
  std::size_t at = 0;
  for (; at + sizeof(TelemetryMessage) <= bytes.size(); at += sizeof(TelemetryMessage)) {
    TelemetryMessage message;
    std::memcpy(static_cast<void*>(&message), bytes.data() + at, sizeof message);
    events.push_back(event_of(message));
  }
  bytes.erase(0, at);
  return events;
}

namespace {

using Kind = TelemetryEvent::Kind;

// A driver may take so long to wake up, and a busy machine to look for one: a short program has missed nothing.
constexpr std::uint64_t kStartNs = 2'000'000'000;

void write_device(const hw::TelemetryDevice& device, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kTelemetryDevice);
  record.telemetry_device = {device.uuid_high, device.uuid_low, log.name(device.name), device.device};
  log.add(record);
}

void write_note(const std::string& text, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kNote);
  record.note = {hw::raw_now_ns(), log.name("telemetry"), log.name(text)};
  log.add(record);
}

}  // namespace

void TelemetryWatch::start() {
  if (!options_.on) return;
  begin_ns_ = hw::raw_now_ns();
  auto child = TelemetryChild::start(
      open_, {.power_hz = options_.hz, .state_hz = std::min(options_.hz, 1.0), .rests = options_.rests});
  if (child) {
    child_ = std::move(*child);
  } else {
    losses_.push_back({trace::Loss::kTelemetryStopped, 1, child.error().message});
  }
}

bool TelemetryWatch::receive() {
  const std::lock_guard lock(mutex_);
  if (child_) take(child_->receive());
  return !received_.empty();
}

void TelemetryWatch::take(std::vector<TelemetryEvent> events) {
  for (TelemetryEvent& event : events) {
    found_ = found_ || event.kind == Kind::kDevice;
    received_.push_back(std::move(event));
  }
}

void TelemetryWatch::write(host::HostLog& log) {
  const std::lock_guard lock(mutex_);
  for (const TelemetryEvent& event : received_) {
    switch (event.kind) {
      case Kind::kDevice:
        write_device(event.device, log);
        break;
      case Kind::kReading:
        write_reading(event.reading, log);
        break;
      case Kind::kNote:
        losses_.push_back({trace::Loss::kTelemetryStopped, 1, event.text});
        write_note(event.text, log);
        break;
      case Kind::kSlowed:
        losses_.push_back({trace::Loss::kTelemetrySlowed, 1, event.text});
        break;
      case Kind::kReady:
      case Kind::kCost:
      case Kind::kNone:
        break;
    }
  }
  received_.clear();
}

void TelemetryWatch::write_reading(const hw::Reading& reading, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kTelemetry);
  record.telemetry = {reading.ts_ns, reading.value, log.name(info_of(reading.metric).name), reading.device,
                      reading.pid};
  log.add(record);
}

void TelemetryWatch::read_activity_often() {
  const std::lock_guard lock(mutex_);
  if (child_) child_->read_activity_often();
}

void TelemetryWatch::stop() {
  const std::lock_guard lock(mutex_);
  if (!child_) return;
  const bool ended = child_->stop();
  take(child_->receive());
  child_.reset();
  if (ended || (!found_ && hw::raw_now_ns() - begin_ns_ < kStartNs)) return;
  losses_.push_back({trace::Loss::kTelemetryStopped, 1, "the driver did not answer at the end"});
}

void TelemetryWatch::finish(CaptureInfo& info) {
  stop();
  std::ranges::copy(losses_, std::back_inserter(info.losses));
  losses_.clear();
}

}  // namespace llmprof::record
