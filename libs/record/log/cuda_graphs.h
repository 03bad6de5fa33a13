#pragma once
// The nodes of a process's CUDA graphs. A node that runs is a clone of one that was captured, perhaps through several
// others; what was known at capture (thread, time, name, stack, matrix product) is the original's.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/log/ranges.h"
#include "trace/join.h"
#include "trace/rows.h"
#include "trace/run_writer.h"
#include "wire/format.h"

namespace llmprof::record {

// A graph. An executable that is updated so that its nodes run other kernels, or were captured elsewhere in the
// program, is another graph from then on: it has a number of the run for each of its versions. A program that goes back
// to what it ran before goes back to that version.
class CudaGraph {
 public:
  struct Version {
    trace::Id id = 0;
    std::optional<std::uint64_t> provenance;  // what tells versions apart (CudaGraphNodes::provenance)
    std::uint32_t times = 1;                  // that the executable became it
    bool launched = false;
  };
  explicit CudaGraph(trace::Id id) : versions_{{.id = id}} {}
  Version* version(std::uint32_t number) { return number < versions_.size() ? &versions_[number] : nullptr; }

  // A thread launches it; before the update that was made after it is taken.
  void launch_called(std::int64_t at_ns) {
    if (launches_.size() == kMostLaunches) {
      forgotten_ns_ = launches_[kMostLaunches / 2];
      launches_.erase(launches_.begin(), launches_.begin() + kMostLaunches / 2);
    }
    launches_.push_back(at_ns);
  }

  std::uint32_t version_at(std::int64_t at_ns) const {
    return std::prev(std::ranges::upper_bound(since_.begin() + 1, since_.end(), at_ns, {}, &Since::ns))->version;
  }

  // False: it was taken before.
  bool takes_update(std::int64_t at_ns) {
    if (at_ns <= updated_ns_) return false;  // logs that continue others repeat it
    updated_ns_ = at_ns;
    return true;
  }

  // The version that an update at this time changes: a new one, unless nobody launched the newest.
  std::uint32_t version_for_update(std::int64_t at_ns, trace::Id& next_id) {
    const auto [since_ns, newest] = since_.back();
    const bool launched =
        forgotten_ns_ > since_ns || std::ranges::any_of(launches_, [&, since = since_ns](std::int64_t launch_ns) {
          return launch_ns > since && launch_ns < at_ns;
        });
    const bool in_use = launched || versions_[newest].times > 1;
    if (!in_use || versions_.size() == kMostVersions) return newest;
    versions_.push_back({.id = next_id++});
    since_.push_back({at_ns, static_cast<std::uint32_t>(versions_.size() - 1)});
    return since_.back().version;
  }

  // One more version, and there are as many as may be. The last is for what is not known.
  bool is_almost_full() const { return versions_.size() + 1 >= kMostVersions; }
  std::optional<std::uint32_t> version_with(std::uint64_t provenance) const {
    const auto found = std::ranges::find(versions_, std::optional(provenance), &Version::provenance);
    if (found == versions_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - versions_.begin());
  }

  // From this time on the executable is this version again.
  void go_back(std::uint32_t version, std::int64_t at_ns) {
    if (since_.back().version == version) return;
    since_.push_back({at_ns, version});
    ++versions_[version].times;
  }

 private:
  static constexpr std::size_t kMostVersions = 256, kMostLaunches = 4096;
  struct Since {
    std::int64_t ns = INT64_MIN;
    std::uint32_t version = 0;
  };
  std::vector<Version> versions_;
  std::vector<Since> since_{Since{}};      // in the order of time
  std::vector<std::int64_t> launches_;     // calls, the last ones
  std::int64_t forgotten_ns_ = INT64_MIN;  // there were calls up to then
  std::int64_t updated_ns_ = INT64_MIN;
};

// Graphs by the number CUPTI gives them.
class CudaGraphs {
 public:
  // nullptr: there are too many
  CudaGraph* of(std::uint32_t number, trace::Id& next_id) {
    const auto found = graphs_.find(number);
    if (found != graphs_.end()) return &found->second;
    if (number == 0 || graphs_.size() == kMost) return nullptr;
    return &graphs_.emplace(number, CudaGraph(next_id++)).first->second;
  }

  CudaGraph::Version* version(std::uint32_t number, std::uint32_t version, trace::Id& next_id) {
    CudaGraph* graph = of(number, next_id);
    return graph != nullptr ? graph->version(version) : nullptr;
  }

  std::uint32_t version_at(std::uint32_t number, std::int64_t at_ns) const {
    const auto found = graphs_.find(number);
    return found != graphs_.end() ? found->second.version_at(at_ns) : 0;
  }

  bool was_launched(std::uint32_t number, std::uint32_t version) {
    const auto found = graphs_.find(number);
    const CudaGraph::Version* known = found != graphs_.end() ? found->second.version(version) : nullptr;
    return known != nullptr && known->launched;
  }

 private:
  static constexpr std::size_t kMost = 1u << 20;
  std::unordered_map<std::uint32_t, CudaGraph> graphs_;
};

class CudaGraphNodes {
 public:
  struct Node {
    trace::Id id = 0;
    std::uint64_t number = 0;
    std::uint64_t made_from = 0;    // the node that it was made as a clone of
    std::uint64_t cloned_from = 0;  // the one that it runs the kernel of: another after an update
    std::int64_t created_ns = 0;
    trace::Id thread_id = 0;
    trace::Id stack_id = 0;  // 0: none
    trace::Id gemm_id = 0;   // 0: none
    trace::Name name;
    std::uint64_t path = 0;        // of the ranges that it was captured in (RangePairing::path_at)
    std::uint64_t gemm_shape = 0;  // a number for the function, types and sizes of the product; 0: none
    std::uint32_t graph = 0;
    std::uint32_t version = 0;  // of the graph
    wire::GraphNodeKind kind = wire::GraphNodeKind::kUnknown;
    bool announced = false;
    bool ran = false;
    std::int64_t unknown_runs = 0;  // executions of a node whose original was not known
  };

  // The node of this number, new if it was not known; nullptr if there are too many.
  Node* take(std::uint64_t number, std::uint32_t version, trace::Id& next_id) {
    const auto found = nodes_.find({number, version});
    if (found != nodes_.end()) return &found->second;
    if (number == 0 || nodes_.size() == kMost) return nullptr;
    Node& node = nodes_[{number, version}];
    node.id = next_id++;
    node.number = number;
    node.version = version;
    return &node;
  }

  // A node is known to be in a graph.
  void place(Node& node, std::uint32_t graph) {
    if (node.graph == graph) return;
    node.graph = graph;
    if (node.version == 0 && graph != 0) members_[graph].push_back(node.number);
  }

  // A clone keeps the kernel that its original has now.
  void inherit_name(Node& node) const { node.name = name_of(node); }
  // Itself if it is no clone; nullptr if the chain is broken, or a circle.
  const Node* original(const Node& node) const {
    constexpr int kLongestChain = 64;
    if (!node.announced) return nullptr;
    const Node* at = &node;
    for (int i = 0; i < kLongestChain && at != nullptr; ++i) {
      if (at->cloned_from == 0) return at;
      at = find(at->cloned_from);
    }
    return nullptr;
  }

  // CUPTI announces no nodes for what is inside of child graphs and branches of an executable, but their kernels run
  // with their names. Those that one graph, which is not launched by itself, has as many of as ran, are that graph's.
  // Returns how many executions are known by that.
  std::int64_t adopt_nested(CudaGraphs& graphs) {
    constexpr std::size_t kMostGroups = 4096, kMostCandidates = 4096;
    // Nodes whose clones were launched are of graphs that run by themselves.
    std::unordered_set<const Node*> launched;
    for (const auto& [key, node] : nodes_) {
      if (node.announced && node.made_from != 0 && graphs.was_launched(node.graph, node.version))
        launched.insert(original(node));
    }
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<Node*>>
        groups;                                                              // graph, version, name
    std::unordered_map<std::uint32_t, std::vector<const Node*>> candidates;  // by name
    for (auto& [key, node] : nodes_) {
      if (node.name.id == 0 || node.kind != wire::GraphNodeKind::kKernel) continue;
      if (node.ran && !node.announced && groups.size() < kMostGroups)
        groups[{node.graph, node.version, node.name.id}].push_back(&node);
      const bool is_original = node.announced && node.version == 0 && node.made_from == 0 && node.cloned_from == 0;
      if (is_original && !launched.contains(&node)) candidates[node.name.id].push_back(&node);
    }
    std::int64_t known = 0;
    for (auto& [key, unknown] : groups) {
      const auto found = candidates.find(std::get<2>(key));
      if (found == candidates.end() || found->second.size() > kMostCandidates) continue;
      std::vector<const Node*>& nested = found->second;
      const bool in_one = std::all_of(nested.begin(), nested.end(),
                                      [&](const Node* node) { return node->graph == nested.front()->graph; });
      if (nested.size() != unknown.size() || !in_one) continue;
      std::ranges::sort(nested, {}, &Node::number);
      std::ranges::sort(unknown, {}, &Node::number);
      for (std::size_t i = 0; i < unknown.size(); ++i) {
        unknown[i]->announced = true;
        unknown[i]->cloned_from = nested[i]->number;
        known += unknown[i]->unknown_runs;
      }
    }
    return known;
  }

  // Clones that never ran and are of graphs that never did (copies on the way to an executable) are left out.
  void write(trace::RunWriter& writer, CudaGraphs& graphs, trace::Id& next_id) const {
    std::vector<const Node*> nodes;
    for (const auto& [key, node] : nodes_) {
      const bool original = node.cloned_from == 0 && node.version == 0;
      if (node.ran || (node.announced && original) || (node.announced && graphs.was_launched(node.graph, node.version)))
        nodes.push_back(&node);
    }
    std::ranges::sort(nodes, {}, &Node::id);
    for (const Node* node : nodes) {
      const Node* captured = original(*node);
      trace::GraphNodeRow row;
      row.id = node->id;
      const CudaGraph::Version* version = graphs.version(node->graph, node->version, next_id);
      row.graph = version != nullptr ? version->id : 0;
      row.node = static_cast<std::int64_t>(node->number);
      row.name = node->name;
      std::size_t kind = static_cast<std::size_t>(node->kind);
      if (kind == 0 && captured != nullptr) kind = static_cast<std::size_t>(captured->kind);
      constexpr const char* kKinds[] = {"unknown", "kernel", "memcpy", "memset", "host",
                                        "graph",   "empty",  "event",  "memory", "conditional"};
      row.kind = writer.strings().intern(kKinds[std::min(kind, std::size(kKinds) - 1)]);
      if (captured != nullptr) {
        if (captured != node) row.captured_node = static_cast<std::int64_t>(captured->number);
        if (row.name.id == 0) row.name = captured->name;
        row.stack_id = trace::unless_0(captured->stack_id);
        row.gemm_id = trace::unless_0(captured->gemm_id);
        row.captured_ns = captured->created_ns;
        row.thread_id = trace::unless_0(captured->thread_id);
      }
      writer.add(row);
    }
  }

  // What a node of an executable runs from an update on: a kernel, or what a node of another graph does; neither:
  // unknown.
  struct Change {
    std::uint64_t number = 0;
    trace::Name name;
    std::uint64_t source = 0;
  };
  // What the parameters of a node's clone change; nothing if they name the kernel that it runs.
  std::vector<Change> set_kernel(std::uint32_t graph, std::uint32_t version, std::uint64_t node,
                                 trace::Name name) const {
    constexpr int kLongestChain = 64;
    for (const Node* member : members(graph, version, true)) {
      const Node* at = member;
      for (int i = 0; i < kLongestChain && at != nullptr && at->made_from != node; ++i) at = find(at->made_from);
      if (at == nullptr || at->made_from != node) continue;
      if (name.id != 0 && name_of(*member) == name) return {};
      return {{.number = member->number, .name = name, .source = 0}};
    }
    return {};
  }

  // of a node that is no clone
  void set_kernel(std::uint64_t node, trace::Name name) {
    const auto found = nodes_.find({node, 0});
    if (found != nodes_.end() && found->second.announced) found->second.name = name;
  }

  // nodes at most
  std::size_t members_of(std::uint32_t graph) const {
    const auto found = members_.find(graph);
    return found != members_.end() ? found->second.size() : 0;
  }

  // What an executable's nodes become by those of another graph. If they have not as many, nobody knows which becomes
  // which: all are unknown.
  std::vector<Change> update(std::uint32_t graph, std::uint32_t source) const {
    const std::vector<std::uint64_t> mine = clones_in(graph);
    const std::vector<const Node*> others = members(source, 0, false);
    if (mine.size() != others.size()) return forget(graph);
    std::vector<Change> changes;
    for (std::size_t i = 0; i < mine.size(); ++i)
      changes.push_back({.number = mine[i], .name = name_of(*others[i]), .source = others[i]->number});
    return changes;
  }

  // all nodes are unknown
  std::vector<Change> forget(std::uint32_t graph) const {
    std::vector<Change> changes;
    for (const std::uint64_t number : clones_in(graph)) changes.push_back({.number = number, .name = {}, .source = 0});
    return changes;
  }

  // A number for what is known of an executable's nodes after the changes: kernels, ranges, stacks and products of
  // their captures. The time of capture is no part of it: programs capture the same again and again.
  std::uint64_t provenance(std::uint32_t graph, std::uint32_t version, const std::vector<Change>& changes) const {
    auto change = changes.begin();  // both are in the order of numbers
    std::uint64_t hash = 1;
    for (const std::uint64_t number : clones_in(graph)) {
      while (change != changes.end() && change->number < number) ++change;
      const bool changed = change != changes.end() && change->number == number;
      const Node* node = changed ? find(change->source) : find(number, version);
      const Node* captured = node != nullptr ? original(*node) : nullptr;
      // Of a kernel that was set in the executable nothing but its name is compared.
      if (captured != nullptr && captured->number == number) captured = nullptr;
      const trace::Name name = changed ? change->name : node != nullptr ? name_of(*node) : trace::Name();
      hash = mixed(hash, name.id);
      hash = mixed(hash, captured != nullptr ? captured->path : 0);
      hash = mixed(hash, captured != nullptr ? static_cast<std::uint64_t>(captured->stack_id) : 0);
      hash = mixed(hash, captured != nullptr ? captured->gemm_shape : 0);
    }
    return hash;
  }

  struct Time {
    std::int64_t ns = 0;
    trace::Id thread_id = 0, stack_id = 0;
  };
  void apply(const std::vector<Change>& changes, std::uint32_t graph, std::uint32_t from, std::uint32_t to,
             const Time& when, trace::Id& next_id) {
    if (from != to) {
      const auto found = members_.find(graph);
      for (const std::uint64_t number : found != members_.end() ? found->second : std::vector<std::uint64_t>()) {
        const auto before = nodes_.find({number, from});
        if (before == nodes_.end()) continue;
        const Node copy = before->second;
        Node* node = take(number, to, next_id);
        if (node == nullptr) return;
        const trace::Id id = node->id;
        *node = copy;
        node->id = id;
        node->version = to;
        node->ran = false;
      }
    }
    for (const Change& change : changes) {
      Node* node = take(change.number, to, next_id);
      if (node == nullptr) return;
      node->name = change.name;
      node->cloned_from = change.source;
      node->gemm_id = 0;
      node->gemm_shape = 0;
      node->announced = change.source != 0 || change.name.id != 0;
      if (change.source != 0) continue;
      if (change.name.id != 0) node->kind = wire::GraphNodeKind::kKernel;
      node->created_ns = when.ns;
      node->thread_id = when.thread_id;
      node->stack_id = when.stack_id;
    }
  }

 private:
  static constexpr std::size_t kMost = 1u << 20;
  struct Key {
    std::uint64_t number;
    std::uint32_t version;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()(key.number ^ (std::uint64_t{key.version} << 48));
    }
  };
  const Node* find(std::uint64_t number, std::uint32_t version = 0) const {
    const auto found = nodes_.find({number, version});
    return found != nodes_.end() && found->second.announced ? &found->second : nullptr;
  }

  trace::Name name_of(const Node& node) const {
    const Node* captured = node.name.id == 0 ? original(node) : nullptr;
    return captured != nullptr ? captured->name : node.name;
  }

  std::vector<std::uint64_t> clones_in(std::uint32_t graph) const {
    std::vector<std::uint64_t> out;
    const auto found = members_.find(graph);
    if (found == members_.end()) return out;
    for (const std::uint64_t number : found->second) {
      const auto node = nodes_.find({number, 0});
      if (node != nodes_.end() && node->second.graph == graph && node->second.made_from != 0) out.push_back(number);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::vector<const Node*> members(std::uint32_t graph, std::uint32_t version, bool only_clones) const {
    std::vector<const Node*> out;
    const auto found = members_.find(graph);
    if (found == members_.end()) return out;
    for (const std::uint64_t number : found->second) {
      const Node* node = find(number, version);
      if (node == nullptr || (version == 0 && node->graph != graph)) continue;
      if (!only_clones || node->made_from != 0)
        out.push_back(node);  // CUPTI adds nodes of its own, which are no clones
    }
    std::ranges::sort(out, {}, &Node::number);
    return out;
  }

  std::unordered_map<Key, Node, Hash> nodes_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> members_;  // of graphs, as first made
};

}  // namespace llmprof::record
