#pragma once
// A tree of call paths while weights are added to it, and the cut that makes it fit a page. Internal to libs/pictures.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pictures/flame.h"

namespace llmprof::pictures {

class FlameTree {
 public:
  FlameTree();
  static constexpr std::int32_t kRoot = 0;
  // The node of this name and kind inside `parent`, made if it is not there.
  std::int32_t child(std::int32_t parent, std::string_view name, std::string_view kind);
  void add(std::int32_t node, std::size_t weight, double value) {
    nodes_[static_cast<std::size_t>(node)].self[weight] += value;
  }
  // The heaviest nodes, `most` at most; what is inside them and too light becomes one node "other" each.
  Flame cut(std::size_t most) const;

 private:
  struct Node {
    std::int32_t parent, label;
    std::array<double, 3> self{};
  };
  using Weights = std::array<double, 3>;
  std::vector<Weights> totals() const;
  std::vector<std::size_t> order(const std::vector<Weights>& totals) const;
  std::size_t kept(const std::vector<std::size_t>& order, std::size_t most) const;

  std::vector<Node> nodes_;                                  // parents first
  std::vector<std::pair<std::string, std::string>> labels_;  // kind, name
  std::unordered_map<std::string, std::int32_t> label_numbers_;
  std::unordered_map<std::uint64_t, std::int32_t> children_;  // parent and label -> node
};

}  // namespace llmprof::pictures
