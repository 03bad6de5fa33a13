// Copies between device and memory that is not pinned.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::pageable_copies {
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
      "c.begin_ns) >= s.begin_ns WHERE s.stage = {} AND c.host_memory = 'pageable' ORDER BY c.bytes DESC",
      sql_literal(stage));
}

Finding finding_of(const RuleInput& run, const StageView& view, const StageCopies& copies) {
  const std::string& stage = view.stage->name;
  const auto time = static_cast<double>(copies.time_ns), bytes = static_cast<double>(copies.bytes);
  // What of it delays the stage: time with a copy and no kernel executing. The host may wait longer than that.
  const double exposed = std::min(time, view.term("copies").value_or(time));
  const auto known = run.facts.copies.pinned_rate.find(copies.direction);
  const std::optional<double> pinned =
      known == run.facts.copies.pinned_rate.end() ? std::nullopt : std::optional(known->second);
  const double rate = bytes / time * 1e9;
  Finding out{.stage = stage, .part = copies.direction};
  out.title = fmt::format("{} copies {} per step {} pageable memory at {}", stage, human_bytes(bytes / view.steps),
                          copies.direction == "host_to_device" ? "from" : "to", human_rate(rate, "B/s"));
  out.text = fmt::format(
      "That takes {}, {} of the stage with nothing else on the device; the driver copies through a pinned buffer of "
      "its own, and the host waits.",
      view.per_step(time), human_percent(exposed / view.total_ns));
  out.lever = "pinned memory";
  if (pinned && *pinned > rate) {
    const double kept = rate / *pinned;
    out.set_gain(exposed * (1 - kept), view.total_ns,
                 fmt::format("{} exposed; at {}, the fastest pinned copy of the run, {}", view.per_step(exposed),
                             human_rate(*pinned, "B/s"), view.per_step(exposed * kept)),
                 false);
  } else {
    out.set_gain(exposed, view.total_ns,
                 fmt::format("{} exposed, all of it at most: how fast pinned copies are here is unknown, and they can "
                             "overlap with kernels",
                             view.per_step(exposed)));
  }
  out.add_time("pageable_time", fmt::format("{} copies, {}", copies.copies, copies.direction), time, "measured",
               rows_of(stage));
  out.add_number("pageable_bytes", "copied", bytes, "B", "measured", rows_of(stage));
  out.add_number("pageable_rate", "rate of these copies", rate, "B/s", "measured");
  out.add_time("copies_exposed", "time with a copy and no kernel executing", view.term("copies").value_or(time),
               "measured");
  out.add_time("copy_calls", "host time inside the calls that asked for them", copies.call_ns, "measured");
  out.add_number("run.pinned_rate", "fastest pinned copy of 1 MB or more in this direction", pinned, "B/s", "measured",
                 "", "the run has no large pinned copy in this direction");
  out.advice = advice();
  out.next = "llmprof diff RUN RUN_WITH_PINNED_MEMORY";
  return out;
}

Finding from_totals(const TotalsFacts& totals, double share) {
  Finding out;
  const MeasuredFindings& f = totals.findings;
  out.title = fmt::format("Copies from pageable memory take {} of the GPU's time", human_percent(share));
  out.text = fmt::format("{} take {}. The driver copies through a pinned buffer of its own, and the host waits for it.",
                         count_of(totals.pageable_copies, "copies"), human_ns(totals.pageable_ns));
  out.lever = "pinned memory";
  out.set_gain(totals.pageable_ns, f.cpu_total_ns.value_or(*f.device_total_ns),
               fmt::format("all of the {} at most: totals tell neither bytes nor what they overlap with",
                           human_ns(totals.pageable_ns)));
  out.add_fraction("totals.pageable_share", "copies of pageable memory", share,
                   human_ns(*f.device_total_ns) + " of device time", "measured");
  out.add_number("totals.pageable_copies", "copies", totals.pageable_copies, "", "counted");
  out.advice = advice();
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const double all = run.facts.totals->findings.device_total_ns.value_or(0);
    const double share = all > 0 ? run.facts.totals->pageable_ns / all : 0;
    if (share >= kOfDevice) return {.findings = {from_totals(*run.facts.totals, share)}};
    return not_found(fmt::format("copies of pageable memory take {} of the device's time", human_percent(share)));
  }
  if (!run.summary.on_gpu) return not_applicable("no GPU kernels: nothing was copied to one");
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
    out.add_why(view.stage->name, share > 0 ? "they delay it by " + human_percent(share) : "no pageable copies");
  }
  if (out.why.empty()) return not_applicable("no stage that repeats");
  return out;
}

}  // namespace llmprof::analyze::pageable_copies
