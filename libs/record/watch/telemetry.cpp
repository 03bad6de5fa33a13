// The process that reads devices: alone with a source and a pipe.

#include "record/watch/telemetry.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "host/pace.h"

namespace llmprof::record {
namespace {

using hw::ReadGroup;
using Kind = WatchEvent::Kind;

constexpr std::uint64_t kSecondNs = 1'000'000'000;

// Parts of the CPU time that the groups may take. Power and energy also get what the others leave.
constexpr std::array<double, hw::kReadGroups> kParts{0.5, 0.25, 0.15, 0.05, 0.05};
constexpr double kLimitsHz = 1.0 / 60;
// In place of counters: a little more than the least time that NVML needs between two samples, and what ten a second
// take of a core.
constexpr std::uint64_t kActivityOftenNs = 101'000'000;
constexpr double kActivityOftenShare = 0.03;

constexpr char kActivityOften = 'a';  // a word of the parent's

class Loop {
 public:
  Loop(hw::TelemetrySource& source, const TelemetryRates& rates, WatchSender& sender, int orders)
      : source_(source),
        share_(rates.share),
        rests_(rates.rests),
        sender_(sender),
        orders_(orders),
        begin_ns_(wire::now_ns()) {
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
    sender_.say(Kind::kReady, "");
    sender_.send();
    for (const Group& group : groups_) read(group.group);  // the first time may take longer and says nothing
    do {
      sender_.send();
    } while (!stopped() && (tick(), true));
    read(ReadGroup::kPower);
    read(ReadGroup::kState);
    tell_costs();
  }

 private:
  struct Group {
    ReadGroup group;
    std::uint64_t wanted_ns;
    host::Pace pace;
    std::uint64_t reads = 0;
  };

  void tick() {
    const std::uint64_t now = wire::now_ns();
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
    const std::uint64_t now = wire::now_ns();
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
    if (order == kActivityOften) {
      activity.wanted_ns = kActivityOftenNs;
      activity.pace = host::Pace(kActivityOftenNs, kActivityOftenShare);
    }
    return true;
  }

  void read(ReadGroup group) {
    readings_.clear();
    source_.read(group, readings_);
    for (const hw::Reading& reading : readings_) sender_.add({{.kind = Kind::kReading, .reading = reading}, "", {}});
    for (const std::string& text : source_.take_notes()) note(text);
  }

  void note(const std::string& text) {
    sender_.loss(trace::Loss::kTelemetryStopped, 1, text);
    sender_.say(Kind::kNote, text);
  }

  void tell(const hw::TelemetryDevice& device) {
    sender_.add({{.kind = Kind::kDevice,
                  .device = device.device,
                  .is_gpu = device.kind == "gpu",
                  .uuid_high = device.uuid_high,
                  .uuid_low = device.uuid_low},
                 device.name,
                 {}});
  }

  void tell_own_time() {
    if (source_.devices().empty()) return;
    const double cpu_s = static_cast<double>(wire::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9;
    const std::uint32_t device = source_.devices().front().device;
    const hw::Reading reading{hw::MetricId::kSamplerCpu, device, 0, wire::now_ns(), cpu_s};
    sender_.add({{.kind = Kind::kReading, .reading = reading}, "", {}});
  }

  void tell_costs() {
    const std::uint64_t lived_ns = wire::now_ns() - begin_ns_;
    for (const Group& group : groups_) {
      const auto seconds = static_cast<double>(lived_ns) * 1e-9;
      const double wanted = static_cast<double>(lived_ns) / static_cast<double>(group.wanted_ns);
      if (wanted < 5 || static_cast<double>(group.reads) > 0.7 * wanted) continue;
      sender_.say(Kind::kSlowed,
                  fmt::format("{}: {:.2g} readings a second, wanted {:.2g}", name_of(group.group),
                              static_cast<double>(group.reads) / seconds, 1e9 / static_cast<double>(group.wanted_ns)));
    }
    for (const hw::CallCost& cost : source_.costs()) {
      const auto calls = static_cast<double>(cost.calls);
      sender_.say(Kind::kCost, fmt::format("nvml{}: {} calls, {:.3f} ms of CPU time and {:.3f} ms each", cost.call,
                                           cost.calls, static_cast<double>(cost.cpu_ns) * 1e-6 / calls,
                                           static_cast<double>(cost.wall_ns) * 1e-6 / calls));
    }
    if (sender_.dropped() > 0) note(fmt::format("{} messages were dropped: nobody took them", sender_.dropped()));
  }

  hw::TelemetrySource& source_;
  double share_;
  wire::Rests rests_;
  WatchSender& sender_;
  int orders_;
  std::uint64_t begin_ns_;
  std::vector<Group> groups_;
  std::vector<hw::Reading> readings_;
};

}  // namespace

Result<std::unique_ptr<WatchChild>> start_telemetry(const TelemetryOpen& open, const TelemetryRates& rates) {
  return WatchChild::start([&](WatchSender& sender, int orders) {
    auto source = open();
    if (source) return Loop(**source, rates, sender, orders).run();
    const bool none = source.error().code == ErrorCode::kNotFound;
    if (!none) sender.loss(trace::Loss::kTelemetryStopped, 1, source.error().message);
    sender.say(none ? Kind::kNone : Kind::kNote, source.error().message);
  });
}

void TelemetryWatch::start() {
  if (!options_.on) return;
  begin(start_telemetry(open_,
                        {.power_hz = options_.hz, .state_hz = std::min(options_.hz, 1.0), .rests = options_.rests}));
}

void TelemetryWatch::read_activity_often() { tell(kActivityOften); }

}  // namespace llmprof::record
