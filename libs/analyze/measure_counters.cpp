// Measures by hardware counters: only of stages that were counted.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/measure_values.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace {

using From = const MeasureFrom&;

MeasureValue dram_bytes_per_step(From from) {
  return known(from.counted->work.dram_bytes, 1, "bytes of the device's memory were not counted");
}
MeasureValue flops_counted_per_step(From from) {
  return known(from.counted->work.flops, 1, "floating-point operations were not counted");
}

MeasureValue hfu(From from) {
  MeasureValue value = known(from.counted->hfu, 1, "operations were not counted, or the peak is unknown");
  if (value.value && from.counted->work.flops_per_s)
    value.of = fmt::format("{} {}", base::human_rate(*from.counted->work.flops_per_s / *value.value, "FLOP/s"),
                           from.counted->hfu_type);
  return value;
}

MeasureValue redundancy(From from) {
  return known(from.counted->redundancy, 1, "bytes were not counted, or which of them must move is unknown");
}

// A percentage of the catalogue, as a fraction.
MeasureValue percentage(From from, std::string_view counter) {
  const auto found = std::ranges::find(from.counted->values, counter, &CounterValue::counter);
  if (found == from.counted->values.end()) return {std::nullopt, "", fmt::format("{} was not collected", counter)};
  return {found->value / 100, found->denominator, ""};
}
MeasureValue tensor_busy(From from) { return percentage(from, "tensor_active_pct"); }
MeasureValue occupancy(From from) { return percentage(from, "achieved_occupancy_pct"); }
MeasureValue l2_hits(From from) { return percentage(from, "l2_hit_pct"); }

constexpr Better kHigher = Better::kHigher, kLower = Better::kLower, kNeither = Better::kNeither;

const MeasureRow kRows[] = {
    {{"dram_bytes_per_step", "B", "counted", kLower, "bytes that the device's memory moved in a step",
      "read and written, mean of the measured steps"},
     dram_bytes_per_step},
    {{"flops_counted_per_step", "FLOP", "counted", kNeither, "floating-point operations that were executed in a step",
      "tensor cores, and plain cores where they were counted; mean of the measured steps"},
     flops_counted_per_step},
    {{"hfu", "1", "counted", kHigher, "executed FLOP/s, of the peak",
      "flops_counted_per_step / median time of the steps that were not measured / peak FLOP/s of their type"},
     hfu},
    {{"redundancy", "", "counted", kLower, "bytes moved for each that must move",
      "dram_bytes_per_step / bytes that must move in the measured steps"},
     redundancy},
    {{"tensor_busy", "1", "counted", kHigher, "tensor cores at work", "tensor_active_pct, mean of the measured steps"},
     tensor_busy},
    {{"occupancy", "1", "counted", kNeither, "warps on the multiprocessors",
      "achieved_occupancy_pct, mean of the measured steps"},
     occupancy},
    {{"l2_hits", "1", "counted", kHigher, "sectors found in the L2 cache", "l2_hit_pct, mean of the measured steps"},
     l2_hits},
};

}  // namespace

std::span<const MeasureRow> counted_measure_rows() { return kRows; }

}  // namespace llmprof::analyze
