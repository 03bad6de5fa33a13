#include "pictures/timeline_facts.h"

#include <algorithm>

#include "trace/chunk_row.h"

namespace llmprof::pictures {
namespace {

// Ids of kernels count up from 1; a run that does not number them so gets no stages rather than endless memory.
constexpr std::int64_t kMostIds = 1'000'000'000;

void complete(GraphNodes& graph) {
  double until = 0, longest = -1;
  for (const GraphNodes::Node& node : graph.nodes) {
    graph.covered_share += std::max(0.0, node.end_share - std::max(until, node.begin_share));
    until = std::max(until, node.end_share);
    if (node.end_share - node.begin_share <= longest) continue;
    longest = node.end_share - node.begin_share;
    graph.heaviest = node.name;
  }
}

}  // namespace

std::int32_t Names::number(std::string_view text) {
  const auto [found, is_new] = numbers_.try_emplace(std::string(text), static_cast<std::int32_t>(texts_.size()));
  if (is_new) texts_.emplace_back(text);
  return found->second;
}

std::int32_t TimelineFacts::stage_at(std::int64_t thread_id, std::int64_t at_ns) const {
  const auto found = steps_of_thread.find(thread_id);
  if (found == steps_of_thread.end()) return -1;
  const auto first = steps.begin() + static_cast<std::ptrdiff_t>(found->second.first);
  const auto last = steps.begin() + static_cast<std::ptrdiff_t>(found->second.second);
  const auto behind =
      std::upper_bound(first, last, at_ns, [](std::int64_t at, const Step& step) { return at < step.begin_ns; });
  if (behind == first || (behind - 1)->end_ns < at_ns) return -1;
  return (behind - 1)->stage;
}

std::vector<Step> TimelineFacts::drawn_steps() const {
  std::vector<Step> drawn;
  std::int64_t thread = INT64_MIN, until = INT64_MIN;
  for (Step step : steps) {
    if (step.thread_id != thread) until = INT64_MIN;
    thread = step.thread_id;
    step.begin_ns = std::max(step.begin_ns, until);
    until = std::max(until, step.end_ns);
    if (step.begin_ns < step.end_ns) drawn.push_back(step);
  }
  return drawn;
}

Result<void> TimelineFacts::load_steps(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns rows,
              run.columns("SELECT id, begin_ns, end_ns, process_id, thread_id, stage FROM step "
                          "ORDER BY thread_id, begin_ns, end_ns DESC"));
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto value = [&](std::size_t column) { return rows.values[column][i]; };
    Step step{value(0), value(1), std::max(value(1), value(2)), value(3), value(4), -1};
    if (value(5) != 0) step.stage = names.number(rows.names[static_cast<std::size_t>(value(5))]);
    auto& of_thread = steps_of_thread.try_emplace(step.thread_id, steps.size(), steps.size()).first->second;
    of_thread.second = steps.size() + 1;
    steps.push_back(step);
  }
  return {};
}

Result<void> TimelineFacts::load_stages(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable ids, run.query("SELECT min(id), max(id), count(*) FROM kernel"));
  kernels = ids.rows[0][2].as_int();
  first_kernel_ = ids.rows[0][0].as_int();
  const std::size_t last = place(ids.rows[0][1].as_int());
  if (kernels == 0 || last > static_cast<std::size_t>(std::min(kMostIds, 1'000'000 + 64 * kernels))) return {};
  stages_.resize(last + 1);
  std::vector<std::uint8_t> of_code;  // of the result -> into stage_names_; 0 none
  return trace::each_row(run, "SELECT kernel_id, stage FROM attribution WHERE stage IS NOT NULL",
                         [&](const trace::ChunkRow& row) {
                           const auto code = static_cast<std::size_t>(row[1]);
                           if (code >= of_code.size()) of_code.resize(row.chunk.names.size());
                           if (code != 0 && of_code[code] == 0 && stage_names_.size() < 255) {
                             of_code[code] = static_cast<std::uint8_t>(stage_names_.size());
                             stage_names_.push_back(names.number(row.text(1)));
                           }
                           if (const std::size_t at = place(row[0]); at < stages_.size()) stages_[at] = of_code[code];
                         });
}

// As the analysis knows them (libs/analyze/sql/passes.sql).
Result<void> TimelineFacts::load_waits(const trace::Run& run) {
  return trace::each_row(run,
                         "SELECT begin_ns, end_ns FROM api WHERE (waits OR contains(name, 'Synchronize')) AND "
                         "begin_ns <= end_ns ORDER BY end_ns, begin_ns",
                         [&](const trace::ChunkRow& row) {
                           while (!waits.empty() && waits.back().begin_ns >= row[0]) waits.pop_back();
                           waits.push_back({row[0], row[1]});
                         });
}

Result<void> TimelineFacts::load_graphs(const trace::Run& run) {
  LLMPROF_TRY(trace::each_row(
      run,
      "SELECT n.graph, n.name, CAST(s.begin_share AS DOUBLE), CAST(s.end_share AS DOUBLE) FROM graph_node AS n JOIN "
      "node_share AS s ON s.graph_node_id = n.id WHERE n.kind IS NULL OR n.kind = 'kernel' ORDER BY n.graph, "
      "s.begin_share, s.end_share",
      [&](const trace::ChunkRow& row) {
        const std::string& name = row.text(1);
        graphs[row[0]].nodes.push_back({row.real(2), row.real(3), names.number(name.empty() ? "(no name)" : name)});
      }));
  for (auto& graph : graphs) complete(graph.second);
  return {};
}

Result<void> TimelineFacts::load_bounds(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable rows, run.query(R"(
WITH bounds AS (
  SELECT min(begin_ns) AS a, max(greatest(begin_ns, end_ns)) AS b FROM kernel
  UNION ALL SELECT min(launch_begin_ns), max(launch_end_ns) FROM kernel
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM graph_launch
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM copy
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM api
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM op
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM "range"
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM step
  UNION ALL SELECT min(begin_ns), max(coalesce(end_ns, begin_ns)) FROM process
  UNION ALL SELECT min(ts_ns), max(ts_ns) FROM sample)
SELECT min(a), max(b), (SELECT count(*) > 0 FROM api WHERE contains(lower(name), 'launch')) FROM bounds)"));
  bounds.begin_ns = rows.rows[0][0].as_int();
  bounds.end_ns = std::max(bounds.begin_ns, rows.rows[0][1].as_int());
  calls_launch = rows.rows[0][2].integer != 0;
  return {};
}

Result<TimelineFacts> TimelineFacts::load(const trace::Run& run) {
  TimelineFacts facts;
  LLMPROF_LET(facts.tracks, exporters::load_tracks(run));
  LLMPROF_TRY(facts.load_steps(run));
  LLMPROF_TRY(facts.load_stages(run));
  LLMPROF_TRY(facts.load_waits(run));
  LLMPROF_TRY(facts.load_graphs(run));
  LLMPROF_TRY(facts.load_bounds(run));
  return facts;
}

}  // namespace llmprof::pictures
