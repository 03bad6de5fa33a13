#include "analyze/graph_facts.h"

#include <algorithm>
#include <array>

#include "analyze/questions.h"

namespace llmprof::analyze {

Result<GraphFacts> read_graphs(const trace::Run& run) {
  GraphFacts facts;
  LLMPROF_LET(trace::Columns nodes, ask_columns(run, "sql/pass_graph_nodes"));
  if (nodes.rows() == 0) return facts;
  GraphNodes& to = facts.nodes;
  const std::array columns{&to.id, &to.graph, &to.captured_node, &to.captured_ns, &to.thread_id, &to.gemm_id};
  for (std::size_t i = 0; i < columns.size(); ++i) *columns[i] = std::move(nodes.values[i]);
  for (const std::int64_t kind : nodes.values[columns.size()]) to.kind.push_back(static_cast<NodeKind>(kind));
  LLMPROF_LET(trace::Columns measured, ask_columns(run, "sql/pass_node_times"));
  NodeTimes times;
  if (measured.rows() > 0) {
    const std::array targets{&times.node_id, &times.graph, &times.begin_ns, &times.end_ns, &times.samples};
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(measured.values[i]);
  }
  LLMPROF_LET(const trace::Columns durations, ask_columns(run, "sql/pass_graph_durations"));
  std::unordered_map<std::int64_t, std::int64_t> typical_ns;
  for (std::size_t i = 0; i < durations.rows(); ++i) typical_ns[durations.values[0][i]] = durations.values[1][i];
  facts.shares = shares_of(facts.nodes, times, typical_ns);
  return facts;
}

void make_mixes(const std::vector<trace::NodePlaceRow>& places, GraphFacts& graphs) {
  std::unordered_map<std::int64_t, trace::Name> op_of_node;
  for (const trace::NodePlaceRow& place : places) op_of_node[place.graph_node_id] = place.op;
  for (const auto& [graph, shares] : graphs.shares) graphs.mixes[graph] = mix_of(shares, graphs.nodes, op_of_node);
}

std::vector<trace::NodeShareRow> node_share_rows(const GraphFacts& graphs, trace::Strings& strings) {
  const trace::Name same_graph = strings.intern("same graph"), same_capture = strings.intern("same capture");
  std::vector<trace::NodeShareRow> rows;
  for (const auto& [graph, shares] : graphs.shares) {
    for (const NodeShare& node : shares.nodes) {
      rows.push_back({.graph_node_id = node.node_id,
                      .begin_share = node.begin,
                      .end_share = node.end,
                      .samples = node.samples,
                      .basis = node.same_graph ? same_graph : same_capture,
                      .confidence = node.confidence()});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.graph_node_id < b.graph_node_id; });
  return rows;
}

}  // namespace llmprof::analyze
