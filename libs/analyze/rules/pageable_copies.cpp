// Copies between device and memory that is not pinned.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/stage_view.h"
#include "analyze/rules/wording.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace pageable_copies {
namespace {

constexpr double kLeastShare = 0.01;  // of the stage
constexpr double kOfDevice = 0.05;    // of the device's time, in another tool's totals

const std::vector<std::string>& advice() {
  static const std::vector<std::string> kAdvice = {
      "Copy from and to pinned memory (pin_memory(), cudaHostAlloc) with non_blocking=True: twice to four times as "
      "fast, and the host goes on.",
      "Copy once, in the type that is used, and not in every step.", "Make small inputs on the device itself."};
  return kAdvice;
}

std::string rows_of(const std::string& stage) {
  return fmt::format(
      "SELECT c.* FROM copy c ASOF JOIN step s ON c.thread_id = s.thread_id AND coalesce(c.launch_begin_ns, "
      "c.begin_ns) >= s.begin_ns "
      "WHERE s.stage = {} AND c.host_memory = 'pageable' ORDER BY c.bytes DESC",
      sql_literal(stage));
}

Finding finding_of(const RuleInput& run, const StageView& view, const StageCopies& copies) {
  const std::string& stage = view.stage->name;
  const auto time = static_cast<double>(copies.time_ns), bytes = static_cast<double>(copies.bytes);
  // What of it delays the stage: time with a copy and no kernel executing. The host may wait longer than that.
  const double exposed = std::min(time, view.term("copies").value_or(time));
  const auto pinned = run.facts.copies.pinned_rate.find(copies.direction);
  const double rate = bytes / time * 1e9;
  Finding out{.stage = stage, .part = copies.direction};
  out.title =
      fmt::format("{} copies {} per step {} pageable memory at {}", stage, base::human_bytes(bytes / view.steps),
                  copies.direction == "host_to_device" ? "from" : "to", base::human_rate(rate, "B/s"));
  out.text = fmt::format(
      "That takes {}, {} of the stage with nothing else on the device; the driver copies through a pinned buffer of "
      "its own, and the host waits.",
      view.per_step(time), base::human_percent(exposed / view.total_ns));
  out.lever = "pinned memory";
  if (pinned != run.facts.copies.pinned_rate.end() && pinned->second > rate) {
    const double kept = rate / pinned->second;
    out.gain =
        Gain{.ns = exposed * (1 - kept),
             .of_ns = view.total_ns,
             .upper_bound = false,
             .how = fmt::format("{} exposed; at {}, the fastest pinned copy of the run, {}", view.per_step(exposed),
                                base::human_rate(pinned->second, "B/s"), view.per_step(exposed * kept))};
  } else {
    out.gain = Gain{.ns = exposed,
                    .of_ns = view.total_ns,
                    .upper_bound = true,
                    .how = fmt::format("{} exposed, all of it at most: how fast pinned copies are here is unknown, and "
                                       "they can overlap with kernels",
                                       view.per_step(exposed))};
  }
  out.evidence = {time_of(stage + ".pageable_time", fmt::format("{} copies, {}", copies.copies, copies.direction), time,
                          "measured", rows_of(stage)),
                  number(stage + ".pageable_bytes", "copied", bytes, "B", "measured", rows_of(stage)),
                  number(stage + ".pageable_rate", "rate of these copies", rate, "B/s", "measured"),
                  time_of(stage + ".copies_exposed", "time with a copy and no kernel executing",
                          view.term("copies").value_or(time), "measured"),
                  time_of(stage + ".copy_calls", "host time inside the calls that asked for them",
                          static_cast<double>(copies.call_ns), "measured")};
  Evidence best = number("run.pinned_rate", "fastest pinned copy of 1 MB or more in this direction", std::nullopt,
                         "B/s", "measured");
  if (pinned != run.facts.copies.pinned_rate.end())
    best.value = pinned->second;
  else
    best.why = "the run has no large pinned copy in this direction";
  out.evidence.push_back(std::move(best));
  out.advice = advice();
  out.next = "llmprof diff RUN RUN_WITH_PINNED_MEMORY";
  return out;
}

Finding from_totals(const TotalsFacts& totals, double share) {
  Finding out;
  const MeasuredFindings& f = totals.findings;
  out.title = fmt::format("Copies from pageable memory take {} of the GPU's time", base::human_percent(share));
  out.text = fmt::format("{} take {}. The driver copies through a pinned buffer of its own, and the host waits for it.",
                         count_of(totals.pageable_copies, "copies"), base::human_ns(totals.pageable_ns));
  out.lever = "pinned memory";
  out.gain = Gain{.ns = totals.pageable_ns,
                  .of_ns = f.cpu_total_ns.value_or(*f.device_total_ns),
                  .upper_bound = true,
                  .how = fmt::format("all of the {} at most: totals tell neither bytes nor what they overlap with",
                                     base::human_ns(totals.pageable_ns))};
  out.evidence = {fraction("totals.pageable_share", "copies of pageable memory", share,
                           base::human_ns(*f.device_total_ns) + " of device time", "measured"),
                  number("totals.pageable_copies", "copies", totals.pageable_copies, "", "counted")};
  out.advice = advice();
  return out;
}

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const double all = run.facts.totals->findings.device_total_ns.value_or(0);
    const double share = all > 0 ? run.facts.totals->pageable_ns / all : 0;
    if (share >= kOfDevice) return {.findings = {from_totals(*run.facts.totals, share)}};
    return not_found(fmt::format("copies of pageable memory take {} of the device's time", base::human_percent(share)));
  }
  if (!run.summary.on_gpu) return not_applicable("no GPU executed anything: nothing was copied to one");
  RuleResult out;
  for (const StageView& view : steady_stages(run.summary)) {
    double share = 0;
    for (const StageCopies& copies : run.facts.copies.stages) {
      if (copies.stage != view.stage->name || copies.host_memory != "pageable" || copies.time_ns <= 0) continue;
      const double exposed = std::min(static_cast<double>(copies.time_ns),
                                      view.term("copies").value_or(static_cast<double>(copies.time_ns)));
      share += exposed / view.total_ns;
      if (exposed >= kLeastShare * view.total_ns) out.findings.push_back(finding_of(run, view, copies));
    }
    out.why += fmt::format("{}{}: {}", out.why.empty() ? "" : "; ", view.stage->name,
                           share > 0 ? "they delay it by " + base::human_percent(share) : "no pageable copies");
  }
  if (out.why.empty()) return not_applicable("no stage that repeats");
  return out;
}

}  // namespace
}  // namespace pageable_copies

extern const Rule kPageableCopies;
const Rule kPageableCopies = {
    .name = "pageable_copies",
    .title = "Copies of memory that is not pinned",
    .meaning =
        "Copies between host and device in prefill, decode and training whose host memory is pageable. Found where "
        "they take 1 % of the "
        "stage with no kernel executing. Gain: that time, less what it would be at the rate of the fastest pinned copy "
        "of 1 MB or more of the "
        "run; without one, all of it, at most. In another tool's totals: from 5 % of the device's time on.",
    .check = pageable_copies::check};

}  // namespace llmprof::analyze
