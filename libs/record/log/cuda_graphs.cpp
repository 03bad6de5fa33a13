#include "record/log/cuda_graphs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "record/log/ranges.h"
#include "trace/join.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

constexpr const char* kKinds[] = {"unknown", "kernel", "memcpy", "memset", "host",
                                  "graph",   "empty",  "event",  "memory", "conditional"};

using trace::unless_0;

}  // namespace

// ---- graphs ---------------------------------------------------------------------------------------------------------

CudaGraphs::Graph* CudaGraphs::find(std::uint32_t number, trace::Id& next_id) {
  const auto found = graphs_.find(number);
  if (found != graphs_.end()) return &found->second;
  if (number == 0 || graphs_.size() == kMost) return nullptr;
  Graph& graph = graphs_[number];
  graph.versions.push_back({.id = next_id++});
  return &graph;
}

const CudaGraphs::Graph* CudaGraphs::find(std::uint32_t number) const {
  const auto found = graphs_.find(number);
  return found != graphs_.end() ? &found->second : nullptr;
}

trace::Id CudaGraphs::id(std::uint32_t number, std::uint32_t version, trace::Id& next_id) {
  const Graph* graph = find(number, next_id);
  return graph != nullptr && version < graph->versions.size() ? graph->versions[version].id : 0;
}

trace::Id CudaGraphs::launched(std::uint32_t number, std::uint32_t version, trace::Id& next_id) {
  Graph* graph = find(number, next_id);
  if (graph == nullptr || version >= graph->versions.size()) return 0;
  graph->versions[version].launched = true;
  return graph->versions[version].id;
}

bool CudaGraphs::was_launched(std::uint32_t number, std::uint32_t version) const {
  const Graph* graph = find(number);
  return graph != nullptr && version < graph->versions.size() && graph->versions[version].launched;
}

void CudaGraphs::launch_called(std::uint32_t number, std::int64_t at_ns, trace::Id& next_id) {
  Graph* graph = find(number, next_id);
  if (graph == nullptr) return;
  if (graph->launches.size() == kMostLaunches) {
    graph->forgotten_ns = graph->launches[kMostLaunches / 2];
    graph->launches.erase(graph->launches.begin(), graph->launches.begin() + kMostLaunches / 2);
  }
  graph->launches.push_back(at_ns);
}

std::uint32_t CudaGraphs::version_at(std::uint32_t number, std::int64_t at_ns) const {
  const Graph* graph = find(number);
  if (graph == nullptr) return 0;
  const auto after = std::upper_bound(graph->since.begin() + 1, graph->since.end(), at_ns,
                                      [](std::int64_t ns, const Since& since) { return ns < since.ns; });
  return std::prev(after)->version;
}

std::uint32_t CudaGraphs::newest(std::uint32_t number) const { return version_at(number, INT64_MAX); }

bool CudaGraphs::takes_update(std::uint32_t number, std::int64_t at_ns, trace::Id& next_id) {
  Graph* graph = find(number, next_id);
  if (graph == nullptr || at_ns <= graph->updated_ns) return false;  // logs that continue others repeat it
  graph->updated_ns = at_ns;
  return true;
}

std::uint32_t CudaGraphs::version_for_update(std::uint32_t number, std::int64_t at_ns, trace::Id& next_id) {
  Graph* graph = find(number, next_id);
  if (graph == nullptr) return 0;
  const auto [since_ns, newest] = graph->since.back();
  const bool launched = graph->forgotten_ns > since_ns || std::any_of(graph->launches.begin(), graph->launches.end(),
                                                                      [&, since = since_ns](std::int64_t launch_ns) {
                                                                        return launch_ns > since && launch_ns < at_ns;
                                                                      });
  const bool in_use = launched || graph->versions[newest].times > 1;
  if (!in_use || graph->versions.size() == kMostVersions) return newest;
  graph->versions.push_back({.id = next_id++});
  graph->since.push_back({at_ns, static_cast<std::uint32_t>(graph->versions.size() - 1)});
  return graph->since.back().version;
}

bool CudaGraphs::is_almost_full(std::uint32_t number) const {
  const Graph* graph = find(number);
  return graph != nullptr && graph->versions.size() + 1 >= kMostVersions;
}

void CudaGraphs::set_provenance(std::uint32_t number, std::uint32_t version, std::uint64_t provenance) {
  const auto found = graphs_.find(number);
  if (found != graphs_.end() && version < found->second.versions.size())
    found->second.versions[version].provenance = provenance;
}

std::optional<std::uint64_t> CudaGraphs::provenance(std::uint32_t number, std::uint32_t version) const {
  const Graph* graph = find(number);
  return graph != nullptr && version < graph->versions.size() ? graph->versions[version].provenance : std::nullopt;
}

std::optional<std::uint32_t> CudaGraphs::version_with(std::uint32_t number, std::uint64_t provenance) const {
  const Graph* graph = find(number);
  for (std::uint32_t i = 0; graph != nullptr && i < graph->versions.size(); ++i) {
    if (graph->versions[i].provenance == provenance) return i;
  }
  return std::nullopt;
}

void CudaGraphs::go_back(std::uint32_t number, std::uint32_t version, std::int64_t at_ns) {
  const auto found = graphs_.find(number);
  if (found == graphs_.end() || found->second.since.back().version == version) return;
  found->second.since.push_back({at_ns, version});
  ++found->second.versions[version].times;
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

CudaGraphNodes::Node* CudaGraphNodes::take(std::uint64_t number, std::uint32_t version, trace::Id& next_id) {
  const auto found = nodes_.find({number, version});
  if (found != nodes_.end()) return &found->second;
  if (number == 0 || nodes_.size() == kMost) return nullptr;
  Node& node = nodes_[{number, version}];
  node.id = next_id++;
  node.number = number;
  node.version = version;
  return &node;
}

void CudaGraphNodes::place(Node& node, std::uint32_t graph) {
  if (node.graph == graph) return;
  node.graph = graph;
  if (node.version == 0 && graph != 0) members_[graph].push_back(node.number);
}

const CudaGraphNodes::Node* CudaGraphNodes::find(std::uint64_t number, std::uint32_t version) const {
  const auto found = nodes_.find({number, version});
  return found != nodes_.end() && found->second.announced ? &found->second : nullptr;
}

const CudaGraphNodes::Node* CudaGraphNodes::original(const Node& node) const {
  constexpr int kLongestChain = 64;
  if (!node.announced) return nullptr;
  const Node* at = &node;
  for (int i = 0; i < kLongestChain && at != nullptr; ++i) {
    if (at->cloned_from == 0) return at;
    at = find(at->cloned_from);
  }
  return nullptr;
}

std::size_t CudaGraphNodes::members_of(std::uint32_t graph) const {
  const auto found = members_.find(graph);
  return found != members_.end() ? found->second.size() : 0;
}

trace::Name CudaGraphNodes::name_of(const Node& node) const {
  const Node* captured = node.name.id == 0 ? original(node) : nullptr;
  return captured != nullptr ? captured->name : node.name;
}

std::vector<const CudaGraphNodes::Node*> CudaGraphNodes::members(std::uint32_t graph, std::uint32_t version,
                                                                 bool only_clones) const {
  std::vector<const Node*> out;
  const auto found = members_.find(graph);
  if (found == members_.end()) return out;
  for (const std::uint64_t number : found->second) {
    const Node* node = find(number, version);
    if (node == nullptr || (version == 0 && node->graph != graph)) continue;
    if (!only_clones || node->made_from != 0) out.push_back(node);  // CUPTI adds nodes of its own, which are no clones
  }
  std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->number < b->number; });
  return out;
}

void CudaGraphNodes::set_kernel(std::uint64_t node, trace::Name name) {
  const auto found = nodes_.find({node, 0});
  if (found != nodes_.end() && found->second.announced) found->second.name = name;
}

std::vector<CudaGraphNodes::Change> CudaGraphNodes::set_kernel(std::uint32_t graph, std::uint32_t version,
                                                               std::uint64_t node, trace::Name name) const {
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

std::vector<std::uint64_t> CudaGraphNodes::clones_in(std::uint32_t graph) const {
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

std::vector<CudaGraphNodes::Change> CudaGraphNodes::update(std::uint32_t graph, std::uint32_t source) const {
  const std::vector<std::uint64_t> mine = clones_in(graph);
  const std::vector<const Node*> others = members(source, 0, false);
  if (mine.size() != others.size()) return forget(graph);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < mine.size(); ++i)
    changes.push_back({.number = mine[i], .name = name_of(*others[i]), .source = others[i]->number});
  return changes;
}

std::vector<CudaGraphNodes::Change> CudaGraphNodes::forget(std::uint32_t graph) const {
  std::vector<Change> changes;
  for (const std::uint64_t number : clones_in(graph)) changes.push_back({.number = number, .name = {}, .source = 0});
  return changes;
}

std::uint64_t CudaGraphNodes::provenance(std::uint32_t graph, std::uint32_t version,
                                         const std::vector<Change>& changes) const {
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

void CudaGraphNodes::apply(const std::vector<Change>& changes, std::uint32_t graph, std::uint32_t from,
                           std::uint32_t to, const Time& when, trace::Id& next_id) {
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

std::int64_t CudaGraphNodes::adopt_nested(const CudaGraphs& graphs) {
  constexpr std::size_t kMostGroups = 4096, kMostCandidates = 4096;
  // Nodes whose clones were launched are of graphs that run by themselves.
  std::unordered_set<const Node*> launched;
  for (const auto& [key, node] : nodes_) {
    if (node.announced && node.made_from != 0 && graphs.was_launched(node.graph, node.version))
      launched.insert(original(node));
  }
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<Node*>> groups;  // graph, version, name
  std::unordered_map<std::uint32_t, std::vector<const Node*>> candidates;                        // by name
  for (auto& [key, node] : nodes_) {
    if (node.name.id == 0 || node.kind != wire::GraphNodeKind::kKernel) continue;
    if (node.ran && !node.announced && groups.size() < kMostGroups)
      groups[{node.graph, node.version, node.name.id}].push_back(&node);
    const bool is_original = node.announced && node.version == 0 && node.made_from == 0 && node.cloned_from == 0;
    if (is_original && !launched.contains(&node)) candidates[node.name.id].push_back(&node);
  }
  const auto by_number = [](const Node* a, const Node* b) { return a->number < b->number; };
  std::int64_t known = 0;
  for (auto& [key, unknown] : groups) {
    const auto found = candidates.find(std::get<2>(key));
    if (found == candidates.end() || found->second.size() > kMostCandidates) continue;
    std::vector<const Node*>& nested = found->second;
    const bool in_one = std::all_of(nested.begin(), nested.end(),
                                    [&](const Node* node) { return node->graph == nested.front()->graph; });
    if (nested.size() != unknown.size() || !in_one) continue;
    std::sort(nested.begin(), nested.end(), by_number);
    std::sort(unknown.begin(), unknown.end(), by_number);
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      unknown[i]->announced = true;
      unknown[i]->cloned_from = nested[i]->number;
      known += unknown[i]->unknown_runs;
    }
  }
  return known;
}

// Clones that never ran and are of graphs that never did (copies on the way to an executable) are left out.
void CudaGraphNodes::write(trace::RunWriter& writer, CudaGraphs& graphs, trace::Id& next_id) const {
  std::vector<const Node*> nodes;
  for (const auto& [key, node] : nodes_) {
    const bool original = node.cloned_from == 0 && node.version == 0;
    if (node.ran || (node.announced && original) || (node.announced && graphs.was_launched(node.graph, node.version)))
      nodes.push_back(&node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  for (const Node* node : nodes) {
    const Node* captured = original(*node);
    trace::GraphNodeRow row;
    row.id = node->id;
    row.graph = graphs.id(node->graph, node->version, next_id);
    row.node = static_cast<std::int64_t>(node->number);
    row.name = node->name;
    std::size_t kind = static_cast<std::size_t>(node->kind);
    if (kind == 0 && captured != nullptr) kind = static_cast<std::size_t>(captured->kind);
    row.kind = writer.strings().intern(kKinds[std::min(kind, std::size(kKinds) - 1)]);
    if (captured != nullptr) {
      if (captured != node) row.captured_node = static_cast<std::int64_t>(captured->number);
      if (row.name.id == 0) row.name = captured->name;
      row.stack_id = unless_0(captured->stack_id);
      row.gemm_id = unless_0(captured->gemm_id);
      row.captured_ns = captured->created_ns;
      row.thread_id = unless_0(captured->thread_id);
    }
    writer.add(row);
  }
}

}  // namespace llmprof::record
