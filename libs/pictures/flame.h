#pragma once
// Where GPU time, CPU time and bytes go by call path: Python functions, native functions, ranges, kernels, outermost
// first. Frames that only pass a call on (flame_wrappers.h) are left out of the one tree and in the other; layers of a
// model are one path. What is too small to draw is aggregated, so that the tree fits a page.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
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

// What one layer has of a node that stands for all layers.
struct FlameLayer {
  std::int32_t node = 0, layer = 0;
  std::array<double, 3> self{};
};

struct Flame {
  std::vector<FlameNode> nodes;    // parents first
  std::vector<FlameLayer> layers;  // by node, then layer; the heaviest, where they are very many
  std::array<double, 3> total{};
  std::array<double, 3> aggregated{};  // weight below nodes of kind "other"; its kernels are still named
  std::size_t wrappers = 0;            // functions that were left out because they only pass a call on
  std::string why;                     // why stacks are missing: "recorded without --stacks"
};

// All frames, before they are cut to what fits.
class FlameTree;
struct FlameTrees {
  FlameTrees();
  FlameTrees(FlameTrees&&) noexcept;
  FlameTrees& operator=(FlameTrees&&) noexcept;
  ~FlameTrees();
  std::unique_ptr<FlameTree> shown, with_wrappers;  // with_wrappers: null where there are none
  std::size_t wrappers = 0;
  std::string why;
};
// The derived tables must be in use.
Result<FlameTrees> flame_trees(const trace::Run& run);
// At most `most` nodes, the heaviest.
Flame cut(const FlameTrees& trees, std::size_t most);
std::optional<Flame> cut_with_wrappers(const FlameTrees& trees, std::size_t most);

inline constexpr std::size_t kFlameNodes = 4000;
Result<Flame> flame(const trace::Run& run, std::size_t most = kFlameNodes);

// Two trees laid over each other by name: nodes of both, with the weights of each.
struct FlameDiffNode {
  std::int32_t parent = -1;
  std::string name, kind;
  std::array<double, 3> before{}, after{};
};
std::vector<FlameDiffNode> flame_diff(const Flame& before, const Flame& after);

}  // namespace llmprof::pictures
