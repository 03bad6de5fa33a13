#include "analyze/step_series.h"

#include <algorithm>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/assert.h"

namespace llmprof::analyze {

Result<std::vector<StepSeries>> training_series(const trace::Run& run) {
  LLMPROF_LET(const std::vector<TrainingStep> steps, ask_rows<TrainingStep>(run, "sql/training_steps"));
  std::vector<StepSeries> all;
  for (const TrainingStep& step : steps) {
    if (all.empty() || all.back().process_id != step.process_id || all.back().thread_id != step.thread_id)
      all.push_back({.process_id = step.process_id, .thread_id = step.thread_id});
    all.back().steps.push_back(step);
    all.back().steps.back().between_ns = step.total_ns - step.forward_ns - step.backward_ns - step.optimizer_ns;
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
