#include "pictures/flame_tree.h"

#include <algorithm>
#include <numeric>

namespace llmprof::pictures {
namespace {

void add(std::array<double, 3>& to, const std::array<double, 3>& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

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

// How much of the whole a node is, by the weight in which it is most. Never more than its parent's.
std::vector<double> FlameTree::shares(const std::vector<Weights>& totals) const {
  std::vector<double> shares(nodes_.size(), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (std::size_t w = 0; w < totals[0].size(); ++w)
      if (totals[0][w] > 0) shares[i] = std::max(shares[i], totals[i][w] / totals[0][w]);
  return shares;
}

// How many of the heaviest can stay, if what is left out inside each of them takes a node more.
std::size_t FlameTree::kept(const std::vector<std::size_t>& order, std::size_t most) const {
  if (nodes_.size() <= most) return nodes_.size();
  for (std::size_t keep = most; keep > most / 2; keep -= most / 16 + 1) {
    std::vector<bool> parent_of_others(nodes_.size(), false);
    std::size_t others = 0;
    for (std::size_t i = keep; i < order.size(); ++i) {
      const auto parent = static_cast<std::size_t>(nodes_[order[i]].parent);
      if (!parent_of_others[parent]) ++others;
      parent_of_others[parent] = true;
    }
    if (keep + others <= most) return keep;
  }
  return std::max<std::size_t>(1, most / 2);
}

Flame FlameTree::cut(std::size_t most) const {
  const std::vector<Weights> totals = this->totals();
  const std::vector<double> shares = this->shares(totals);
  std::vector<std::size_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  // Parents before children of the same weight: they have lower numbers.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  const std::size_t keep = kept(order, most);
  std::vector<std::int32_t> number(nodes_.size(), -1);
  for (std::size_t i = 0; i < keep; ++i)
    if (order[i] == 0 || shares[order[i]] > 0) number[order[i]] = 0;
  Flame flame;
  flame.total = totals[0];
  std::unordered_map<std::int32_t, std::int32_t> other_of;  // parent -> its node "other"
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::int32_t parent = i == 0 ? -1 : number[static_cast<std::size_t>(nodes_[i].parent)];
    if (number[i] == 0) {
      number[i] = static_cast<std::int32_t>(flame.nodes.size());
      const auto& [kind, name] = labels_[static_cast<std::size_t>(nodes_[i].label)];
      flame.nodes.push_back({parent, name, kind, nodes_[i].self});
    } else if (parent >= 0 && shares[i] > 0) {
      const auto [other, is_new] = other_of.try_emplace(parent, static_cast<std::int32_t>(flame.nodes.size()));
      if (is_new) flame.nodes.push_back({parent, "other", "other", {}});
      pictures::add(flame.nodes[static_cast<std::size_t>(other->second)].self, totals[i]);
      pictures::add(flame.put_together, totals[i]);
    }
  }
  return flame;
}

}  // namespace llmprof::pictures
