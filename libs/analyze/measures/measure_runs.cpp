// Measures of the whole run.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/measures/measure_values.h"
#include "base/human.h"

namespace llmprof::analyze {

namespace {

using From = const MeasureFrom&;

MeasureValue in_stages(From from) {
  const Coverage& all = from.summary.coverage;
  if (all.wall_ns <= 0) return {std::nullopt, "", "the run has no wall time"};
  return {static_cast<double>(all.in_stages_ns) / static_cast<double>(all.wall_ns),
          base::human_ns(static_cast<double>(all.wall_ns)) + " from the first to the last event", ""};
}

MeasureValue gpu_time(From from) {
  const Coverage& all = from.summary.coverage;
  if (all.gpu_ns <= 0) return {std::nullopt, "", "no kernel of a GPU was recorded"};
  return MeasureValue::seconds(all.gpu_ns);
}

MeasureValue of_gpu_time(From from, std::int64_t ns) {
  const Coverage& all = from.summary.coverage;
  if (all.gpu_ns <= 0) return {std::nullopt, "", "no kernel of a GPU was recorded"};
  return {static_cast<double>(ns) / static_cast<double>(all.gpu_ns),
          base::human_ns(static_cast<double>(all.gpu_ns)) + " of GPU time", ""};
}

std::string no_model(From from) {
  return from.summary.model_why.empty() ? "the model is not known" : from.summary.model_why;
}

// Of the device that held most: allocations if they were recorded, else what the driver says.
MeasureValue device_memory_peak(From from) {
  std::int64_t most = 0;
  for (const DeviceMemory& device : from.summary.device_memory.devices) {
    most = std::max(most, device.allocations > 0 ? device.peak_bytes : device.driver_peak_bytes.value_or(0));
  }
  if (most <= 0) return {std::nullopt, "", "neither allocations nor the driver's memory were recorded"};
  return MeasureValue::count(most);
}

MeasureValue host_memory_peak(From from) {
  if (!from.summary.host.peak) return {std::nullopt, "", "the memory of the processes was not read"};
  return MeasureValue::count(from.summary.host.peak->highest.rss_bytes);
}

MeasureValue host_cpu_time(From from) {
  if (from.summary.host.processes.empty()) return {std::nullopt, "", "the processes were not read"};
  std::int64_t ns = 0;
  for (const ProcessUsage& process : from.summary.host.processes) ns += process.user_ns + process.system_ns;
  return MeasureValue::seconds(ns);
}

MeasureValue over_used(From from, std::optional<double> DeviceTelemetry::*field, std::string_view why) {
  std::optional<double> total;
  for (const DeviceTelemetry& device : from.summary.telemetry.devices) {
    if (device.used && device.*field) total = total.value_or(0) + *(device.*field);
  }
  return known(total, 1, std::string(why));
}

MeasureValue recording_delay(From from) {
  MeasureValue value =
      known(from.summary.cost.delay_share, 1,
            from.summary.cost.why.empty() ? "what recording cost is not known" : from.summary.cost.why);
  if (value.value) value.of = base::human_ns(static_cast<double>(from.summary.coverage.wall_ns)) + " wall time";
  return value;
}

constexpr auto kLower = Better::kLower;
constexpr auto kHigher = Better::kHigher;
constexpr auto kNeither = Better::kNeither;

const MeasureRow kRows[] = {
    {{"wall", "s", "measured", kLower, "first to last event; begin and end of processes are events",
      "last end - first begin"},
     [](From from) { return MeasureValue::seconds(from.summary.coverage.wall_ns); }},
    {{"in_stages", "1", "measured", kNeither, "share of the run inside a stage", "union of all step windows / wall"},
     in_stages},
    {{"gpu_time", "s", "measured", kLower, "durations of the kernels of GPUs, added up",
      "sum over kernels, estimated graph nodes included"},
     gpu_time},
    {{"placed", "1", "measured", kHigher, "share of the GPU time that belongs to a stage and a known kernel",
      "such GPU time / gpu_time"},
     [](From from) { return of_gpu_time(from, from.summary.coverage.gpu_placed_ns); }},
    {{"estimated", "1", "inferred", kNeither,
      "share of the kernel time in graph launches that were not recorded node by node",
      "estimated kernel time / gpu_time"},
     [](From from) { return of_gpu_time(from, from.summary.coverage.estimated_ns); }},
    {{"kernels", "", "counted", kNeither, "kernels and BLAS calls",
      "rows of table kernel, and estimated nodes of graphs"},
     [](From from) { return MeasureValue::count(from.summary.coverage.kernels); }},
    {{"losses", "", "counted", kLower, "kinds of data that were lost", "rows of table loss with severity data_loss"},
     [](From from) { return MeasureValue::count(from.summary.coverage.data_losses); }},
    {{"parameters", "", "analytic", kNeither, "parameters of the model, tied ones once", "the model's graph"},
     [](From from) { return known(from.summary.parameters, 1, no_model(from)); }},
    {{"weights_read", "B", "analytic", kLower, "weights that one pass over the model reads", "the model's graph"},
     [](From from) { return known(from.summary.weights_read_bytes, 1, no_model(from)); }},
    {{"device_memory_peak", "B", "measured", kLower, "maximum memory in use on one device",
      "allocations at their peak; without them, the driver's highest reading"},
     device_memory_peak},
    {{"host_memory_peak", "B", "measured", kLower, "maximum resident memory of all processes together",
      "highest sum of the readings"},
     host_memory_peak},
    {{"host_cpu_time", "s", "measured", kLower, "CPU time of all processes", "user and system time, added up"},
     host_cpu_time},
    {{"energy", "J", "measured", kLower, "energy of the devices used", "energy counter, or power x time"},
     [](From from) { return over_used(from, &DeviceTelemetry::energy_j, "the energy of no device was read"); }},
    {{"power", "W", "measured", kNeither, "mean power of the devices used", "energy / time"},
     [](From from) { return over_used(from, &DeviceTelemetry::power_w, "the power of no device was read"); }},
    {{"highest_power", "W", "measured", kNeither, "highest power of the devices used",
      "highest reading of each, added up"},
     [](From from) { return over_used(from, &DeviceTelemetry::highest_power_w, "the power of no device was read"); }},
    {{"recording_delay", "1", "inferred", kLower, "share of the wall time that recording took from the program",
      "events x measured cost of one / wall"},
     recording_delay},
};

}  // namespace

std::span<const MeasureRow> run_measure_rows() { return kRows; }

// Measures by hardware counters: only of stages that were counted.

namespace {

using From = const MeasureFrom&;

MeasureValue hfu(From from) {
  MeasureValue value = known(from.counted->hfu, 1, "operations were not counted, or the peak is unknown");
  if (value.value && from.counted->work.flops_per_s)
    value.of = fmt::format("{} {}", base::human_rate(*from.counted->work.flops_per_s / *value.value, "FLOP/s"),
                           from.counted->hfu_type);
  return value;
}

// A percentage of the catalogue, as a fraction.
MeasureValue percentage(From from, std::string_view counter) {
  const auto found = std::ranges::find(from.counted->values, counter, &CounterValue::counter);
  if (found == from.counted->values.end()) return {std::nullopt, "", fmt::format("{} was not collected", counter)};
  return {found->value / 100, found->denominator, ""};
}

const MeasureRow kCountedRows[] = {
    {{"dram_bytes_per_step", "B", "counted", kLower, "bytes that the device's memory moved in a step",
      "read and written, mean of the measured steps"},
     [](From from) {
       return known(from.counted->work.dram_bytes, 1, "bytes of the device's memory were not counted");
     }},
    {{"flops_counted_per_step", "FLOP", "counted", kNeither, "floating-point operations that were executed in a step",
      "tensor cores, and plain cores where they were counted; mean of the measured steps"},
     [](From from) { return known(from.counted->work.flops, 1, "floating-point operations were not counted"); }},
    {{"hfu", "1", "counted", kHigher, "executed FLOP/s, of the peak",
      "flops_counted_per_step / median time of the steps that were not measured / peak FLOP/s of their type"},
     hfu},
    {{"redundancy", "", "counted", kLower, "bytes moved for each that must move",
      "dram_bytes_per_step / bytes that must move in the measured steps"},
     [](From from) {
       return known(from.counted->redundancy, 1, "bytes were not counted, or which of them must move is unknown");
     }},
    {{"tensor_busy", "1", "counted", kHigher, "tensor cores at work", "tensor_active_pct, mean of the measured steps"},
     [](From from) { return percentage(from, "tensor_active_pct"); }},
    {{"occupancy", "1", "counted", kNeither, "warps on the multiprocessors",
      "achieved_occupancy_pct, mean of the measured steps"},
     [](From from) { return percentage(from, "achieved_occupancy_pct"); }},
    {{"l2_hits", "1", "counted", kHigher, "sectors found in the L2 cache", "l2_hit_pct, mean of the measured steps"},
     [](From from) { return percentage(from, "l2_hit_pct"); }},
};

}  // namespace

std::span<const MeasureRow> counted_measure_rows() { return kCountedRows; }

}  // namespace llmprof::analyze
