#include "pictures/flame_tree.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

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
  labels_.push_back({"root", "all", false});
  nodes_.push_back({-1, 0});
}

std::int32_t FlameTree::child(std::int32_t parent, std::string_view name, std::string_view kind, bool wrapper) {
  std::string key(kind);
  key += wrapper ? '\1' : '\0';
  key += name;
  const auto [label, is_new_label] =
      label_numbers_.try_emplace(std::move(key), static_cast<std::int32_t>(labels_.size()));
  if (is_new_label) labels_.push_back({std::string(kind), std::string(name), wrapper});
  const std::uint64_t place = static_cast<std::uint64_t>(parent) << 32 | static_cast<std::uint32_t>(label->second);
  const auto [node, is_new] = children_.try_emplace(place, static_cast<std::int32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({parent, label->second});
  return node->second;
}

void FlameTree::add(std::int32_t node, std::size_t weight, double value, std::int32_t layer) {
  nodes_[static_cast<std::size_t>(node)].self[weight] += value;
  if (layer >= 0) layers_[{node, layer}][weight] += value;
}

std::size_t FlameTree::wrappers() const {
  return static_cast<std::size_t>(std::ranges::count_if(labels_, &Label::wrapper));
}

std::array<double, 3> FlameTree::total() const {
  Weights sum{};
  for (const Node& node : nodes_) pictures::add(sum, node.self);
  return sum;
}

FlameTree FlameTree::without_wrappers() const {
  FlameTree out;
  std::vector<std::int32_t> number(nodes_.size(), kRoot);
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const Label& label = labels_[static_cast<std::size_t>(nodes_[i].label)];
    const std::int32_t parent = number[static_cast<std::size_t>(nodes_[i].parent)];
    number[i] = label.wrapper ? parent : out.child(parent, label.name, label.kind);
    pictures::add(out.nodes_[static_cast<std::size_t>(number[i])].self, nodes_[i].self);
  }
  for (const auto& [place, self] : layers_)
    pictures::add(out.layers_[{number[static_cast<std::size_t>(place.first)], place.second}], self);
  return out;
}

std::vector<FlameTree::Weights> FlameTree::totals() const {
  std::vector<Weights> totals;
  for (const Node& node : nodes_) totals.push_back(node.self);
  for (std::size_t i = nodes_.size(); --i > 0;)
    pictures::add(totals[static_cast<std::size_t>(nodes_[i].parent)], totals[i]);
  return totals;
}

// The order in which nodes are kept: by their share of the weight in which it is largest, so that a page has all that
// is wider than so many pixels, whatever the widths are and however deep it stands. Parents come before their children.
// Nodes without weight are left out.
std::vector<std::size_t> FlameTree::order(const std::vector<Weights>& totals) const {
  std::vector<double> share(nodes_.size(), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (std::size_t w = 0; w < totals[i].size(); ++w)
      if (totals[0][w] > 0) share[i] = std::max(share[i], totals[i][w] / totals[0][w]);
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == 0 || share[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin() + 1, order.end(), [&](std::size_t a, std::size_t b) { return share[a] > share[b]; });
  return order;
}

// By label: work of devices that keeps its name where the frames around it are left out. A quarter of the nodes are
// theirs at most, the heaviest of each weight in turn.
std::vector<bool> FlameTree::named_leaves(std::size_t most) const {
  std::vector<Weights> of_label(labels_.size());
  for (const Node& node : nodes_) pictures::add(of_label[static_cast<std::size_t>(node.label)], node.self);
  std::vector<bool> named(labels_.size(), false);
  std::size_t left = most / 4;
  std::array<std::vector<std::size_t>, 3> heaviest;
  for (std::size_t w = 0; w < heaviest.size(); ++w) {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if ((labels_[i].kind == "kernel" || labels_[i].kind == "copy") && of_label[i][w] > 0) heaviest[w].push_back(i);
    }
    std::ranges::stable_sort(heaviest[w], std::ranges::greater(), [&](std::size_t i) { return of_label[i][w]; });
  }
  for (std::size_t rank = 0; rank < labels_.size() && left > 0; ++rank) {
    for (const std::vector<std::size_t>& labels : heaviest) {
      if (rank >= labels.size() || named[labels[rank]] || left == 0) continue;
      named[labels[rank]] = true;
      --left;
    }
  }
  return named;
}

// How many of the first can stay, if what is left out inside each of them takes a node more, and its kernels too.
std::size_t FlameTree::kept(const std::vector<std::size_t>& order, const std::vector<bool>& named,
                            std::size_t most) const {
  if (order.size() <= most) return order.size();
  std::vector<bool> weighs(nodes_.size(), false);
  for (const std::size_t node : order) weighs[node] = true;
  const auto nodes_with = [&](std::size_t keep) {
    std::vector<bool> kept(nodes_.size(), false);
    for (std::size_t i = 0; i < keep; ++i) kept[order[i]] = true;
    std::vector<std::size_t> around(nodes_.size(), 0);  // the innermost kept one
    std::unordered_set<std::uint64_t> others;           // of a kept node: "other", and the labels inside it
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      around[i] = kept[i] ? i : around[static_cast<std::size_t>(nodes_[i].parent)];
      if (kept[i] || !weighs[i]) continue;
      others.insert(around[i] << 32);
      if (named[static_cast<std::size_t>(nodes_[i].label)])
        others.insert(around[i] << 32 | static_cast<std::uint32_t>(nodes_[i].label));
    }
    return keep + others.size();
  };
  std::size_t fits = 1, too_many = most;  // the root, "other" and the kernels always fit; all cannot
  while (too_many - fits > 1) {
    const std::size_t middle = fits + (too_many - fits) / 2;
    (nodes_with(middle) <= most ? fits : too_many) = middle;
  }
  return fits;
}

namespace {
// Very many layers are told apart only where they weigh most.
void keep_heaviest(std::vector<FlameLayer>& layers, const Flame& flame, std::size_t most) {
  if (layers.size() <= most) return;
  const auto share = [&](const FlameLayer& layer) {
    double sum = 0;
    for (std::size_t w = 0; w < layer.self.size(); ++w)
      if (flame.total[w] > 0) sum += layer.self[w] / flame.total[w];
    return sum;
  };
  std::ranges::stable_sort(layers, std::ranges::greater(), share);
  layers.resize(most);
  std::ranges::sort(layers, {}, [](const FlameLayer& layer) { return std::pair(layer.node, layer.layer); });
}
}  // namespace

Flame FlameTree::cut(std::size_t most) const {
  constexpr std::size_t kLayersPerNode = 5;
  const std::vector<Weights> totals = this->totals();
  const std::vector<std::size_t> order = this->order(totals);
  const std::vector<bool> named = named_leaves(most);
  const std::size_t keep = kept(order, named, most);
  enum State : char { kNothing, kKept, kOther };
  std::vector<State> state(nodes_.size(), kNothing);
  for (const std::size_t node : order) state[node] = kOther;
  for (std::size_t i = 0; i < keep; ++i) state[order[i]] = kKept;
  Flame flame;
  flame.total = totals[0];
  std::vector<std::int32_t> number(nodes_.size(), -1);                   // where its own weight stands
  std::vector<std::int32_t> around(nodes_.size(), -1);                   // the innermost kept one
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> others;  // by parent and label; -1: "other" itself
  const auto other = [&](std::int32_t parent, std::int32_t label, std::string_view name, std::string_view kind) {
    const auto [found, is_new] = others.try_emplace({parent, label}, static_cast<std::int32_t>(flame.nodes.size()));
    if (is_new) flame.nodes.push_back({parent, std::string(name), std::string(kind), {}});
    return found->second;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::int32_t parent = i == 0 ? -1 : around[static_cast<std::size_t>(nodes_[i].parent)];
    const Label& label = labels_[static_cast<std::size_t>(nodes_[i].label)];
    around[i] = parent;
    if (state[i] == kKept) {
      around[i] = number[i] = static_cast<std::int32_t>(flame.nodes.size());
      flame.nodes.push_back({parent, label.name, label.kind, nodes_[i].self});
    } else if (state[i] == kOther) {
      number[i] = other(parent, -1, kTooSmall, "other");
      if (named[static_cast<std::size_t>(nodes_[i].label)])
        number[i] = other(number[i], nodes_[i].label, label.name, label.kind);
      pictures::add(flame.nodes[static_cast<std::size_t>(number[i])].self, nodes_[i].self);
      pictures::add(flame.aggregated, nodes_[i].self);
    }
  }
  Layers layers;
  for (const auto& [place, self] : layers_)
    pictures::add(layers[{number[static_cast<std::size_t>(place.first)], place.second}], self);
  for (const auto& [place, self] : layers) flame.layers.push_back({place.first, place.second, self});
  keep_heaviest(flame.layers, flame, kLayersPerNode * most);
  return flame;
}

std::vector<FlameDiffNode> flame_diff(const Flame& before, const Flame& after) {
  Union both;
  both.lay(before, &FlameDiffNode::before);
  both.lay(after, &FlameDiffNode::after);
  return both.take();
}

}  // namespace llmprof::pictures
