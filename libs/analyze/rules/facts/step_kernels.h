#pragma once
// Kernels of some steps of each stage, in the order in which the devices executed them. At most kSampledSteps steps of
// a stage are read, evenly chosen, so that a long run costs no more than a short one.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct StepKernel {
  std::int64_t step_id = 0, device_id = 0, stream = 0, begin_ns = 0, end_ns = 0;
  std::int64_t stage = 0, name = 0, op = 0;  // codes into StepKernels::names
  bool product = false;                      // of a BLAS call
  bool estimated = false;                    // a node of a graph launch that was not recorded node by node

  std::int64_t time_ns() const { return end_ns - begin_ns; }
};

struct StepKernels {
  std::vector<StepKernel> kernels;         // by step, device, stream, begin
  std::vector<std::string> names;          // code -> text
  std::map<std::string, double> scale;     // per stage: its steps / those that were read
  std::map<std::string, std::int64_t> of;  // per stage: steps that were read

  const std::string& text(std::int64_t code) const { return names[static_cast<std::size_t>(code)]; }
};

inline constexpr int kSampledSteps = 128;

// Of GPUs only; stages load and warm-up are left out.
Result<StepKernels> read_step_kernels(const trace::Run& run);

// What kernels do, told from their names.
bool moves_elements(std::string_view kernel);  // element-wise, copy, index, concatenate, norm, plain reduction
bool is_attention(std::string_view kernel);
bool is_collective(std::string_view kernel);
bool is_product(std::string_view kernel);  // a matrix product

}  // namespace llmprof::analyze
