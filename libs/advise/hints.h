#pragma once
// What an earlier run of the same program tells: which kernels are hot, and by which range its stage can be found.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::advise {

struct HotKernel {
  std::string function;  // as ncu's --kernel-name means it: without namespaces and template arguments
  double share = 0;      // of the stage's GPU time
  std::int64_t launches = 0;
};

// A range that begins and ends each step of the stage.
struct StageRange {
  std::string name, domain;
  bool push_pop = true;
  bool numbered = false;   // the steps' names differ in their digits; `name` is that of one step
  bool nvtx = true;        // false: a range that only another tool heard, such as torch's record_function
  std::int64_t count = 0;  // how often one of them was opened
};

struct Hints {
  std::string stage;
  std::int64_t steps = 0;
  std::vector<StageRange> ranges;                          // one, or none when the stage was inferred
  std::vector<HotKernel> kernels;                          // most time first, until they hold most of the stage's time
  double share = 0;                                        // of the stage's GPU time, in these
  std::int64_t launches_in_step = 0, launches_before = 0;  // of these: in one step, before the third step of the stage
};

Result<Hints> hints_of(const trace::Run& run, const std::string& stage);

// "void at::native::(anonymous namespace)::softmax<4>(float*)" is "softmax"; "" if there is no such name in it.
std::string function_of(std::string_view kernel);
// "^(softmax|gemm_kernel)$", every name escaped; very long ones cut, with ".*" for the rest.
std::string kernel_regex(const std::vector<HotKernel>& kernels);

}  // namespace llmprof::advise
