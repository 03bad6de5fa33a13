#pragma once
// Runs a program under the stack sampler until it has been sampled often enough, and gives back what the log says.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "host/stacks/stack_sampler.h"

namespace llmprof::host::testing {

struct SampledFrame {
  std::string function, file;
  std::uint32_t line = 0;
  wire::FrameKind kind = wire::FrameKind::kNative;
};

struct SampledStack {
  std::vector<SampledFrame> frames;  // innermost first
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t ts_ns = 0, weight_ns = 0;
  bool truncated = false;

  std::vector<std::string> functions() const;
  // Whether these functions follow one another, innermost first, in this order and without others between.
  bool has_chain(const std::vector<std::string>& functions) const;
};

struct Sampled {
  std::vector<SampledStack> stacks;
  StackStats stats;
  std::uint32_t root = 0;   // the process that was started
  std::string error, hint;  // why nothing was sampled

  // How many samples satisfy this.
  std::size_t count(const std::function<bool(const SampledStack&)>& what) const;
  std::string describe() const;  // the distinct stacks, for messages
};

// The program is killed when `enough` samples were read, or after a minute.
Sampled sample(const std::vector<std::string>& arguments, std::uint64_t enough, StackOptions options = {.hz = 997});

}  // namespace llmprof::host::testing
