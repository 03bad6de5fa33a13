#pragma once
// A tree of call paths while weights are added to it, and the cut that makes it fit a page. Internal to libs/pictures.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pictures/flame.h"

namespace llmprof::pictures {

inline constexpr std::string_view kTooSmall = "frames too small to draw";

class FlameTree {
 public:
  FlameTree();
  static constexpr std::int32_t kRoot = 0;
  // The node of this name and kind inside `parent`, made if it is not there.
  std::int32_t child(std::int32_t parent, std::string_view name, std::string_view kind, bool wrapper = false);
  // layer: which of the layers that the node stands for; -1 none
  void add(std::int32_t node, std::size_t weight, double value, std::int32_t layer = -1);
  // The same without the frames that only pass a call on: what they took themselves is their callers'.
  FlameTree without_wrappers() const;
  std::size_t wrappers() const;  // functions
  std::array<double, 3> total() const;
  // The heaviest nodes, `most` at most: a budget of weight, since a frame stays if it takes more than those that go.
  // What is lighter becomes one node "other" inside the frame around it; the kernels below it keep their names, so that
  // device time ends in kernels whatever is left out between.
  Flame cut(std::size_t most) const;

 private:
  struct Node {
    std::int32_t parent, label;
    std::array<double, 3> self{};
  };
  struct Label {
    std::string kind, name;
    bool wrapper;
  };
  using Weights = std::array<double, 3>;
  using Layers = std::map<std::pair<std::int32_t, std::int32_t>, Weights>;  // by node and layer
  std::vector<Weights> totals() const;
  std::vector<std::size_t> order(const std::vector<Weights>& totals) const;
  std::vector<bool> named_leaves(std::size_t most) const;
  std::size_t kept(const std::vector<std::size_t>& order, const std::vector<bool>& named, std::size_t most) const;

  std::vector<Node> nodes_;  // parents first
  std::vector<Label> labels_;
  Layers layers_;
  std::unordered_map<std::string, std::int32_t> label_numbers_;
  std::unordered_map<std::uint64_t, std::int32_t> children_;  // parent and label -> node
};

}  // namespace llmprof::pictures
