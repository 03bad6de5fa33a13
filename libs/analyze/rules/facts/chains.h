#pragma once
// Runs of element-wise kernels that follow each other on a stream: each reads what the one before wrote, so one kernel
// could do the work of all.

#include <string>
#include <vector>

#include "analyze/rules/facts/step_kernels.h"

namespace llmprof::analyze {

// Chains of a stage between the same two operators, all steps.
struct ChainGroup {
  std::string after, before;           // operator, "attention", or the kernel; "" begin or end of the step
  double chains = 0, kernels = 0;      // of all steps
  double time_ns = 0, longest_ns = 0;  // of their kernels; of the longest of each chain
  double idle_ns = 0;                  // between the kernels of a chain

  double gain_ns() const { return time_ns - longest_ns + idle_ns; }
};

struct StageChains {
  std::string stage;
  std::int64_t steps_read = 0;
  double steps = 0;
  double kernels = 0;              // of all steps, of any kind
  double element_kernels = 0;      // of these, element-wise ones, in chains or not
  bool estimated = false;          // times of some are estimated (nodes of graphs)
  std::vector<ChainGroup> groups;  // most to gain first

  ChainGroup total() const;
};

inline constexpr std::int64_t kChainGapNs = 100'000;  // a longer pause has another cause than the launch of a kernel

std::vector<StageChains> chains_of(const StepKernels& kernels);

}  // namespace llmprof::analyze
