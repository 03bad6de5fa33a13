#include "analyze/rules/stage_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/diagnose.h"
#include "base/human.h"

namespace llmprof::analyze {

std::optional<double> StageView::term(std::string_view name) const {
  if (waterfall == nullptr || waterfall->measured_ns <= 0) return std::nullopt;
  std::optional<double> sum;
  for (const WaterfallTerm& each : waterfall->terms) {
    if (each.name == name && each.ns) sum = sum.value_or(0) + static_cast<double>(*each.ns);
  }
  if (!sum) return std::nullopt;
  return *sum / static_cast<double>(waterfall->measured_ns) * total_ns;
}

double StageView::idle_launching_ns() const { return term("gaps").value_or(0) + term("queued").value_or(0); }

double StageView::busy_ns() const {
  if (waterfall == nullptr) return static_cast<double>(stage->device_busy_ns);
  double idle = 0;
  for (const char* name : {"between_steps", "gaps", "queued", "waits", "copies", "other_kernels"})
    idle += term(name).value_or(0);
  return std::max(0.0, total_ns - idle);
}

std::string StageView::per_step(double ns) const {
  return base::human_ns(steps > 0 ? ns / steps : ns) + (steps > 1 ? " per step" : "");
}

StageView view_of(const Summary& summary, const Stage& stage) {
  StageView out{.stage = &stage, .steps = static_cast<double>(stage.steps)};
  out.total_ns = static_cast<double>(stage.time_ns);
  for (const Waterfall& waterfall : summary.waterfalls) {
    if (waterfall.stage != stage.name || waterfall.on_cpu != !summary.on_gpu || waterfall.samples <= 0) continue;
    out.waterfall = &waterfall;
    out.total_ns = waterfall.mean_ns(waterfall.measured_ns) * out.steps;
  }
  return out;
}

std::vector<StageView> steady_stages(const Summary& summary) {
  std::vector<StageView> out;
  for (const Stage& stage : summary.stages) {
    if (is_steady(stage.name) && stage.time_ns > 0 && stage.steps > 0) out.push_back(view_of(summary, stage));
  }
  return out;
}

std::string hidden_by_launches(const StageView& view) {
  if (!view.held_by_launches()) return "";
  return fmt::format(
      " The device idles {} of the stage because launches come late: shorter kernels would save "
      "nothing before that is solved.",
      base::human_percent(view.idle_launching()));
}

}  // namespace llmprof::analyze
