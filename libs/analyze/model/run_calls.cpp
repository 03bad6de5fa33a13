#include "analyze/model/run_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "analyze/questions.h"

namespace llmprof::analyze {

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
  return code < 0 || code > 3 ? kUnknown : kCodes[static_cast<std::size_t>(code)];
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

template <class T>
void permute(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
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

Result<RunCalls> read_calls(const trace::Run& run,
                            const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread, int blocks) {
  RunCalls out;
  ShapeTable shapes(out.calls.shapes);
  std::int64_t after_id = INT64_MIN;
  for (std::size_t read = 1; read > 0;) {
    LLMPROF_LET(const trace::Columns block, run.columns(fmt::format("{}WHERE id > {} ORDER BY id LIMIT {}",
                                                                    sql_of("sql/pass_calls"), after_id, kBlockCalls)));
    append(block, shapes, out);
    read = --blocks == 0 ? 0 : block.rows();
    if (read > 0) after_id = block.values[0].back();
  }
  sort_by_thread_and_time(out);
  for (const std::int64_t thread : out.calls.thread_id) {
    const auto process = process_of_thread.find(thread);
    out.calls.process_id.push_back(process == process_of_thread.end() ? 0 : process->second);
  }
  return out;
}

Result<RunCalls> read_captured_calls(const trace::Run& run) {
  RunCalls out;
  ShapeTable shapes(out.calls.shapes);
  LLMPROF_LET(const trace::Columns block, ask_columns(run, "sql/pass_captured_calls"));
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
  LLMPROF_LET(const trace::Columns launches, ask_columns(run, "sql/pass_launch_times"));
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

}  // namespace llmprof::analyze
