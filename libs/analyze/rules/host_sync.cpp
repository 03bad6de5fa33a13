// The host waits for the device in every step, so neither works ahead of the other.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::host_sync {
namespace {

constexpr double kOftenEnough = 0.5;  // of the steps
constexpr double kLeastSteps = 4;     // fewer end the run, or are waited for by somebody

std::string rows_of(const std::string& stage) {
  return fmt::format(
      "SELECT a.* FROM (SELECT * FROM api WHERE waits OR contains(name, 'Synchronize')) a ASOF JOIN step s ON "
      "a.thread_id = s.thread_id AND a.begin_ns >= s.begin_ns WHERE s.stage = {} ORDER BY a.begin_ns",
      sql_literal(stage));
}

void advise(Finding& out) {
  out.lever = "not waiting for the device in every step";
  if (out.stage.empty() || makes_tokens(out.stage))
    out.advice = {
        "Keep sampled tokens on the device and feed them to the next step; fetch them one step late, or every few "
        "steps.",
        "Test for the end of a sequence on the device, or some steps late."};
  else
    out.advice = {fmt::format("Read {} some steps late, or every few steps.",
                              is_training(out.stage) ? "the loss and other figures" : "results")};
  out.advice.insert(out.advice.end(),
                    {"<torch>.item(), .tolist(), bool(tensor) and .cpu() wait: keep them out of the loop.</torch>",
                     "Copy results asynchronously to pinned memory and wait for an event only when they are needed."});
  out.next = "llmprof diff RUN RUN_WITHOUT_WAITING";
}

Finding finding_of(const StageView& view, const StageWaits& waits) {
  const std::string& stage = view.stage->name;
  const double waiting = waits.time_ns;
  // Without waiting the host takes what it took less the waiting, and the device what it worked: the longer one counts.
  const double busy = view.busy_ns() + view.term("copies").value_or(0);
  const double without = std::max(busy, view.total_ns - waiting);
  const double gain = std::max(0.0, view.total_ns - without);
  Finding out{.stage = stage};
  out.title = fmt::format("The host waits for the device in {} of {} {}", waits.steps, view.stage->steps,
                          step_word(stage, "steps"));
  out.text = fmt::format(
      "It waits {} ({}), and can prepare the next step only afterwards: until that is launched, the device idles.",
      view.per_step(waiting), waits.function);
  if (gain >= 0.005 * view.total_ns) {
    out.set_gain(
        gain, view.total_ns,
        fmt::format("{}, less the longer of the device's work, {}, and the host's without waiting, {}",
                    view.per_step(view.total_ns), view.per_step(busy), view.per_step(view.total_ns - waiting)));
  } else {
    out.text += view.held_by_launches()
                    ? " Here launches cost more: the device has finished before the host waits for it."
                    : " Here that costs next to nothing: the device has work all the time.";
  }
  out.add_number("waits_per_step", "calls that wait for the device", static_cast<double>(waits.calls) / view.steps, "",
                 "counted", rows_of(stage));
  out.add_time("waiting", "host time in these calls, over all steps", waiting, "measured", rows_of(stage));
  out.add_time("device_work", "device time of the stage, kernels and copies", busy, "measured");
  advise(out);
  return out;
}

Finding unknown(const StageView& view) {
  Finding out{.stage = view.stage->name, .verdict = Verdict::kInconclusive};
  const double idle = view.idle_launching_ns() + view.term("between_steps").value_or(0);
  out.title = fmt::format("Whether {} waits for the device in every step was not recorded", view.stage->name);
  out.text = fmt::format(
      "The device idles {} of the stage; record the calls that wait to find out whether they are the cause.",
      human_percent(idle / view.total_ns));
  out.add_fraction("idle", "time in which the device idles, in and between steps", idle / view.total_ns,
                   human_ns(view.total_ns) + " of " + view.stage->name, "measured");
  out.next = "llmprof record --gpu waits -o waits -- PROGRAM";
  return out;
}

// Another tool's totals: calls that wait for each pass, or host time in copies that the device did not need for them.
std::optional<Finding> from_totals(const TotalsFacts& totals) {
  if (!totals.findings.passes || totals.sync_calls + totals.copy_wait_ns <= 0) return std::nullopt;
  const double passes = *totals.findings.passes;
  Finding out;
  advise(out);
  out.next = "llmprof record --gpu waits -o waits -- PROGRAM";
  if (totals.sync_calls >= kOftenEnough * passes) {
    const double each = totals.sync_calls / passes;
    out.title = fmt::format("The host waits for the device {} per token",
                            each < 1.5 ? "once" : fmt::format("{:.1f} times", each));
    out.text = fmt::format("{} was called {} in {}.", totals.sync_name, count_of(totals.sync_calls, "times"),
                           count_of(passes, "passes"));
    out.add_number("totals.waits_per_pass", "calls of " + totals.sync_name, each, "", "counted");
    return out;
  }
  // Who waits for a pass in a copy spends the pass's device time in it.
  const double each = totals.device_work_ns > 0 ? totals.copy_wait_ns / totals.device_work_ns : 0;
  if (each < kOftenEnough) return std::nullopt;
  out.title = "The host waits for the device about once per token";
  out.text = fmt::format(
      "It spends {} in aten::copy_ that no copy needed: {} per pass, about what the device works for a pass ({}).",
      human_ns(totals.copy_wait_ns), human_ns(totals.copy_wait_ns / passes), human_ns(totals.device_work_ns / passes));
  out.add_time("totals.copy_wait", "host time in aten::copy_, less the device's time for copies", totals.copy_wait_ns,
               "inferred");
  out.add_number("totals.waits_per_pass", "that time / the device's time without copies", each, "", "inferred");
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const std::optional<Finding> found = from_totals(*run.facts.totals);
    return found ? RuleResult{.findings = {*found}} : not_found("the totals show no waiting in every pass");
  }
  if (!run.summary.on_gpu) return not_applicable("no GPU kernels: nothing waits for one");
  RuleResult out;
  bool any = false;
  for (const StageView& view : steady_stages(run.summary)) {
    if (view.waterfall == nullptr) continue;
    any = true;
    const StageWaits* waits = find_by(run.facts.waits.stages, view.stage->name, &StageWaits::stage);
    const double idle = view.idle_launching() + view.term("between_steps").value_or(0) / view.total_ns;
    if (!run.facts.waits.recorded) {
      if (idle >= 0.1 && view.steps >= kLeastSteps) out.findings.push_back(unknown(view));
    } else if (waits != nullptr && waits->steps >= kOftenEnough * view.steps && view.steps >= kLeastSteps) {
      out.findings.push_back(finding_of(view, *waits));
    }
    out.add_why(view.stage->name, run.facts.waits.recorded
                                      ? fmt::format("the host waited in {} of {} steps",
                                                    waits == nullptr ? 0 : waits->steps, view.stage->steps)
                                      : "waits were not recorded, but the device hardly idles");
  }
  if (!any) return not_applicable("no stage with a breakdown of its time");
  return out;
}

}  // namespace llmprof::analyze::host_sync
