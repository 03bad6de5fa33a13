#include "analyze/rules/stage_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/diagnose.h"
#include "analyze/rules/wording.h"
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

void add_idle_causes(const Summary& summary, const StageView& view, std::vector<Evidence>& evidence) {
  constexpr std::size_t kShown = 3;
  const std::string& stage = view.stage->name;
  const StageIdle* idle = find_idle(summary.idle, stage);
  if (idle == nullptr || idle->idle_ns() <= 0) return;
  const auto total = static_cast<double>(idle->idle_ns());
  const std::string of = base::human_ns(total) + " with nothing launched";
  for (std::size_t i = 0; i < std::min(kShown, idle->places.size()); ++i) {
    const IdlePlace& place = idle->places[i];
    if (place.name.empty()) continue;
    evidence.push_back(
        fraction(stage + ".idle_in." + place.name, place.name + " was open on the host",
                 static_cast<double>(place.time_ns) / total, of, "measured",
                 fmt::format("SELECT * FROM idle_place WHERE stage = {} AND NOT warm_up ORDER BY time_ns DESC",
                             sql_literal(stage))));
  }
  if (idle->samples < kEnoughSamples) return;
  // A sample stands for the time around it: where idle times are short, samples may add up to more.
  const bool more = idle->cpu_ns() > idle->idle_ns();
  const double of_ns = more ? static_cast<double>(idle->cpu_ns()) : total;
  const std::string of_works = more ? base::human_ns(of_ns) + " of CPU time sampled then" : of;
  for (std::size_t i = 0; i < std::min(kShown, idle->works.size()); ++i) {
    const IdleWork& work = idle->works[i];
    evidence.push_back(fraction(
        fmt::format("{}.idle_doing.{}", stage, work_name(work.work)),
        fmt::format("{}{}: CPU time of the thread, by {}", work_name(work.work),
                    work.what.empty() ? "" : " (" + work.what + ")",
                    count_of(static_cast<double>(work.samples), "stack samples")),
        static_cast<double>(work.cpu_ns) / of_ns, of_works, "sampled",
        fmt::format(
            "SELECT s.* FROM sample s JOIN sample_place p ON p.sample_id = s.id JOIN step t ON t.id = p.idle_in_step "
            "AND t.thread_id = s.thread_id WHERE t.stage = {} AND NOT t.warm_up ORDER BY s.ts_ns",
            sql_literal(stage))));
  }
}

double other_work_share(const Summary& summary, std::string_view stage) {
  const StageIdle* idle = find_idle(summary.idle, stage);
  if (idle == nullptr || idle->samples < kEnoughSamples || idle->idle_ns() <= 0) return 0;
  std::int64_t other = 0;
  for (const IdleWork& work : idle->works) other += is_launching(work.work) ? 0 : work.cpu_ns;
  return static_cast<double>(other) / static_cast<double>(std::max(idle->cpu_ns(), idle->idle_ns()));
}

std::string hidden_by_launches(const StageView& view) {
  if (!view.held_by_launches()) return "";
  return fmt::format(
      " The device idles {} of the stage because launches come late: shorter kernels would save "
      "nothing before that is solved.",
      base::human_percent(view.idle_launching()));
}

}  // namespace llmprof::analyze
