#include "importers/nsys_sqlite/graphs.h"

#include <algorithm>
#include <array>

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::array<const char*, 4> kKinds{"unknown", "kernel", "memcpy", "memset"};

}  // namespace

Graphs::Node* Graphs::node(const NodeKey& key) {
  const auto found = nodes_.find(key);
  if (found != nodes_.end()) return &found->second;
  if (nodes_.size() >= kMostNodes) {
    database_.sink().lose(trace::Loss::kInputLimit, 1, "work of graph nodes beyond a million nodes");
    return nullptr;
  }
  Node& made = nodes_[key];
  made.id = database_.sink().new_id();
  return &made;
}

Result<void> Graphs::read_nodes() {
  LLMPROF_LET(Rows rows, database_.rows("CUDA_GRAPH_NODE_EVENTS",
                                        {"start", "globalTid", "graphNodeId", "originalGraphNodeId"}, 3));
  while (rows.next()) {
    const auto start = rows.integer(0), global = rows.integer(1), number = rows.integer(2);
    if (!start || !global || !number || !is_time(*start)) {
      rows.lose(trace::Loss::kInputDamaged, "values that cannot be");
      continue;
    }
    const Actors::Index thread = actors_.thread(*global, *start, *start);
    Node* made = node({actors_.process(*global), *number});
    if (made == nullptr) continue;
    made->created_ns = std::min(made->created_ns.value_or(INT64_MAX), *start);
    made->thread = thread;
    if (const auto original = rows.integer(3)) made->original = *original;
  }
  return rows.finish();
}

std::int64_t Graphs::graph_id(Actors::Index process, std::int64_t graph) {
  const auto known = graphs_.find({process, graph});
  if (known != graphs_.end()) return known->second;
  if (graphs_.size() >= kMostNodes) {
    database_.sink().lose(trace::Loss::kInputLimit, 1, "graphs beyond a million");
    return 0;
  }
  return graphs_[{process, graph}] = database_.sink().new_id();
}

Graphs::Ids Graphs::take(const Work& work) {
  Ids ids;
  if (Node* executed = node({work.process, work.node})) {
    executed->kind = work.kind;
    if (executed->name.id == 0) executed->name = work.name;
    ids.node = executed->id;
  }
  const std::uint64_t number = std::uint64_t{work.process} << 32 | work.correlation;
  trace::GraphLaunch* launch = launches_.find(number);
  if (launch == nullptr) {
    if (launches_.full()) {
      database_.sink().lose(trace::Loss::kInputLimit, 1, "work of graph launches beyond a million");
      return ids;
    }
    const trace::Id id = database_.sink().new_id();
    launch = &launches_.add(number, {id, graph_id(work.process, work.node >> 32), work,
                                     work.launch ? &*work.launch : nullptr});
  }
  launch->add_node(work.begin_ns, work.end_ns);
  ids.launch = launch->row.id;
  return ids;
}

void Graphs::write_node(const NodeKey& key, const Node& node) {
  Sink& sink = database_.sink();
  const auto captured = nodes_.find({key.first, node.original});
  const Node& made = captured == nodes_.end() ? node : captured->second;
  trace::GraphNodeRow row;
  row.id = node.id;
  row.graph = graph_id(key.first, key.second >> 32);
  row.node = key.second;
  if (node.original >= 0) row.captured_node = node.original;
  row.name = node.name;
  row.kind = sink.name(kKinds[static_cast<std::size_t>(node.kind)]);
  row.captured_ns = made.created_ns;
  if (made.thread != 0) row.thread_id = actors_.thread_id(made.thread);
  sink.add(row);
}

void Graphs::write() {
  launches_.write_all(database_.sink());
  for (const auto& [key, node] : nodes_) write_node(key, node);
}

}  // namespace llmprof::importers::nsys
