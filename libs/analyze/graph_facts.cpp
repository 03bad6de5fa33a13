#include "analyze/graph_facts.h"

#include <algorithm>
#include <array>

#include "analyze/passes/eager_times.h"
#include "analyze/questions.h"

namespace llmprof::analyze {
namespace {

constexpr double kLeastKnown = 0.9;  // of a graph's kernels, before its time is divided among them

using NameCodes = std::unordered_map<std::string, std::uint32_t>;

std::uint32_t code_of(NameCodes& codes, const std::string& name) {
  return codes.try_emplace(name, static_cast<std::uint32_t>(codes.size())).first->second;
}

using KernelsOfProcesses = std::unordered_map<std::int64_t, EagerKernels>;

Result<KernelsOfProcesses> read_kernels(const trace::Run& run, const char* question, NameCodes& codes) {
  LLMPROF_LET(const trace::Columns rows, ask_columns(run, question));
  KernelsOfProcesses of_process;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    EagerKernels& kernels = of_process[rows.values[0][i]];
    kernels.name.push_back(code_of(codes, rows.names[rows.values[1][i]]));
    kernels.duration_ns.push_back(rows.values[2][i]);
  }
  return of_process;
}

struct LaunchedGraph {
  std::int64_t process_id = 0;
  std::vector<std::int64_t> nodes;
  std::vector<std::uint32_t> names;
};

// Kernels take other times alone than in a graph, so those of other graphs come first.
void add_shares(const std::unordered_map<std::int64_t, LaunchedGraph>& graphs, const KernelsOfProcesses& kernels,
                ShareBasis basis, GraphFacts& facts) {
  for (const auto& [id, graph] : graphs) {
    const auto elsewhere = kernels.find(graph.process_id);
    if (elsewhere == kernels.end() || facts.shares.contains(id)) continue;
    EagerTimes times = eager_times(graph.names, elsewhere->second);
    if (times.known < kLeastKnown) continue;
    facts.shares[id] =
        shares_of_sequence({graph.nodes, std::move(times.duration_ns), times.sequences, basis}, facts.nodes);
  }
}

// Graphs whose shares are still unknown take them from the same kernels elsewhere.
Result<void> add_shares_of_kernels_elsewhere(const trace::Run& run, GraphFacts& facts) {
  NameCodes codes;
  LLMPROF_LET(const KernelsOfProcesses sampled, read_kernels(run, "sql/pass_sampled_kernels", codes));
  LLMPROF_LET(const KernelsOfProcesses outside, read_kernels(run, "sql/pass_eager_kernels", codes));
  LLMPROF_LET(const trace::Columns rows, ask_columns(run, "sql/pass_graph_kernels"));
  std::unordered_map<std::int64_t, LaunchedGraph> graphs;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (facts.shares.contains(rows.values[0][i])) continue;
    LaunchedGraph& graph = graphs[rows.values[0][i]];
    graph.process_id = rows.values[1][i];
    graph.nodes.push_back(rows.values[2][i]);
    graph.names.push_back(code_of(codes, rows.names[rows.values[3][i]]));
  }
  add_shares(graphs, sampled, ShareBasis::kOtherGraphs, facts);
  add_shares(graphs, outside, ShareBasis::kKernelsOutside, facts);
  return {};
}

}  // namespace

Result<GraphFacts> read_graphs(const trace::Run& run) {
  GraphFacts facts;
  LLMPROF_LET(trace::Columns nodes, ask_columns(run, "sql/pass_graph_nodes"));
  if (nodes.rows() == 0) return facts;
  GraphNodes& to = facts.nodes;
  const std::array columns{&to.id, &to.graph, &to.captured_node, &to.captured_ns, &to.thread_id, &to.gemm_id};
  for (std::size_t i = 0; i < columns.size(); ++i) *columns[i] = std::move(nodes.values[i]);
  for (const std::int64_t kind : nodes.values[columns.size()]) to.kind.push_back(static_cast<NodeKind>(kind));
  std::vector<KernelClass> classes;  // by code of the name
  for (const std::string& name : nodes.names) classes.push_back(class_of_kernel(name));
  for (const std::int64_t code : nodes.values[columns.size() + 1])
    to.is.push_back(classes[static_cast<std::size_t>(code)]);
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
  const bool all_known = std::all_of(typical_ns.begin(), typical_ns.end(),
                                     [&](const auto& graph) { return facts.shares.contains(graph.first); });
  if (!all_known) LLMPROF_TRY(add_shares_of_kernels_elsewhere(run, facts));
  return facts;
}

void make_mixes(const std::vector<trace::NodePlaceRow>& places, GraphFacts& graphs) {
  std::unordered_map<std::int64_t, trace::Name> op_of_node;
  for (const trace::NodePlaceRow& place : places) op_of_node[place.graph_node_id] = place.op;
  for (const auto& [graph, shares] : graphs.shares) graphs.mixes[graph] = mix_of(shares, graphs.nodes, op_of_node);
}

std::vector<trace::NodeShareRow> node_share_rows(const GraphFacts& graphs, trace::Strings& strings) {
  const trace::Name bases[] = {strings.intern("same graph"), strings.intern("same capture"),
                               strings.intern("kernels outside"), strings.intern("other graphs")};
  std::vector<trace::NodeShareRow> rows;
  for (const auto& [graph, shares] : graphs.shares) {
    for (const NodeShare& node : shares.nodes) {
      rows.push_back({.graph_node_id = node.node_id,
                      .begin_share = node.begin,
                      .end_share = node.end,
                      .samples = node.samples,
                      .basis = bases[static_cast<std::size_t>(node.basis)],
                      .confidence = node.confidence()});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.graph_node_id < b.graph_node_id; });
  return rows;
}

}  // namespace llmprof::analyze
