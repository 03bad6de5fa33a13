#pragma once
// Where GPU time, CPU time and bytes go by call path: Python functions, native functions, ranges, kernels, outermost
// first. Paths of little weight are aggregated, so that the tree fits a page.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::pictures {

inline constexpr std::array<std::string_view, 3> kFlameWeights{"gpu_ns", "cpu_ns", "bytes"};

struct FlameNode {
  std::int32_t parent = -1;      // before this one; -1 the root
  std::string name;              // "decode", "forward (model.py:12)"
  std::string kind;              // "root", "stage", "python", "native", "range", "module", "kernel", "copy", "other"
  std::array<double, 3> self{};  // by kFlameWeights, without those inside
};

struct Flame {
  std::vector<FlameNode> nodes;  // parents first
  std::array<double, 3> total{};
  std::array<double, 3> aggregated{};  // weight that stands in nodes of kind "other"
  std::string why;                     // why stacks are missing: "recorded without --stacks"
};

// At most `most` nodes, the heaviest. The derived tables must be in use.
Result<Flame> flame(const trace::Run& run, std::size_t most = 4000);

// Two trees laid over each other by name: nodes of both, with the weights of each.
struct FlameDiffNode {
  std::int32_t parent = -1;
  std::string name, kind;
  std::array<double, 3> before{}, after{};
};
std::vector<FlameDiffNode> flame_diff(const Flame& before, const Flame& after);

}  // namespace llmprof::pictures
