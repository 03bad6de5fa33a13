#include "analyze/rules/facts/logits.h"

#include <algorithm>
#include <functional>

#include "analyze/rows_of.h"
#include "analyze/rules/say.h"

namespace llmprof::analyze {
namespace {

bool makes_logits(std::string_view op) { return op == "lm_head" || op.ends_with(".lm_head") || op == "logits"; }

struct Sums {
  double head = 0, after = 0, all = 0, count = 0, shortest = 0;
  std::map<std::string, double> names;
};

// One step: what began once the logits were there.
void add_step(const StepKernels& all, std::size_t begin, std::size_t end, Sums& sums) {
  std::int64_t ready = INT64_MAX;
  for (std::size_t i = begin; i < end; ++i) {
    const StepKernel& kernel = all.kernels[i];
    const auto time = static_cast<double>(kernel.time_ns());
    sums.all += time;
    sums.shortest = sums.shortest == 0 ? time : std::min(sums.shortest, time);
    if (!kernel.product || !makes_logits(all.text(kernel.op))) continue;
    sums.head += static_cast<double>(kernel.time_ns());
    ready = ready == INT64_MAX ? kernel.end_ns : std::max(ready, kernel.end_ns);
  }
  for (std::size_t i = begin; i < end; ++i) {
    const StepKernel& kernel = all.kernels[i];
    if (kernel.begin_ns < ready || kernel.product || is_collective(all.text(kernel.name))) continue;
    sums.after += static_cast<double>(kernel.time_ns());
    ++sums.count;
    sums.names[short_kernel(all.text(kernel.name))] += static_cast<double>(kernel.time_ns());
  }
}

}  // namespace

std::vector<StageLogits> logits_of(const StepKernels& kernels) {
  std::map<std::string, Sums> stages;
  for (std::size_t begin = 0, end = 0; begin < kernels.kernels.size(); begin = end) {
    for (end = begin; end < kernels.kernels.size() && kernels.kernels[end].step_id == kernels.kernels[begin].step_id;)
      ++end;
    add_step(kernels, begin, end, stages[kernels.text(kernels.kernels[begin].stage)]);
  }
  std::vector<StageLogits> out;
  for (const auto& [name, sums] : stages) {
    if (sums.head <= 0) continue;
    const double scale = kernels.scale.at(name);
    StageLogits stage{.stage = name, .steps = scale * static_cast<double>(kernels.of.at(name))};
    stage.head_ns = scale * sums.head, stage.after_ns = scale * sums.after, stage.kernels_ns = scale * sums.all;
    stage.after_kernels = scale * sums.count, stage.shortest_ns = sums.shortest;
    std::vector<std::pair<double, std::string>> names;
    for (const auto& [kernel, ns] : sums.names) names.emplace_back(ns, kernel);
    std::ranges::sort(names, std::greater{});
    for (std::size_t i = 0; i < std::min<std::size_t>(3, names.size()); ++i) stage.names.push_back(names[i].second);
    out.push_back(std::move(stage));
  }
  return out;
}

Result<void> fill_logit_rows(const trace::Run& run, std::vector<StageLogits>& stages) {
  if (stages.empty()) return {};
  // The rows are the side of the product that is not the vocabulary, the larger of the two.
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(
          "SELECT w.stage, sum(least(g.m, g.n) * g.batch * w.gemm_calls) AS rows, "
          "(SELECT count(*) FROM step AS s WHERE s.stage = w.stage) AS steps, "
          "(SELECT avg(batch) FROM step AS s WHERE s.stage = w.stage) AS batch, "
          "(SELECT avg(tokens) FROM step AS s WHERE s.stage = w.stage) AS tokens "
          "FROM work_sum AS w JOIN gemm AS g ON g.id = w.gemm_id "
          "WHERE w.in_step AND w.gemm_calls > 0 AND (w.op = 'lm_head' OR w.op LIKE '%.lm_head' OR w.op = 'logits') "
          "GROUP BY w.stage"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto stage = std::ranges::find(stages, row.text("stage"), &StageLogits::stage);
    if (stage == stages.end() || row.integer("steps") == 0) continue;
    stage->rows_per_step = row.real("rows") / row.real("steps");
    stage->batch = row.real("batch"), stage->tokens = row.real("tokens");
  }
  return {};
}

}  // namespace llmprof::analyze
