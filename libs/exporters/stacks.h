#pragma once
// Call stacks of a run, and its time and bytes by stack: what flame graphs are made of.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exporters/exporter.h"

namespace llmprof::exporters {

struct Frame {
  std::string name;
  std::string file;       // "" unknown
  std::int64_t line = 0;  // 0 unknown
  std::string kind = {};  // "python", "native", "kernel"; "" unknown
};

// Distinct frames, numbered in order of their first use.
class Frames {
 public:
  std::uint32_t number(std::string_view name, std::string_view file = {}, std::int64_t line = 0);
  const std::vector<Frame>& all() const { return frames_; }

 private:
  std::vector<Frame> frames_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

// Every stack of the run, in memory: a stack is stored once however often it was seen.
class Stacks {
 public:
  // Rows of stack and frame, frames of a stack from the innermost out.
  Stacks(std::vector<Frame> frames, std::unordered_map<std::int64_t, std::vector<std::uint32_t>> stacks)
      : frames_(std::move(frames)), stacks_(std::move(stacks)) {}
  // Outermost first; empty if unknown.
  std::vector<const Frame*> frames(std::int64_t stack_id) const;
  std::string folded(std::int64_t stack_id) const;  // "main;step;forward"

 private:
  std::vector<Frame> frames_;
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> stacks_;
};

Result<Stacks> load_stacks(const trace::Run& run);

// What a stack is measured in.
enum class Weight : std::uint8_t {
  kGpuTime,        // ns of kernels on GPUs
  kKernels,        // their number
  kCpuTime,        // ns, from stack samples
  kCpuKernelTime,  // ns of kernels on a CPU device: BLAS calls
  kCopied,         // bytes that copies and fills moved
  kAllocated,      // bytes
  kCount
};
struct WeightName {
  std::string_view name, unit;
};
WeightName name_of(Weight weight);

struct StackWeight {
  std::vector<std::uint32_t> frames;  // outermost first, numbers of Frames
  Weight weight;
  std::int64_t value = 0;
  std::int64_t kernels = 0;                        // of kGpuTime: how many
  std::string_view stage, module, device, thread;  // "" none
};
// Sums by stack, operator and kernel. Kernels without a stack stand under stage, module and operator instead.
Result<void> each_stack(const Request& request, Frames& frames, const std::function<void(const StackWeight&)>& take);

}  // namespace llmprof::exporters
