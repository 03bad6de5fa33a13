#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "analyze/names/ranges.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/sections.h"
#include "analyze/steps/step_curve.h"
#include "base/assert.h"

namespace llmprof::analyze {

Result<std::vector<StepSeries>> training_series(const trace::Run& run) {
  LLMPROF_LET(const std::vector<TrainingStep> steps, ask_rows<TrainingStep>(run, "training_steps"));
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

namespace {

StepCurve& curve_of(std::string_view stage, std::vector<StepCurve>& curves) {
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const StepCurve& c) { return c.stage == stage; });
  if (found != curves.end()) return *found;
  curves.push_back({.stage = std::string(stage)});
  return curves.back();
}

void sum_up(StepCurve& curve) {
  curve.steps = std::ssize(curve.duration_ns);
  std::vector<std::int64_t> order = curve.duration_ns;
  const auto middle = order.begin() + (std::ssize(order) - 1) / 2;
  std::nth_element(order.begin(), middle, order.end());
  curve.median_ns = *middle;
  const auto [least, most] = std::minmax_element(order.begin(), order.end());
  curve.least_ns = *least;
  curve.most_ns = *most;
}

}  // namespace

void thin(StepCurve& curve, std::size_t most) {
  const std::size_t steps = curve.duration_ns.size();
  if (steps <= most || most == 0) return;
  std::vector<std::size_t> kept;
  for (std::size_t piece = 0; piece < most; ++piece) {
    const auto begin = curve.duration_ns.begin() + static_cast<std::ptrdiff_t>(piece * steps / most);
    const auto end = curve.duration_ns.begin() + static_cast<std::ptrdiff_t>((piece + 1) * steps / most);
    kept.push_back(static_cast<std::size_t>(std::max_element(begin, end) - curve.duration_ns.begin()));
  }
  for (auto* column : {&curve.begin_ns, &curve.duration_ns, &curve.batch, &curve.context}) {
    for (std::size_t i = 0; i < kept.size(); ++i) (*column)[i] = (*column)[kept[i]];  // kept[i] >= i
    column->resize(kept.size());
  }
}

Result<std::vector<StepCurve>> step_curves(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "step_curves"));
  std::vector<StepCurve> curves;
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    StepCurve& curve = curve_of(steps.names[steps.values[0][i]], curves);
    curve.begin_ns.push_back(steps.values[1][i]);
    curve.duration_ns.push_back(steps.values[2][i]);
    curve.batch.push_back(steps.values[3][i]);
    curve.context.push_back(steps.values[4][i]);
  }
  for (StepCurve& curve : curves) {
    sum_up(curve);
    thin(curve, kMostPoints);
  }
  return curves;
}

namespace {

struct BlockRow {
  std::string module, stage;
  std::int64_t calls = 0, total_ns = 0;
  bool layer = false;
};

}  // namespace

Result<std::vector<Block>> blocks_of(const trace::Run& run, bool on_gpu) {
  LLMPROF_LET(const std::vector<BlockRow> rows, ask_rows<BlockRow>(run, on_gpu ? "gpu_blocks" : "blocks"));
  std::vector<Block> blocks;
  bool layers = false;
  for (const BlockRow& row : rows) {
    if (blocks.empty() || blocks.back().name != row.module) blocks.push_back({.name = row.module});
    blocks.back().stages.push_back({row.stage, row.calls, row.total_ns});
    layers = layers || row.layer;
  }
  if (!layers) blocks.clear();
  return blocks;
}

namespace {

std::string understood(std::string_view kind, std::string_view stage) {
  if (kind == "step") return fmt::format("step of {}", stage);
  if (kind == "stage") return fmt::format("container of {}", stage.empty() ? "steps" : stage);
  if (kind == "module") return stage.empty() ? "part" : fmt::format("part, in {}", stage);
  return stage.empty() ? "-" : fmt::format("-, in {}", stage);
}

}  // namespace

Result<std::vector<RangeNode>> range_tree(const trace::Run& run) {
  LLMPROF_LET(std::vector<RangeNode> rows, ask_rows<RangeNode>(run, "range_tree"));
  std::map<std::int64_t, std::vector<std::size_t>> inside;  // rows by the row around them; they come in order
  for (std::size_t i = 0; i < rows.size(); ++i) inside[rows[i].parent_id].push_back(i);
  std::vector<RangeNode> out;
  const std::function<void(std::int64_t, int)> add = [&](std::int64_t parent, int depth) {
    for (const std::size_t i : inside[parent]) {
      RangeNode& node = out.emplace_back(std::move(rows[i]));
      node.depth = depth;
      node.label = std::string(2 * static_cast<std::size_t>(depth), ' ') + node.name;
      node.understood = understood(node.kind, node.stage);
      add(node.id, depth + 1);
    }
  };
  add(0, 0);
  return out;
}

Result<std::vector<NameMeaning>> name_meanings(const trace::Run& run) {
  LLMPROF_LET(std::vector<NameMeaning> out, ask_rows<NameMeaning>(run, "range_meanings"));
  for (NameMeaning& meaning : out) meaning.understood = understood(meaning.kind, meaning.stage);
  return out;
}

}  // namespace llmprof::analyze
