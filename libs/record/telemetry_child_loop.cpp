// The process that reads devices: alone with a source and a pipe.

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "host/pace.h"
#include "record/telemetry_message.h"

namespace llmprof::record {
namespace {

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

}  // namespace

void run_telemetry_child(const TelemetryChild::Open& open, const TelemetryRates& rates, int events, int orders) {
  auto source = open();
  if (source) return Loop(**source, rates, events, orders).run();
  TelemetryMessage message;
  message.kind = source.error().code == ErrorCode::kNotFound ? Kind::kNone : Kind::kNote;
  message.set_text(source.error().message);
  (void)!::write(events, &message, sizeof message);
}

}  // namespace llmprof::record
