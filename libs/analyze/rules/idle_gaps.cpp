// Time in which the device idles, by cause, where launches and waits for the device do not explain it.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/stage_view.h"
#include "analyze/rules/wording.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace idle_gaps {
namespace {

constexpr double kLeastShare = 0.05;   // of the stage
constexpr double kUnexplained = 0.25;  // of a stage without a waterfall
constexpr double kBusyInTotals = 0.8;

std::string causes_rows(const std::string& stage) {
  return fmt::format(
      "SELECT t.owner, sum(t.time_ns) AS in_steps_ns, sum(t.after_ns) AS after_ns FROM step_time t JOIN step s ON s.id "
      "= t.step_id "
      "WHERE s.stage = {} GROUP BY t.owner ORDER BY in_steps_ns DESC",
      sql_literal(stage));
}

std::vector<Evidence> causes(const StageView& view) {
  static constexpr std::pair<const char*, const char*> kTerms[] = {
      {"between_steps", "between steps: the host prepares the next one"},
      {"gaps", "in steps, nothing launched: the host is late"},
      {"queued", "in steps, launched but not begun: launch latency, other streams"},
      {"waits", "in steps, the host waits for the device"},
      {"copies", "only a copy executes"}};
  std::vector<Evidence> out;
  for (const auto& [name, what] : kTerms) {
    const std::optional<double> ns = view.term(name);
    Evidence each =
        fraction(view.stage->name + ".idle." + name, what, ns ? std::optional(*ns / view.total_ns) : std::nullopt,
                 base::human_ns(view.total_ns) + " of " + view.stage->name, "measured", causes_rows(view.stage->name));
    if (!ns) each.why = "calls that wait were not recorded (record --gpu waits)";
    out.push_back(std::move(each));
  }
  return out;
}

Finding between(const Summary& summary, const StageView& view, double ns) {
  const std::string& stage = view.stage->name;
  Finding out{.stage = stage, .part = "between steps"};
  out.title = fmt::format("The GPU idles {} of {} between steps", base::human_percent(ns / view.total_ns), stage);
  out.text = fmt::format("After each step the host takes {} before it launches something again{}.", view.per_step(ns),
                         makes_tokens(stage) ? ": sampling, scheduling, or preparing inputs" : "");
  out.lever = "preparing the next step while the device works";
  out.gain = Gain{.ns = ns,
                  .of_ns = view.total_ns,
                  .upper_bound = true,
                  .how = fmt::format("idle between steps {} of {}", view.per_step(ns), view.per_step(view.total_ns))};
  out.evidence = causes(view);
  add_idle_causes(summary, view, out.evidence);
  out.advice = {"Launch the next step before the results of this one are looked at (asynchronous scheduling)."};
  out.advice.emplace_back(
      makes_tokens(stage) ? "Sample on the device, and move detokenising and bookkeeping to another thread."
      : is_training(stage)
          ? "Prepare the next batch on another thread while the device works, and read the loss late."
          : "Prepare the next inputs on another thread while the device works, and read results late.");
  out.next = "llmprof record --stacks python -o stacks -- PROGRAM";
  return out;
}

Finding waiting(const StageView& view, double ns) {
  Finding out{.stage = view.stage->name, .part = "waits"};
  out.title = fmt::format("The GPU idles {} of {} while the host waits for it", base::human_percent(ns / view.total_ns),
                          view.stage->name);
  out.text = "Nothing is queued any more, and the host has not come back from waiting.";
  out.lever = "waiting for an event instead of the whole device";
  out.gain = Gain{
      .ns = ns, .of_ns = view.total_ns, .upper_bound = true, .how = fmt::format("idle in waits {}", view.per_step(ns))};
  out.evidence = causes(view);
  out.advice = {"Wait for an event of the result that is needed, or poll, instead of synchronising the device."};
  return out;
}

Finding unexplained(const Stage& stage, double idle) {
  Finding out{.stage = stage.name, .verdict = Verdict::kInconclusive};
  out.title = fmt::format("The GPU idles {} of {}, and why is not known", base::human_percent(idle), stage.name);
  out.text = "The time of this stage's steps is not taken apart: they are of no known kind.";
  out.evidence = {fraction(stage.name + ".idle", "time without a kernel executing", idle,
                           base::human_ns(static_cast<double>(stage.time_ns)) + " of " + stage.name, "measured")};
  out.next = "llmprof record --gpu waits --stacks python -o waits -- PROGRAM, with steps annotated or --model NAME";
  return out;
}

Finding from_totals(const MeasuredFindings& f) {
  Finding out;
  out.title = fmt::format("The GPU is busy {} of the profile", base::human_percent(*f.busy));
  out.text = fmt::format("{} of the {} are the host's: launching, copying or loading. Totals do not tell which.",
                         base::human_ns(*f.cpu_total_ns - *f.device_total_ns), base::human_ns(*f.cpu_total_ns));
  out.evidence = {fraction("totals.busy", "device time of all kernels and copies", *f.busy,
                           base::human_ns(*f.cpu_total_ns) + " of host time", "measured")};
  out.advice = {
      "Profile loading and decoding apart; if decoding alone idles, capture it as a CUDA graph<torch> (torch.compile, "
      "mode=\"reduce-overhead\")</torch>."};
  out.next = "llmprof record --gpu waits -o run -- PROGRAM";
  return out;
}

void check_stage(const Summary& summary, const StageView& view, RuleResult& out) {
  const double of = kLeastShare * view.total_ns;
  const double pause = view.term("between_steps").value_or(0), wait = view.term("waits").value_or(0);
  if (pause >= of) out.findings.push_back(between(summary, view, pause));
  if (wait >= of) out.findings.push_back(waiting(view, wait));
  out.why += fmt::format("{}{}: {} between steps, {} in waits", out.why.empty() ? "" : "; ", view.stage->name,
                         base::human_percent(pause / view.total_ns), base::human_percent(wait / view.total_ns));
}

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const MeasuredFindings& f = run.facts.totals->findings;
    if (f.busy && *f.busy < kBusyInTotals) return {.findings = {from_totals(f)}};
    return f.busy ? not_found(fmt::format("the GPU is busy {} of the profile", base::human_percent(*f.busy)))
                  : not_applicable("the totals do not tell how long everything took");
  }
  if (!run.summary.on_gpu) return not_applicable("no GPU executed anything");
  RuleResult out;
  for (const StageView& view : steady_stages(run.summary)) {
    if (view.waterfall != nullptr) check_stage(run.summary, view, out);
  }
  for (const Stage& stage : run.summary.stages) {
    const std::optional<double> busy = busy_share(stage);
    if (stage.name == "other" && busy && 1 - *busy >= kUnexplained)
      out.findings.push_back(unexplained(stage, 1 - *busy));
  }
  if (out.why.empty() && out.findings.empty()) return not_applicable("no stage whose time is taken apart");
  return out;
}

}  // namespace
}  // namespace idle_gaps

extern const Rule kIdleGaps;
const Rule kIdleGaps = {.name = "idle_gaps",
                        .title = "Idle time of the device, by cause",
                        .meaning =
                            "The idle terms of each stage's waterfall that launch_bound does not cover: between steps, "
                            "and while the host waits. Found from "
                            "5 % of the stage on; gain: that time, at most. Steps of unknown kind that idle 25 % or "
                            "more: inconclusive. In another tool's "
                            "totals: a device that is busy less than 80 % of the profile, as a note.",
                        .check = idle_gaps::check};

}  // namespace llmprof::analyze
