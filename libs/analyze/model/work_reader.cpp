#include "analyze/model/work_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "analyze/passes/graphs.h"
#include "analyze/questions.h"

namespace llmprof::analyze {

namespace {

// Kernels read at once: their columns and rows take about 60 MB, which allocators give again to the next block.
constexpr std::int64_t kBlockKernels = 250'000;

using KernelColumns = std::vector<std::vector<std::int64_t>*>;  // as sql/pass_kernels.sql names them

void sort_by_begin(const std::vector<std::int64_t>& begin_ns, const KernelColumns& columns) {
  if (std::is_sorted(begin_ns.begin(), begin_ns.end())) return;
  std::vector<std::uint32_t> order(begin_ns.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return begin_ns[a] < begin_ns[b]; });
  for (auto* column : columns) permute(*column, order);
}

Result<trace::Columns> read_slice(const trace::Run& run, std::string_view question, Window slice,
                                  std::string_view order = "") {
  return run.columns(fmt::format("{} WHERE begin_ns >= {} AND begin_ns < {} {}", sql_of(question),
                                 slice.begin_ns, slice.end_ns, order));
}

Result<Kernels> read_kernels(const trace::Run& run, Window slice, WorkReader::With with) {
  constexpr std::array<std::string_view, 3> kQuestions{"pass_kernel_ends", "pass_kernels",
                                                       "pass_kernel_sums"};
  LLMPROF_LET(trace::Columns columns, read_slice(run, kQuestions[static_cast<std::size_t>(with)], slice));
  Kernels kernels;
  KernelColumns targets{&kernels.begin_ns, &kernels.end_ns, &kernels.thread_id, &kernels.launch_begin_ns,
                        &kernels.device_id};
  if (with != WorkReader::With::kTimes)
    targets.insert(targets.end(), {&kernels.id, &kernels.gemm_id, &kernels.graph_node_id});
  if (with == WorkReader::With::kAll) {
    targets.insert(targets.end(), {&kernels.launch_end_ns, &kernels.stream, &kernels.graph_launch_id, &kernels.stack_id,
                                   &kernels.name, &kernels.estimated});
  }
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  kernels.texts = std::move(columns.names);
  if (with != WorkReader::With::kTimes) sort_by_begin(std::vector(kernels.begin_ns), targets);
  return kernels;
}

Result<GraphLaunches> read_launches(const trace::Run& run, Window slice) {
  LLMPROF_LET(trace::Columns columns, read_slice(run, "pass_launches", slice, "ORDER BY begin_ns, id"));
  GraphLaunches launches;
  const std::array targets{&launches.id,        &launches.begin_ns,        &launches.end_ns,
                           &launches.thread_id, &launches.launch_begin_ns, &launches.device_id,
                           &launches.graph,     &launches.nodes_recorded};
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  return launches;
}

Result<WorkBlock> read_block(const trace::Run& run, Window work, WorkReader::With with, bool first) {
  WorkBlock block;
  LLMPROF_LET(block.kernels, read_kernels(run, work, with));
  LLMPROF_LET(block.launches, read_launches(run, work));
  if (with == WorkReader::With::kAll) {
    // What is not a kernel may begin before the first of them.
    const Window others{first ? INT64_MIN + 1 : work.begin_ns, work.end_ns};
    LLMPROF_LET(block.others, read_copies_and_waits(run, others));
  }
  return block;
}

}  // namespace

Result<CopiesAndWaits> read_copies_and_waits(const trace::Run& run, Window slice) {
  CopiesAndWaits read;
  LLMPROF_LET(read.copies, read_slice(run, "pass_copies", slice, "ORDER BY begin_ns"));
  LLMPROF_LET(read.waits, read_slice(run, "pass_waits", slice, "ORDER BY begin_ns"));
  return read;
}

// At most kBlockKernels in each, but for a single slice that holds more.
Result<std::vector<Window>> work_blocks(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable slices, ask(run, "pass_kernel_slices"));
  std::vector<Window> blocks;
  std::int64_t filled = 0;
  for (const auto& row : slices.rows) {
    const std::int64_t begin = row[0].as_int();
    const std::int64_t kernels = row[1].as_int();
    if (blocks.empty() || filled + kernels > kBlockKernels) {
      if (!blocks.empty()) blocks.back().end_ns = begin;
      blocks.push_back({begin, INT64_MAX});
      filled = 0;
    }
    filled += kernels;
  }
  return blocks;
}

Result<WorkBlock> WorkReader::take() {
  if (begun_ == 0) read_next();
  Result<WorkBlock> block = next_.get();
  if (begun_ < blocks_.size()) read_next();
  return block;
}

void WorkReader::read_next() {
  const bool first = begun_ == 0;
  // Either policy: where no thread can be had, take() reads.
  next_ = std::async(
      std::launch::async | std::launch::deferred,
      [run = run_, work = blocks_[begun_], with = with_, first] { return read_block(*run, work, with, first); });
  ++begun_;
}

namespace {

constexpr std::int64_t kBlockCalls = 1'000'000;  // read at once

class ShapeTable {
 public:
  explicit ShapeTable(std::vector<CallShape>& shapes) : shapes_(shapes) {}
  std::uint32_t id(const CallShape& shape) {
    if (!shapes_.empty() && shapes_[last_] == shape) return last_;
    const auto key = std::tuple(shape.m, shape.n, shape.k, shape.batch, shape.order, shape.transposed);
    const auto [entry, fresh] = ids_.try_emplace(key, static_cast<std::uint32_t>(shapes_.size()));
    if (fresh) shapes_.push_back(shape);
    return last_ = entry->second;
  }

 private:
  std::vector<CallShape>& shapes_;
  using Key =
      std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, CallShape::Order, CallShape::Transposed>;
  std::map<Key, std::uint32_t> ids_;
  std::uint32_t last_ = 0;
};

CallShape::Order order_of(std::string_view layout) {
  if (layout == "row") return CallShape::Order::kRowMajor;
  return layout == "column" ? CallShape::Order::kColumnMajor : CallShape::Order::kUnknown;
}

CallShape::Transposed transposed_of(std::int64_t code) {
  using enum CallShape::Transposed;
  constexpr std::array<CallShape::Transposed, 4> kCodes{kNeither, kA, kB, kBoth};
  return code < 0 || code > 3 ? kUnknown : kCodes[code];
}

void append(const trace::Columns& block, ShapeTable& shapes, RunCalls& out) {
  for (std::size_t i = 0; i < block.rows(); ++i) {
    out.gemm_id.push_back(block.values[0][i]);
    out.calls.thread_id.push_back(block.values[1][i]);
    out.calls.begin_ns.push_back(block.values[2][i]);
    out.calls.end_ns.push_back(block.values[3][i]);
    out.calls.shape.push_back(shapes.id({.m = block.values[4][i],
                                         .n = block.values[5][i],
                                         .k = block.values[6][i],
                                         .batch = block.values[7][i],
                                         .order = order_of(block.names[block.values[8][i]]),
                                         .transposed = transposed_of(block.values[9][i])}));
  }
}

void sort_by_thread_and_time(RunCalls& run) {
  const Calls& calls = run.calls;
  std::vector<std::uint32_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::tie(calls.thread_id[a], calls.begin_ns[a], a) < std::tie(calls.thread_id[b], calls.begin_ns[b], b);
  });
  for (auto* column : {&run.calls.thread_id, &run.calls.begin_ns, &run.calls.end_ns, &run.gemm_id})
    permute(*column, order);
  permute(run.calls.shape, order);
}

}  // namespace

Result<ProcessOfThread> read_threads(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "pass_threads"));
  ProcessOfThread process_of_thread;
  for (const auto& row : table.rows) process_of_thread[row[0].as_int()] = row[1].as_int();
  return process_of_thread;
}

Result<RunCalls> read_calls(const trace::Run& run, const ProcessOfThread& process_of_thread, int blocks) {
  RunCalls out;
  ShapeTable shapes(out.calls.shapes);
  std::int64_t after_id = INT64_MIN;
  for (std::size_t read = 1; read > 0;) {
    LLMPROF_LET(const trace::Columns block,
                run.columns(fmt::format("{}WHERE id > {} ORDER BY id LIMIT {}", sql_of("pass_calls"),
                                        after_id, kBlockCalls)));
    append(block, shapes, out);
    read = --blocks == 0 ? 0 : block.rows();
    if (read > 0) after_id = block.values[0].back();
  }
  sort_by_thread_and_time(out);
  for (const std::int64_t thread : out.calls.thread_id)
    out.calls.process_id.push_back(process_of(process_of_thread, thread));
  return out;
}

Result<RunCalls> read_captured_calls(const trace::Run& run) {
  RunCalls out;
  ShapeTable shapes(out.calls.shapes);
  LLMPROF_LET(const trace::Columns block, ask_columns(run, "pass_captured_calls"));
  append(block, shapes, out);
  out.calls.process_id = out.calls.thread_id;
  out.calls.segment.assign(out.calls.size(), 0);
  return out;
}

Result<std::vector<std::int32_t>> add_launched_passes(const trace::Run& run, const Matches& captured,
                                                      const std::vector<MatchedPass>& others, Matches& matches) {
  std::map<std::int64_t, std::vector<const MatchedPass*>> of_graph;
  for (const MatchedPass& pass : captured.passes) of_graph[pass.thread_id].push_back(&pass);
  std::vector<std::pair<MatchedPass, std::int32_t>> all;
  for (std::size_t i = 0; i < matches.passes.size(); ++i) all.emplace_back(matches.passes[i], i);
  for (const MatchedPass& pass : others) all.emplace_back(pass, kNone);
  LLMPROF_LET(const trace::Columns launches, ask_columns(run, "pass_launch_times"));
  for (std::size_t i = 0; i < launches.rows(); ++i) {
    const auto passes = of_graph.find(launches.values[0][i]);
    if (passes == of_graph.end() || passes->second.size() != 1) continue;
    MatchedPass pass = *passes->second.front();
    pass.thread_id = launches.values[1][i];
    pass.begin_ns = launches.values[2][i];
    pass.end_ns = launches.values[3][i];
    all.emplace_back(pass, kNone);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.thread_id, a.first.begin_ns) < std::tie(b.first.thread_id, b.first.begin_ns);
  });
  std::vector<std::int32_t> place_of(matches.passes.size());
  matches.passes.clear();
  for (const auto& [pass, old] : all) {
    if (old != kNone) place_of[old] = static_cast<std::int32_t>(matches.passes.size());
    matches.passes.push_back(pass);
  }
  return place_of;
}

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
  LLMPROF_LET(const KernelsOfProcesses sampled, read_kernels(run, "pass_sampled_kernels", codes));
  LLMPROF_LET(const KernelsOfProcesses outside, read_kernels(run, "pass_eager_kernels", codes));
  LLMPROF_LET(const trace::Columns rows, ask_columns(run, "pass_graph_kernels"));
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
  LLMPROF_LET(trace::Columns nodes, ask_columns(run, "pass_graph_nodes"));
  if (nodes.rows() == 0) return facts;
  GraphNodes& to = facts.nodes;
  const std::array columns{&to.id, &to.graph, &to.captured_node, &to.captured_ns, &to.thread_id, &to.gemm_id};
  for (std::size_t i = 0; i < columns.size(); ++i) *columns[i] = std::move(nodes.values[i]);
  for (const std::int64_t kind : nodes.values[columns.size()]) to.kind.push_back(static_cast<NodeKind>(kind));
  std::vector<KernelClass> classes;  // by code of the name
  for (const std::string& name : nodes.names) classes.push_back(class_of_kernel(name));
  for (const std::int64_t code : nodes.values[columns.size() + 1]) to.is.push_back(classes[code]);
  LLMPROF_LET(trace::Columns measured, ask_columns(run, "pass_node_times"));
  NodeTimes times;
  if (measured.rows() > 0) {
    const std::array targets{&times.node_id, &times.graph, &times.begin_ns, &times.end_ns, &times.samples};
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(measured.values[i]);
  }
  LLMPROF_LET(const trace::Columns durations, ask_columns(run, "pass_graph_durations"));
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

Result<std::string> kernel_names(const trace::Run& run, const std::function<bool(KernelClass)>& wanted,
                                 std::string_view where) {
  LLMPROF_LET(const trace::ResultTable names,
              run.query(fmt::format("SELECT DISTINCT name FROM kernel WHERE name IS NOT NULL AND ({})", where)));
  std::string list;
  for (const auto& row : names.rows) {
    if (wanted(class_of_kernel(row[0].text))) list += (list.empty() ? "" : ", ") + trace::sql_literal(row[0].text);
  }
  return list;
}

}  // namespace llmprof::analyze
