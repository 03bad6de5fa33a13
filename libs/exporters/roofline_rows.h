#pragma once
// Lines of the roofline CSV (docs/format/import-ncu.md, Roofline): a kernel, a stage, or a class of kernels told apart
// in samples, under the roofs of its device.

#include <optional>
#include <string>
#include <vector>

#include "analyze/counters_summary.h"
#include "analyze/kernel_roofline.h"
#include "hw/peaks.h"

namespace llmprof::exporters {

struct RooflineRow {
  std::optional<std::int64_t> kernel_id;
  std::string name, device;  // name: of the kernel; "" of a stage
  double time_ns = 0;
  analyze::KernelRoofline point;
  std::string stage, scope, method;  // scope: "kernel", "stage", "unmixed"
  std::optional<double> l2_bytes, l1_bytes;
  std::optional<std::int64_t> measured;  // steps that the values of a stage are the mean of
  std::optional<double> error;           // of values that were told apart, relative
};

std::string roofline_header();
std::string roofline_line(const RooflineRow& row);

// Counters that a row of a kernel needs, as SQL LIKE patterns over metric names.
std::vector<std::string> roofline_row_metrics();
void fill_kernel(RooflineRow& row, const analyze::KernelCounters& counters, const std::vector<hw::Peak>& peaks);

RooflineRow stage_row(const analyze::CountedStage& stage, const std::vector<hw::Peak>& peaks);
// Bytes of memory, and their rate: samples know no operations. nullopt where its error is not known, or not below 1.
std::optional<RooflineRow> unmixed_row(const analyze::UnmixedClass& kernels, const std::vector<hw::Peak>& peaks);

}  // namespace llmprof::exporters
