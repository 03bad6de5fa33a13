#include "analyze/step_curve.h"

#include <algorithm>

#include "analyze/questions.h"

namespace llmprof::analyze {
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
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "sql/step_curves"));
  std::vector<StepCurve> curves;
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    StepCurve& curve = curve_of(steps.names[static_cast<std::size_t>(steps.values[0][i])], curves);
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

}  // namespace llmprof::analyze
