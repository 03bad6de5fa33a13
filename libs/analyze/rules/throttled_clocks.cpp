// Throttled clocks: times of a slower device.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::throttled_clocks {
namespace {

constexpr double kLeastSlow = 0.1;  // of the readings

std::optional<double> reference_mhz(const Summary& summary) {
  std::optional<double> lowest;
  for (const DeviceTelemetry& device : summary.telemetry.devices) {
    if (!device.used || !device.reference_clock_mhz) continue;
    lowest = std::min(lowest.value_or(*device.reference_clock_mhz), *device.reference_clock_mhz);
  }
  return lowest;
}

std::string reasons(const StageTelemetry& state) {
  std::string out;
  for (const ClockLimitShare& limit : state.clock_limits)
    out += fmt::format("{}{} in {} of the readings", out.empty() ? "" : ", ", limit.why, human_percent(limit.share));
  return out.empty() ? "the driver named no reason" : out;
}

Finding finding_of(const Summary& summary, const StageTelemetry& state, const Stage& stage) {
  Finding out{.stage = stage.name};
  const std::optional<double> reference = reference_mhz(summary);
  out.title = fmt::format("In {} the clock was more than {:.0f} % below its highest in {} of the readings", stage.name,
                          100 * (1 - kSlowClock), human_percent(state.slow_clock_share));
  out.text = fmt::format(
      "The times are those of a slower device: {}. Compare no run with this one before the clocks are alike.",
      reasons(state));
  const std::string rows =
      "SELECT ts_ns, device_id, metric, value, unit FROM telemetry WHERE metric LIKE '%clock%' OR metric LIKE "
      "'%limit%' ORDER BY ts_ns";
  out.add_fraction("slow_share", "readings with the clock below 90 % of its highest", state.slow_clock_share,
                   fmt::format("{} readings", state.clock_readings), "measured", rows);
  if (state.sm_clock_mhz)
    out.add_number("sm_clock", "mean clock of the multiprocessors", *state.sm_clock_mhz * 1e6, "Hz", "measured", rows);
  if (reference)
    out.add_number("device.reference_clock", "highest clock of the device", *reference * 1e6, "Hz", "measured");
  if (state.highest_temperature_c)
    out.add_number("highest_temperature", "highest temperature", state.highest_temperature_c, "°C", "measured", rows);
  const bool computes = stage.efficiency.bound == "compute";
  if (reference && state.sm_clock_mhz && computes && *state.sm_clock_mhz < *reference) {
    const double devices = std::max<std::int64_t>(1, summary.busy_devices);
    const double busy = static_cast<double>(stage.device_busy_ns) / devices,
                 gain = busy * (1 - *state.sm_clock_mhz / *reference);
    out.add_time("excess_at_low_clock",
                 fmt::format("at most so much less at {:.0f} MHz: {} of kernels bound by arithmetic, at {:.0f} MHz",
                             *reference, human_ns(busy), *state.sm_clock_mhz),
                 gain, "inferred");
  }
  out.advice = {"Cool the machine, raise the power limit or lock the clocks (nvidia-smi -lgc), and record again.",
                computes
                    ? "The stage is bound by arithmetic, which slows down with the clock."
                    : "The stage is not known to be bound by arithmetic: reading memory depends little on this clock."};
  out.next = "llmprof record --telemetry-hz 20 -o again -- PROGRAM";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  RuleResult out;
  std::int64_t readings = 0;
  for (const StageTelemetry& state : run.summary.telemetry.stages) {
    const Stage* stage = stage_named(run.summary, state.stage);
    if (stage == nullptr || is_preparation(state.stage) || !state.slow_clock_share) continue;
    readings += state.clock_readings;
    if (*state.slow_clock_share >= kLeastSlow) {
      out.findings.push_back(finding_of(run.summary, state, *stage));
      continue;
    }
    out.add_why(state.stage, fmt::format("{} of {} readings of the clock were low",
                                         human_percent(state.slow_clock_share), state.clock_readings));
  }
  if (readings == 0)
    return not_applicable(
        "0 readings of the clock lie in steps of the model, or the highest clock of the device is unknown");
  return out;
}

}  // namespace llmprof::analyze::throttled_clocks
