#include "record/cuda_graph_nodes.h"

#include <algorithm>
#include <vector>

#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

constexpr const char* kKinds[] = {"unknown", "kernel", "memcpy", "memset", "host",
                                  "graph",   "empty",  "event",  "memory", "conditional"};

trace::OptionalId unless_0(trace::Id id) { return id == 0 ? trace::OptionalId() : id; }

}  // namespace

CudaGraphs::Graph& CudaGraphs::find(std::uint32_t number, trace::Id& next_id) {
  const auto found = graphs_.find(number);
  if (found != graphs_.end()) return found->second;
  if (number == 0 || graphs_.size() == kMost) return none_ = {};
  return graphs_[number] = {next_id++, false};
}

trace::Id CudaGraphs::launched(std::uint32_t number, trace::Id& next_id) {
  Graph& graph = find(number, next_id);
  graph.launched = true;
  return graph.id;
}

bool CudaGraphs::was_launched(std::uint32_t number) const {
  const auto found = graphs_.find(number);
  return found != graphs_.end() && found->second.launched;
}

CudaGraphNodes::Node* CudaGraphNodes::take(std::uint64_t number, trace::Id& next_id) {
  const auto found = nodes_.find(number);
  if (found != nodes_.end()) return &found->second;
  if (number == 0 || nodes_.size() == kMost) return nullptr;
  Node& node = nodes_[number];
  node.id = next_id++;
  node.number = number;
  return &node;
}

const CudaGraphNodes::Node* CudaGraphNodes::find(std::uint64_t number) const {
  const auto found = nodes_.find(number);
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

// Clones that never ran and are of graphs that never did (copies on the way to an executable) are left out.
void CudaGraphNodes::write(trace::RunWriter& writer, CudaGraphs& graphs, trace::Id& next_id) const {
  std::vector<const Node*> nodes;
  for (const auto& [number, node] : nodes_) {
    if (node.ran || (node.announced && (node.cloned_from == 0 || graphs.was_launched(node.graph)))) {
      nodes.push_back(&node);
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  for (const Node* node : nodes) {
    const Node* captured = original(*node);
    trace::GraphNodeRow row;
    row.id = node->id;
    row.graph = graphs.id(node->graph, next_id);
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
