#include <algorithm>
#include <map>
#include <set>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts/subjects.h"

namespace llmprof::analyze {

Result<std::vector<StageExperts>> expert_facts(const trace::Run& run) {
  std::vector<StageExperts> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/expert_balance"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.stage = row.text("stage"),
                   .layers = row.integer("layers"),
                   .experts = row.integer("experts"),
                   .passes = row.integer("passes"),
                   .most_rows = row.real("most_rows"),
                   .mean_rows = row.real("mean_rows"),
                   .worst_layer = row.text("worst_layer"),
                   .worst_ratio = row.real("worst_ratio"),
                   .devices = row.integer("devices"),
                   .time_ns = row.real("time_ns"),
                   .slowest_ns = row.real("slowest_ns"),
                   .balanced_ns = row.real("balanced_ns")});
  }
  return out;
}

Result<std::vector<GraphBucket>> graph_buckets(const trace::Run& run) {
  std::vector<GraphBucket> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/graph_buckets"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.stage = row.text("stage"),
                   .captured_rows = row.integer("captured_rows"),
                   .rows = row.integer("rows"),
                   .launches = row.integer("launches"),
                   .time_ns = row.integer("time_ns"),
                   .median_ns = row.integer("median_ns")});
  }
  return out;
}

namespace {

struct Window {
  std::int64_t thread_id = 0, begin_ns = 0, end_ns = 0;
};

// A thread that begins anew (the same number of sequences, shorter than before) is not interrupted: nobody waited.
bool goes_on(const PassStep& before, const PassStep& step) {
  if (before.context == 0 || step.context == 0) return true;
  return step.context > before.context || step.batch > before.batch;
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::int64_t quantile_99(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::max<std::size_t>(1, (values.size() * 99 + 99) / 100) - 1];
}

// Prefills of other threads beside the time of a step; few, so a search per step is cheap enough.
bool beside(const std::vector<Window>& prefills, std::int64_t longest, const PassStep& step) {
  auto at = std::ranges::lower_bound(prefills, step.begin_ns - longest, {}, &Window::begin_ns);
  for (; at != prefills.end() && at->begin_ns < step.end_ns; ++at) {
    if (at->thread_id != step.thread_id && at->end_ns > step.begin_ns) return true;
  }
  return false;
}

}  // namespace

InterferenceFacts interference_of(const std::vector<PassStep>& steps) {
  using Kind = PassStep::Kind;
  std::vector<Window> prefills;
  std::int64_t longest = 0;
  for (const PassStep& step : steps) {
    if (step.kind != Kind::kPrefill && step.kind != Kind::kMixed) continue;
    prefills.push_back({step.thread_id, step.begin_ns, step.end_ns});
    longest = std::max(longest, step.end_ns - step.begin_ns);
  }
  std::ranges::sort(prefills, {}, &Window::begin_ns);
  InterferenceFacts out{.prefills = static_cast<std::int64_t>(prefills.size())};
  std::vector<std::int64_t> clean, interrupted;
  const PassStep* before = nullptr;  // the last step of the thread that made tokens
  bool prefill_between = false;
  for (const PassStep& step : steps) {
    if (before != nullptr && before->thread_id != step.thread_id) before = nullptr, prefill_between = false;
    if (step.kind == Kind::kPrefill) prefill_between = true;
    if (step.kind == Kind::kOther) before = nullptr;
    if (step.kind != Kind::kDecode && step.kind != Kind::kMixed) continue;
    if (before != nullptr && goes_on(*before, step) && step.end_ns > before->end_ns) {
      const bool hit = prefill_between || step.kind == Kind::kMixed || beside(prefills, longest, step);
      (hit ? interrupted : clean).push_back(step.end_ns - before->end_ns);
    }
    before = &step;
    prefill_between = false;
  }
  out.clean_p50_ns = median(clean), out.interrupted_p50_ns = median(interrupted);
  out.interrupted = static_cast<std::int64_t>(interrupted.size());
  for (const std::int64_t ns : interrupted) out.extra_ns += std::max<std::int64_t>(0, ns - out.clean_p50_ns);
  std::vector<std::int64_t> all = std::move(clean);
  all.insert(all.end(), interrupted.begin(), interrupted.end());
  out.intervals = static_cast<std::int64_t>(all.size());
  for (const std::int64_t ns : all) out.all_ns += ns;
  out.p99_ns = quantile_99(std::move(all));
  return out;
}

Result<InterferenceFacts> interference(const trace::Run& run) {
  LLMPROF_LET(
      const trace::Columns columns,
      run.columns("SELECT thread_id, begin_ns, end_ns, coalesce(batch, 0) AS batch, coalesce(context, 0) AS context, "
                  "CAST(CASE stage WHEN 'decode' THEN 0 WHEN 'mixed' THEN 1 WHEN 'prefill' THEN 2 ELSE 3 END AS "
                  "BIGINT) AS kind "
                  "FROM step ORDER BY thread_id, begin_ns"));
  std::vector<PassStep> steps;
  const auto& v = columns.values;
  for (std::size_t i = 0; i < columns.rows(); ++i)
    steps.push_back({v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], static_cast<PassStep::Kind>(v[5][i])});
  return interference_of(steps);
}

std::vector<StageRanks> ranks_of(const std::vector<RankStep>& steps) {
  std::map<std::string, std::map<std::int64_t, std::vector<const RankStep*>>> stages;
  std::map<std::string, std::set<std::int64_t>> ranks;
  for (const RankStep& step : steps) {
    stages[step.stage][step.number].push_back(&step);
    ranks[step.stage].insert(step.rank);
  }
  std::vector<StageRanks> out;
  for (const auto& [name, numbers] : stages) {
    StageRanks stage{.stage = name};
    for (const std::int64_t rank : ranks[name]) stage.ranks.push_back({.rank = rank});
    for (const auto& [number, made] : numbers) {
      if (number == 0 || made.size() != stage.ranks.size()) continue;
      ++stage.steps;
      double sum = 0;
      const RankStep* slowest = made.front();
      for (const RankStep* step : made) {
        RankTime& time = *std::ranges::find(stage.ranks, step->rank, &RankTime::rank);
        time.own_ns += step->own_ns, time.collective_ns += step->collective_ns;
        sum += step->own_ns;
        if (step->own_ns > slowest->own_ns) slowest = step;
      }
      ++std::ranges::find(stage.ranks, slowest->rank, &RankTime::rank)->slowest_in;
      stage.slowest_ns += slowest->own_ns;
      stage.mean_ns += sum / static_cast<double>(made.size());
    }
    out.push_back(std::move(stage));
  }
  return out;
}

Result<std::vector<StageRanks>> rank_facts(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable ranks,
              run.query("SELECT count(DISTINCT rank) AS n FROM process WHERE rank IS NOT NULL"));
  if (RowView{ranks, 0}.integer("n") < 2) return std::vector<StageRanks>{};
  LLMPROF_LET(const trace::ResultTable table, run.query(R"(
WITH ordered AS (
  SELECT s.*, p.rank, greatest(s.begin_ns, coalesce(lag(s.end_ns) OVER (PARTITION BY s.thread_id ORDER BY s.begin_ns), 0)) AS from_ns
  FROM step AS s JOIN process AS p ON p.id = s.process_id
  WHERE p.rank IS NOT NULL),
collective AS (
  SELECT a.step_id, sum(k.end_ns - k.begin_ns) AS ns
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id
  WHERE a.step_id IS NOT NULL AND (k.name LIKE '%nccl%' OR k.name LIKE '%rccl%' OR k.name LIKE '%all_reduce%' OR k.name LIKE '%cross_device_reduce%')
  GROUP BY a.step_id)
SELECT o.stage, o.number, o.rank, CAST(coalesce(c.ns, 0) AS BIGINT) AS collective_ns,
  CAST(greatest(o.end_ns - o.from_ns - coalesce(c.ns, 0), 0) AS BIGINT) AS own_ns
FROM ordered AS o LEFT JOIN collective AS c ON c.step_id = o.id
WHERE o.stage NOT IN ('load', 'warm-up')
ORDER BY ALL)"));
  std::vector<RankStep> steps;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    steps.push_back(
        {row.text("stage"), row.integer("number"), row.integer("rank"), row.real("own_ns"), row.real("collective_ns")});
  }
  return ranks_of(steps);
}

const StageWaits* HostWaits::of(std::string_view stage) const {
  const auto found =
      std::find_if(stages.begin(), stages.end(), [&](const StageWaits& each) { return each.stage == stage; });
  return found == stages.end() ? nullptr : &*found;
}

Result<HostWaits> host_waits(const trace::Run& run) {
  HostWaits out;
  LLMPROF_LET(const trace::ResultTable any, run.query("SELECT count(*) FROM (SELECT 1 FROM api LIMIT 1)"));
  out.recorded = any.rows[0][0].as_int() > 0;
  if (!out.recorded) return out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_waits"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    if (out.stages.empty() || out.stages.back().stage != row.text("stage"))
      out.stages.push_back({.stage = row.text("stage"), .function = row.text("name")});
    StageWaits& stage = out.stages.back();
    stage.calls += row.integer("calls");
    stage.steps = std::max(stage.steps, row.integer("steps"));
    stage.time_ns += row.integer("time_ns");
  }
  return out;
}

}  // namespace llmprof::analyze
