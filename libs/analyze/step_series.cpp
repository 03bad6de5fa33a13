#include "analyze/step_series.h"

#include <algorithm>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/assert.h"

namespace llmprof::analyze {

Result<std::vector<StepSeries>> training_series(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/training_steps"));
  std::vector<StepSeries> all;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const std::int64_t process = row.integer("process_id");
    const std::int64_t thread = row.integer("thread_id");
    if (all.empty() || all.back().process_id != process || all.back().thread_id != thread) {
      all.push_back({.process_id = process, .thread_id = thread});
    }
    all.back().steps.push_back({.number = row.integer("number"),
                                .begin_ns = row.integer("begin_ns"),
                                .forward_ns = row.integer("forward_ns"),
                                .backward_ns = row.integer("backward_ns"),
                                .optimizer_ns = row.integer("optimizer_ns"),
                                .total_ns = row.integer("total_ns"),
                                .tokens = row.integer("tokens")});
  }
  return all;
}

const TrainingStep& median_step(const StepSeries& series) {
  LLMPROF_ASSERT(!series.steps.empty());
  std::vector<const TrainingStep*> order;
  order.reserve(series.steps.size());
  for (const TrainingStep& step : series.steps) order.push_back(&step);
  const auto middle = order.begin() + (std::ssize(order) - 1) / 2;
  std::nth_element(order.begin(), middle, order.end(), [](const TrainingStep* a, const TrainingStep* b) {
    return a->total_ns != b->total_ns ? a->total_ns < b->total_ns : a->number < b->number;
  });
  return **middle;
}

}  // namespace llmprof::analyze
