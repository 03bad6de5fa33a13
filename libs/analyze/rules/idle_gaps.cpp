// Time in which the device idles, by cause, where launches and waits for the device do not explain it.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::idle_gaps {
namespace {

constexpr double kLeastShare = 0.05;   // of the stage
constexpr double kUnexplained = 0.25;  // of a stage without a waterfall
constexpr double kBusyInTotals = 0.8;

std::string causes_rows(const std::string& stage) {
  return fmt::format(
      "SELECT t.owner, sum(t.time_ns) AS in_steps_ns, sum(t.after_ns) AS after_ns FROM step_time t JOIN step s ON s.id "
      "= t.step_id WHERE s.stage = {} GROUP BY t.owner ORDER BY in_steps_ns DESC",
      sql_literal(stage));
}

void add_causes(const StageView& view, Finding& out) {
  static constexpr std::pair<const char*, const char*> kTerms[] = {
      {"between_steps", "between steps: the host prepares the next one"},
      {"gaps", "in steps, nothing launched: the host is late"},
      {"queued", "in steps, launched but not begun: launch latency, other streams"},
      {"waits", "in steps, the host waits for the device"},
      {"copies", "only a copy executes"}};
  for (const auto& [name, what] : kTerms) {
    const std::optional<double> ns = view.term(name);
    out.add_fraction(out.stage + ".idle." + name, what, ns ? std::optional(*ns / view.total_ns) : std::nullopt,
                     human_ns(view.total_ns) + " of " + out.stage, "measured", causes_rows(out.stage),
                     "calls that wait were not recorded (record --gpu waits)");
  }
}

Finding between(const Summary& summary, const StageView& view, double ns) {
  const std::string& stage = view.stage->name;
  Finding out{.stage = stage, .part = "between steps"};
  out.title = fmt::format("The GPU idles {} of {} between steps", human_percent(ns / view.total_ns), stage);
  out.text = fmt::format("After each step the host takes {} before it launches something again{}.", view.per_step(ns),
                         makes_tokens(stage) ? ": sampling, scheduling, or preparing inputs" : "");
  out.lever = "preparing the next step while the device works";
  out.set_gain(ns, view.total_ns,
               fmt::format("idle between steps {} of {}", view.per_step(ns), view.per_step(view.total_ns)));
  add_causes(view, out);
  add_idle_causes(summary, out);
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
  out.title = fmt::format("The GPU idles {} of {} while the host waits for it", human_percent(ns / view.total_ns),
                          view.stage->name);
  out.text = "The queue is empty, and the CPU is still inside the call that waits.";
  out.lever = "waiting for an event instead of the whole device";
  out.set_gain(ns, view.total_ns, fmt::format("idle in waits {}", view.per_step(ns)));
  add_causes(view, out);
  out.advice = {"Wait for an event of the result that is needed, or poll, instead of synchronising the device."};
  return out;
}

Finding unexplained(const Stage& stage, double idle) {
  Finding out{.stage = stage.name, .verdict = Verdict::kInconclusive};
  out.title = fmt::format("The GPU idles {} of {}, and why is not known", human_percent(idle), stage.name);
  out.text = "The kind of this stage's steps is unknown, so their time is not broken down.";
  out.add_fraction("idle", "time without a kernel executing", idle, human_ns(stage.time_ns) + " of " + stage.name,
                   "measured");
  out.next = "llmprof record --gpu waits --stacks python -o waits -- PROGRAM, with steps annotated or --model NAME";
  return out;
}

Finding from_totals(const MeasuredFindings& f) {
  Finding out;
  out.title = fmt::format("The GPU is busy {} of the profile", human_percent(*f.busy));
  out.text = fmt::format("{} of the {} are the host's: launching, copying or loading. Totals do not show which.",
                         human_ns(*f.cpu_total_ns - *f.device_total_ns), human_ns(*f.cpu_total_ns));
  out.add_fraction("totals.busy", "device time of all kernels and copies", *f.busy,
                   human_ns(*f.cpu_total_ns) + " of host time", "measured");
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
  out.add_why(view.stage->name, fmt::format("{} between steps, {} in waits", human_percent(pause / view.total_ns),
                                            human_percent(wait / view.total_ns)));
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const MeasuredFindings& f = run.facts.totals->findings;
    if (f.busy && *f.busy < kBusyInTotals) return {.findings = {from_totals(f)}};
    return f.busy ? not_found(fmt::format("the GPU is busy {} of the profile", human_percent(*f.busy)))
                  : not_applicable("the totals do not include the total time");
  }
  if (!run.summary.on_gpu) return not_applicable("no GPU kernels");
  RuleResult out;
  for (const StageView& view : steady_stages(run.summary)) {
    if (view.waterfall != nullptr) check_stage(run.summary, view, out);
  }
  for (const Stage& stage : run.summary.stages) {
    const std::optional<double> busy = busy_share(stage);
    if (stage.name == "other" && busy && 1 - *busy >= kUnexplained)
      out.findings.push_back(unexplained(stage, 1 - *busy));
  }
  if (out.why.empty() && out.findings.empty()) return not_applicable("no stage with a breakdown of its time");
  return out;
}

}  // namespace llmprof::analyze::idle_gaps
