#include "analyze/rules/facts/ranks.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyze/rows_of.h"

namespace llmprof::analyze {

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

}  // namespace llmprof::analyze
