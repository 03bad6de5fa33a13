#include <map>

#include "pictures/flame.h"

namespace llmprof::pictures {
namespace {

// Nodes of one tree laid into the union; a node of the same name and kind in the same place is the same one.
class Union {
 public:
  void lay(const Flame& flame, std::array<double, 3> FlameDiffNode::*weights) {
    std::vector<std::int32_t> place;
    for (const FlameNode& node : flame.nodes) {
      const std::int32_t parent = node.parent < 0 ? -1 : place[static_cast<std::size_t>(node.parent)];
      const auto [found, is_new] =
          numbers_.try_emplace({parent, node.kind, node.name}, static_cast<std::int32_t>(nodes_.size()));
      if (is_new) nodes_.push_back({.parent = parent, .name = node.name, .kind = node.kind});
      place.push_back(found->second);
      for (std::size_t i = 0; i < node.self.size(); ++i)
        (nodes_[static_cast<std::size_t>(found->second)].*weights)[i] += node.self[i];
    }
  }
  std::vector<FlameDiffNode> take() { return std::move(nodes_); }

 private:
  std::map<std::tuple<std::int32_t, std::string, std::string>, std::int32_t> numbers_;
  std::vector<FlameDiffNode> nodes_;
};

}  // namespace

std::vector<FlameDiffNode> flame_diff(const Flame& before, const Flame& after) {
  Union both;
  both.lay(before, &FlameDiffNode::before);
  both.lay(after, &FlameDiffNode::after);
  return both.take();
}

}  // namespace llmprof::pictures
