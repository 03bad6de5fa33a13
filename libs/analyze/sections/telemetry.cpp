#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/energy.h"
#include "analyze/sections/sections.h"
#include "hw/telemetry/metrics.h"

namespace llmprof::analyze {

namespace {

constexpr std::int64_t kLeastEnergyNs = 1'000'000'000;  // shorter stages: edges weigh too much
constexpr double kLeastCovered = 0.95;                  // of a stage's time, by readings
constexpr double kLeastInside = 0.9;                    // of the time between two samples of activity
constexpr std::int64_t kSmallGapNs = 20'000'000;        // between windows: the state of a device does not change in it

using ByMetric = std::map<std::string, Series, std::less<>>;
using ByDevice = std::map<std::int64_t, ByMetric>;

Result<ByDevice> read_series(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "telemetry_readings"));
  ByDevice devices;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const std::string& metric = columns.names[static_cast<std::size_t>(columns.values[1][i])];
    devices[columns.values[0][i]][metric].push_back(
        {columns.values[2][i], static_cast<double>(columns.values[3][i]) * 1e-3});
  }
  return devices;
}

Result<std::vector<DeviceTelemetry>> read_devices(const trace::Run& run, const AnalysisContext& analysis,
                                                  Telemetry& telemetry) {
  LLMPROF_LET(std::vector<DeviceTelemetry> devices, ask_rows<DeviceTelemetry>(run, "telemetry_devices"));
  for (DeviceTelemetry& device : devices) {
    const auto known = std::ranges::find(analysis.device_ids, device.device_id);
    device.used = known != analysis.device_ids.end() &&
                  !analysis.devices[static_cast<std::size_t>(known - analysis.device_ids.begin())].idle;
    if (device.sampler_cpu_s && device.end_ns > device.begin_ns) {
      telemetry.sampler_cpu_s = device.sampler_cpu_s;
      telemetry.sampler_core_share =
          *device.sampler_cpu_s / (static_cast<double>(device.end_ns - device.begin_ns) * 1e-9);
    }
  }
  const bool any = std::ranges::any_of(devices, &DeviceTelemetry::used);
  for (DeviceTelemetry& device : devices) device.used = device.used || !any;
  return devices;
}

const Series& series_of(const ByMetric& metrics, std::string_view metric) {
  static const Series kNone;
  const auto found = metrics.find(metric);
  return found == metrics.end() ? kNone : found->second;
}

struct EnergySource {
  EnergySegments segments;
  std::string name;
};

// The counter misses nothing between two readings; power does.
EnergySource energy_source(const ByMetric& metrics) {
  EnergySource source{segments_of_counter(series_of(metrics, "energy_j")), "counter"};
  if (source.segments.segments.empty()) source = {segments_of_power(series_of(metrics, "power_w")), "power"};
  if (source.segments.segments.empty()) source.name = "";
  return source;
}

std::vector<double> highest_in_parts(const Series& series) {
  constexpr std::int64_t kParts = 60;
  if (series.size() < 3) return {};
  const std::int64_t begin_ns = series.front().ts_ns;
  const std::int64_t part_ns = (series.back().ts_ns - begin_ns) / kParts + 1;
  std::vector<std::optional<double>> highest(kParts);
  for (const SeriesPoint& point : series) {
    std::optional<double>& part = highest[static_cast<std::size_t>((point.ts_ns - begin_ns) / part_ns)];
    part = std::max(part.value_or(point.value), point.value);
  }
  std::vector<double> out;
  for (const std::optional<double>& part : highest) out.push_back(part ? *part : out.back());  // the first has one
  return out;
}

void complete(DeviceTelemetry& device, const ByMetric& metrics) {
  const EnergySource source = energy_source(metrics);
  if (!source.name.empty()) {
    const EnergyOver whole = energy_over(source.segments, {{device.begin_ns, device.end_ns}});
    device.energy_j = whole.joules;
    if (whole.covered_ns > 0) device.power_w = whole.joules / (static_cast<double>(whole.covered_ns) * 1e-9);
  }
  const Series& power = series_of(metrics, "power_w");
  for (const SeriesPoint& point : power) {
    device.highest_power_w = std::max(device.highest_power_w.value_or(0), point.value);
  }
  device.power_over_time_w = highest_in_parts(power);
  const Series& energy = series_of(metrics, "energy_j");
  const Series& most = energy.size() > power.size() ? energy : power;
  if (most.size() > 1 && most.back().ts_ns > most.front().ts_ns) {
    device.readings_per_s =
        static_cast<double>(most.size() - 1) / (static_cast<double>(most.back().ts_ns - most.front().ts_ns) * 1e-9);
  }
}

std::vector<Window> without_small_gaps(const std::vector<Window>& windows) {
  std::vector<Window> merged;
  for (const Window& window : windows) {
    if (!merged.empty() && window.begin_ns - merged.back().end_ns < kSmallGapNs) {
      merged.back().end_ns = std::max(merged.back().end_ns, window.end_ns);
    } else {
      merged.push_back(window);
    }
  }
  return merged;
}

// The part of [begin, end) inside the windows.
std::int64_t inside(const std::vector<Window>& windows, std::int64_t begin_ns, std::int64_t end_ns) {
  auto at = std::upper_bound(windows.begin(), windows.end(), begin_ns,
                             [](std::int64_t time, const Window& window) { return time < window.end_ns; });
  std::int64_t sum = 0;
  for (; at != windows.end() && at->begin_ns < end_ns; ++at) {
    sum += std::max<std::int64_t>(0, std::min(end_ns, at->end_ns) - std::max(begin_ns, at->begin_ns));
  }
  return sum;
}

struct Mean {
  double sum = 0, lowest = 0, highest = 0;
  std::int64_t count = 0;
  void add(double value) {
    lowest = count == 0 ? value : std::min(lowest, value);
    highest = count == 0 ? value : std::max(highest, value);
    sum += value;
    ++count;
  }
  std::optional<double> value(double factor = 1) const {
    return count > 0 ? std::optional(factor * sum / static_cast<double>(count)) : std::nullopt;
  }
};

void add_inside(
    const Series& series, const std::vector<Window>& windows, Mean& mean,
    const std::function<void(double)>& each = [](double) {}) {
  for (const SeriesPoint& point : series) {
    if (inside(windows, point.ts_ns, point.ts_ns + 1) == 0) continue;
    mean.add(point.value);
    each(point.value);
  }
}

// A reading of activity is about the time since the one before.
void add_activity(const Series& series, const std::vector<Window>& windows, Mean& mean) {
  for (std::size_t i = 1; i < series.size(); ++i) {
    const std::int64_t length = series[i].ts_ns - series[i - 1].ts_ns;
    const std::int64_t part = inside(windows, series[i - 1].ts_ns, series[i].ts_ns);
    if (length > 0 && static_cast<double>(part) >= kLeastInside * static_cast<double>(length))
      mean.add(series[i].value);
  }
}

class StageReader {
 public:
  StageReader(const Telemetry& telemetry, const ByDevice& devices) {
    for (const DeviceTelemetry& device : telemetry.devices) {
      const auto found = devices.find(device.device_id);
      if (!device.used || found == devices.end()) continue;
      used_.push_back({&device, &found->second, energy_source(found->second)});
    }
  }

  StageTelemetry read(const Stage& stage, const std::vector<Window>& windows) const {
    StageTelemetry out{.stage = stage.name, .time_ns = stage.time_ns, .tokens = stage.tokens};
    add_energy(windows, out);
    const std::vector<Window> merged = without_small_gaps(windows);
    add_state(merged, out);
    add_activities(merged, out);
    return out;
  }

 private:
  struct Used {
    const DeviceTelemetry* device;
    const ByMetric* metrics;
    EnergySource energy;
  };

  void add_energy(const std::vector<Window>& windows, StageTelemetry& out) const {
    const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
    if (out.time_ns < kLeastEnergyNs) {
      out.energy_why = fmt::format("windows total {:.2g} s of 1 s needed", seconds(out.time_ns));
      return;
    }
    double joules = 0, squares = 0;
    for (const Used& used : used_) {
      const EnergyOver over = energy_over(used.energy.segments, windows);
      const double covered = static_cast<double>(over.covered_ns) / static_cast<double>(out.time_ns);
      if (used.energy.name.empty() || covered < kLeastCovered) {
        out.energy_why = used.energy.name.empty() ? "neither energy nor power were read"
                                                  : fmt::format("readings cover {:.0f} % of its time", 100 * covered);
        return;
      }
      joules += over.joules / covered;
      squares += over.error_j * over.error_j;
      out.energy_source = used.energy.name;
    }
    out.energy_j = joules;
    out.energy_error_j = std::sqrt(squares);
    out.power_w = joules / seconds(out.time_ns);
    if (out.tokens <= 0) return;
    out.joules_per_token = joules / static_cast<double>(out.tokens);
    out.joules_per_token_error = *out.energy_error_j / static_cast<double>(out.tokens);
  }

  void add_state(const std::vector<Window>& windows, StageTelemetry& out) const {
    Mean sm, memory, temperature, limits, slow;
    std::map<std::string_view, std::int64_t> held;
    for (const Used& used : used_) {
      const std::optional<double> reference = used.device->reference_clock_mhz;
      add_inside(series_of(*used.metrics, "sm_clock_mhz"), windows, sm, [&](double mhz) {
        if (reference && *reference > 0) slow.add(mhz < kSlowClock * *reference ? 1 : 0);
      });
      add_inside(series_of(*used.metrics, "memory_clock_mhz"), windows, memory);
      add_inside(series_of(*used.metrics, "temperature_c"), windows, temperature);
      add_inside(series_of(*used.metrics, "clock_limits"), windows, limits, [&](double bits) {
        if (!(bits >= 0 && bits < 1e15)) return;
        for (const hw::ClockLimit& limit : hw::clock_limits()) {
          if ((static_cast<std::uint64_t>(bits) & limit.bit) != 0) ++held[limit.words];
        }
      });
    }
    out.clock_readings = sm.count;
    out.sm_clock_mhz = sm.value();
    if (sm.count > 0) out.lowest_sm_clock_mhz = sm.lowest;
    if (sm.count == 0) out.clock_why = "no reading of the clock lies in it";
    out.memory_clock_mhz = memory.value();
    out.temperature_c = temperature.value();
    if (temperature.count > 0) out.highest_temperature_c = temperature.highest;
    out.slow_clock_share = slow.value();
    for (const auto& [why, count] : held) {
      out.clock_limits.push_back({std::string(why), static_cast<double>(count) / static_cast<double>(limits.count)});
    }
    std::ranges::stable_sort(out.clock_limits, std::greater<>(), &ClockLimitShare::share);
  }

  void add_activities(const std::vector<Window>& windows, StageTelemetry& out) const {
    Mean sm, occupancy, tensor, dram;
    bool any = false;
    for (const Used& used : used_) {
      any = any || !series_of(*used.metrics, "sm_active").empty();
      add_activity(series_of(*used.metrics, "sm_active"), windows, sm);
      add_activity(series_of(*used.metrics, "sm_occupancy"), windows, occupancy);
      add_activity(series_of(*used.metrics, "tensor_active"), windows, tensor);
      add_activity(series_of(*used.metrics, "dram_active"), windows, dram);
    }
    out.activity_readings = sm.count;
    out.sm_active = sm.value(0.01);
    out.sm_occupancy = occupancy.value(0.01);
    out.tensor_active = tensor.value(0.01);
    out.dram_active = dram.value(0.01);
    if (!any) out.activity_why = "the device does not tell its activity (GPM: Hopper and later)";
    if (any && sm.count == 0) out.activity_why = "no time between two readings lies in it";
  }

  std::vector<Used> used_;
};

// What the term of the clock can say without the clock that the peaks were measured at.
void tell_waterfalls(Summary& summary) {
  for (Waterfall& waterfall : summary.waterfalls) {
    const auto stage = std::ranges::find(summary.telemetry.stages, waterfall.stage, &StageTelemetry::stage);
    if (waterfall.on_cpu || stage == summary.telemetry.stages.end()) continue;
    for (WaterfallTerm& term : waterfall.terms) {
      if (term.name != "clock" || term.ns) continue;
      term.why = stage->sm_clock_mhz
                     ? fmt::format("mean clock {:.0f} MHz; at which clock the peaks were measured is not known",
                                   *stage->sm_clock_mhz)
                     : stage->clock_why;
    }
  }
}

}  // namespace

Result<DeviceEnergy> device_energy(const trace::Run& run, const AnalysisContext& analysis) {
  DeviceEnergy out;
  Telemetry telemetry;
  LLMPROF_LET(const std::vector<DeviceTelemetry> devices, read_devices(run, analysis, telemetry));
  LLMPROF_LET(const ByDevice series, read_series(run));
  for (const DeviceTelemetry& device : devices) {
    const auto found = series.find(device.device_id);
    if (!device.used || found == series.end()) continue;
    EnergySource source = energy_source(found->second);
    if (!source.name.empty()) out.devices.push_back(std::move(source.segments));
  }
  if (out.devices.empty()) out.why = devices.empty() ? "no device was read" : "neither energy nor power were read";
  return out;
}

Result<void> fill_telemetry(const trace::Run& run, const AnalysisContext& analysis, Summary& summary) {
  Telemetry& telemetry = summary.telemetry;
  LLMPROF_LET(telemetry.devices, read_devices(run, analysis, telemetry));
  if (telemetry.devices.empty()) return {};
  LLMPROF_LET(const ByDevice series, read_series(run));
  for (DeviceTelemetry& device : telemetry.devices) {
    if (const auto found = series.find(device.device_id); found != series.end()) complete(device, found->second);
  }
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "step_windows"));
  std::map<std::string, std::vector<Window>, std::less<>> windows;
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    windows[steps.names[static_cast<std::size_t>(steps.values[0][i])]].push_back(
        {steps.values[1][i], steps.values[2][i]});
  }
  const StageReader reader(telemetry, series);
  for (const Stage& stage : summary.stages)
    telemetry.stages.push_back(reader.read(stage, union_of(windows[stage.name])));
  tell_waterfalls(summary);
  return {};
}

namespace {

constexpr std::int64_t kLongestSegmentNs = 2'000'000'000;  // longer ones are a pause of the reader, not a reading

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Usual time from one change of the value to the next.
std::int64_t change_ns(const Series& series) {
  std::vector<std::int64_t> times;
  std::int64_t last_ns = 0;
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (series[i].value == series[i - 1].value) continue;
    if (last_ns != 0) times.push_back(series[i].ts_ns - last_ns);
    last_ns = series[i].ts_ns;
  }
  return median(std::move(times));
}

std::int64_t usual_period_ns(const Series& series) {
  std::vector<std::int64_t> times;
  for (std::size_t i = 1; i < series.size(); ++i) times.push_back(series[i].ts_ns - series[i - 1].ts_ns);
  return median(std::move(times));
}

template <class Joules>
EnergySegments segments_of(const Series& series, const Joules& joules) {
  EnergySegments out;
  const std::int64_t period_ns = usual_period_ns(series);
  out.blur_ns = std::max(period_ns, change_ns(series));
  const std::int64_t longest_ns = std::max(kLongestSegmentNs, 5 * period_ns);
  for (std::size_t i = 1; i < series.size(); ++i) {
    const SeriesPoint& a = series[i - 1];
    const SeriesPoint& b = series[i];
    if (b.ts_ns <= a.ts_ns || b.ts_ns - a.ts_ns > longest_ns) continue;
    const double amount = joules(a, b);
    if (amount >= 0) out.segments.push_back({a.ts_ns, b.ts_ns, amount});
  }
  return out;
}

double watts_of(const EnergySegment& segment) {
  return segment.joules / (static_cast<double>(segment.end_ns - segment.begin_ns) * 1e-9);
}

// The highest less the lowest power of the run. Counters move in steps, so single segments say too much: those of a few
// blurs together.
double swing_watts(const EnergySegments& energy) {
  double lowest = INFINITY, highest = 0;
  EnergySegment sum;
  for (const EnergySegment& segment : energy.segments) {
    if (sum.end_ns != segment.begin_ns) sum = {segment.begin_ns, segment.begin_ns, 0};
    sum.end_ns = segment.end_ns;
    sum.joules += segment.joules;
    if (sum.end_ns - sum.begin_ns < 3 * energy.blur_ns) continue;
    lowest = std::min(lowest, watts_of(sum));
    highest = std::max(highest, watts_of(sum));
    sum = {sum.end_ns, sum.end_ns, 0};
  }
  return highest > 0 ? highest - lowest : 0;
}

}  // namespace

EnergySegments segments_of_counter(const Series& joules) {
  return segments_of(joules, [](const SeriesPoint& a, const SeriesPoint& b) { return b.value - a.value; });
}

EnergySegments segments_of_power(const Series& watts) {
  return segments_of(watts, [](const SeriesPoint& a, const SeriesPoint& b) {
    return (a.value + b.value) / 2 * static_cast<double>(b.ts_ns - a.ts_ns) * 1e-9;
  });
}

EnergyOver EnergyCursor::over(const Window& window) {
  EnergyOver out;
  const std::vector<EnergySegment>& all = energy_->segments;
  while (next_ < all.size() && all[next_].end_ns <= window.begin_ns) ++next_;
  for (std::size_t at = next_; at < all.size() && all[at].begin_ns < window.end_ns; ++at) {
    const std::int64_t inside = std::min(all[at].end_ns, window.end_ns) - std::max(all[at].begin_ns, window.begin_ns);
    if (inside <= 0) continue;
    out.covered_ns += inside;
    out.joules += all[at].joules * static_cast<double>(inside) / static_cast<double>(all[at].end_ns - all[at].begin_ns);
  }
  return out;
}

EnergyOver energy_over(const EnergySegments& energy, const std::vector<Window>& windows) {
  EnergyOver out;
  EnergyCursor cursor(energy);
  for (const Window& window : windows) {
    const EnergyOver each = cursor.over(window);
    out.covered_ns += each.covered_ns, out.joules += each.joules;
  }
  double squares = 0;
  const auto add_edge = [&](std::int64_t gap_ns) {
    const double seconds = static_cast<double>(std::min(gap_ns, energy.blur_ns)) * 1e-9 / 2;
    squares += seconds * seconds;
  };
  for (std::size_t i = 0; i < windows.size(); ++i) {
    add_edge(i == 0 ? INT64_MAX : windows[i].begin_ns - windows[i - 1].end_ns);
    add_edge(i + 1 == windows.size() ? INT64_MAX : windows[i + 1].begin_ns - windows[i].end_ns);
  }
  out.error_j = swing_watts(energy) * std::sqrt(squares);
  return out;
}

}  // namespace llmprof::analyze
