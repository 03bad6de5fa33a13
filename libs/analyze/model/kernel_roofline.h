#pragma once
// Where one kernel stands under the roofs of its device, from hardware counters by NVIDIA's metric names. Pure.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw/peaks.h"

namespace llmprof::analyze {

struct KernelCounters {
  double time_ns = 0;
  std::map<std::string, double, std::less<>> values;  // by metric, in base units (docs/format/import-ncu.md)
};

struct KernelRoofline {
  std::optional<double> flops;         // nullopt: no counter of floating-point operations is there
  std::optional<double> tensor_flops;  // the part of it done by tensor cores
  std::optional<double> dram_bytes;
  std::optional<double> flops_per_s, bytes_per_s;
  std::optional<double> flops_per_byte;  // arithmetic intensity at the device's memory
  std::string type;                      // the arithmetic that needs the most time at its peak: "bfloat16"
  std::optional<double> peak_flops_per_s, peak_bytes_per_s;
  std::string peak_flops_source, peak_bytes_source;  // "ncu" (at the clocks of the profile) or a peak's own source
  std::string bound;                                 // compute or memory; "" if a peak or a count is missing
  std::optional<double> share_of_roof;               // time at the roof / time measured
  std::vector<std::string> missing;                  // in words
};

// The peak of an arithmetic as KernelRoofline::type names it, "float32 (plain cores)"; nullptr if it is unknown.
const hw::Peak* peak_of_arithmetic(const std::string& type, const std::vector<hw::Peak>& peaks);

// Counters this needs, as SQL LIKE patterns over metric names.
std::vector<std::string> roofline_metrics();

// `peaks` of the device stand in for what the counters do not tell.
KernelRoofline kernel_roofline(const KernelCounters& counters, const std::vector<hw::Peak>& peaks);

}  // namespace llmprof::analyze
