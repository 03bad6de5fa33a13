#include "pictures/flame_tree.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace llmprof::pictures {
namespace {

void add(std::array<double, 3>& to, const std::array<double, 3>& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

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

FlameTree::FlameTree() {
  labels_.emplace_back("root", "all");
  nodes_.push_back({-1, 0});
}

std::int32_t FlameTree::child(std::int32_t parent, std::string_view name, std::string_view kind) {
  std::string key(kind);
  key += '\0';
  key += name;
  const auto [label, is_new_label] =
      label_numbers_.try_emplace(std::move(key), static_cast<std::int32_t>(labels_.size()));
  if (is_new_label) labels_.emplace_back(kind, name);
  const std::uint64_t place = static_cast<std::uint64_t>(parent) << 32 | static_cast<std::uint32_t>(label->second);
  const auto [node, is_new] = children_.try_emplace(place, static_cast<std::int32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({parent, label->second});
  return node->second;
}

std::vector<FlameTree::Weights> FlameTree::totals() const {
  std::vector<Weights> totals;
  for (const Node& node : nodes_) totals.push_back(node.self);
  for (std::size_t i = nodes_.size(); --i > 0;)
    pictures::add(totals[static_cast<std::size_t>(nodes_[i].parent)], totals[i]);
  return totals;
}

// The order in which nodes are kept: by the place that a node has among all in the weight in which it is foremost, so
// that each weight has its share of the page. Parents come before their children. Nodes without weight are left out.
std::vector<std::size_t> FlameTree::order(const std::vector<Weights>& totals) const {
  std::vector<std::size_t> foremost(nodes_.size(), nodes_.size());
  for (std::size_t w = 0; w < totals[0].size(); ++w) {
    std::vector<std::size_t> heaviest;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (totals[i][w] > 0) heaviest.push_back(i);
    }
    std::ranges::stable_sort(heaviest, [&](std::size_t a, std::size_t b) { return totals[a][w] > totals[b][w]; });
    for (std::size_t rank = 0; rank < heaviest.size(); ++rank)
      foremost[heaviest[rank]] = std::min(foremost[heaviest[rank]], rank);
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == 0 || foremost[i] < nodes_.size()) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return foremost[a] < foremost[b]; });
  return order;
}

// How many of the first can stay, if what is left out inside each of them takes a node more.
std::size_t FlameTree::kept(const std::vector<std::size_t>& order, std::size_t most) const {
  if (order.size() <= most) return order.size();
  const auto nodes_with = [&](std::size_t keep) {
    std::vector<bool> kept(nodes_.size(), false), has_others(nodes_.size(), false);
    for (std::size_t i = 0; i < keep; ++i) kept[order[i]] = true;
    std::size_t nodes = keep;
    for (std::size_t i = keep; i < order.size(); ++i) {
      const auto parent = static_cast<std::size_t>(nodes_[order[i]].parent);
      if (kept[parent] && !has_others[parent]) ++nodes;
      has_others[parent] = true;
    }
    return nodes;
  };
  std::size_t fits = 1, too_many = most;  // the root and "other" always fit; all cannot
  while (too_many - fits > 1) {
    const std::size_t middle = fits + (too_many - fits) / 2;
    (nodes_with(middle) <= most ? fits : too_many) = middle;
  }
  return fits;
}

Flame FlameTree::cut(std::size_t most) const {
  const std::vector<Weights> totals = this->totals();
  const std::vector<std::size_t> order = this->order(totals);
  const std::size_t keep = kept(order, most);
  std::vector<std::int32_t> number(nodes_.size(), -1);
  std::vector<bool> weighs(nodes_.size(), false);
  for (const std::size_t node : order) weighs[node] = true;
  for (std::size_t i = 0; i < keep; ++i) number[order[i]] = 0;
  Flame flame;
  flame.total = totals[0];
  std::unordered_map<std::int32_t, std::int32_t> other_of;  // parent -> its node "other"
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::int32_t parent = i == 0 ? -1 : number[static_cast<std::size_t>(nodes_[i].parent)];
    if (number[i] == 0) {
      number[i] = static_cast<std::int32_t>(flame.nodes.size());
      const auto& [kind, name] = labels_[static_cast<std::size_t>(nodes_[i].label)];
      flame.nodes.push_back({parent, name, kind, nodes_[i].self});
    } else if (parent >= 0 && weighs[i]) {
      const auto [other, is_new] = other_of.try_emplace(parent, static_cast<std::int32_t>(flame.nodes.size()));
      if (is_new) flame.nodes.push_back({parent, "other", "other", {}});
      pictures::add(flame.nodes[static_cast<std::size_t>(other->second)].self, totals[i]);
      pictures::add(flame.aggregated, totals[i]);
    }
  }
  return flame;
}

std::vector<FlameDiffNode> flame_diff(const Flame& before, const Flame& after) {
  Union both;
  both.lay(before, &FlameDiffNode::before);
  both.lay(after, &FlameDiffNode::after);
  return both.take();
}

}  // namespace llmprof::pictures
