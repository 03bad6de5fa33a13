#include "report/sections.h"
#include "trace/recording_cost.h"

#include <fmt/format.h>

#include "analyze/sections/sections.h"
#include "base/human.h"

namespace llmprof::report {
namespace {

using analyze::CollectorCost;
using analyze::StageCost;

std::string ns(double value) { return base::human_ns(value); }

std::string cpu_text(const Page& page, std::int64_t cpu_ns) {
  const auto value = static_cast<double>(cpu_ns), wall = static_cast<double>(page.summary.coverage.wall_ns);
  return wall > 0 ? fmt::format("{} ({} of one core)", ns(value), base::human_percent(value / wall)) : ns(value);
}

std::string delay_text(const CollectorCost& cost) {
  if (!cost.delay_ns) return fmt::format("estimated delay of the program by these unknown: {}", cost.why);
  if (!cost.range_event_ns || !cost.gemm_event_ns) return "no delay of the program by these";
  return fmt::format(
      "estimated delay of the program by these {}{}, at {} an event and {} a BLAS call", ns(*cost.delay_ns),
      cost.delay_share ? fmt::format(" ({} of the wall time)", base::human_percent(*cost.delay_share)) : std::string(),
      ns(*cost.range_event_ns), ns(*cost.gemm_event_ns));
}

std::string ratio_text(const analyze::MeasuredRatio& ratio) {
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.ratio, ratio.low, ratio.high);
}

// What was compared with what.
std::string compared_text(const Page& page, const StageCost& stage) {
  const bool all = page.summary.cost.rests_of_everything;
  std::string out =
      fmt::format("steps before and after {} against {} in them, in which {}",
                  counted(stage.measured_watching->stretches, "rest"), counted(stage.measured_watching->steps, "step"),
                  all ? "nothing was recorded but annotations, BLAS calls and CUDA graphs"
                      : "nothing was sampled or read from outside");
  if (stage.measured_kernels) {
    out += fmt::format(": {}; {} whose kernels were timed ({} of the steps) against those around them: {}",
                       ratio_text(*stage.measured_watching), counted(stage.measured_kernels->steps, "step"),
                       base::human_percent(stage.kernels_share), ratio_text(*stage.measured_kernels));
  } else if (!all && page.summary.coverage.gpu_ns > 0) {
    out += "; what timing GPU work costs is not in it (record --rests everything measures that too)";
  }
  return out;
}

// Of a stage of which it was measured; where it is beyond chance, its percentiles as they would have been.
std::string measured_line(const Page& page, const StageCost& stage) {
  const analyze::MeasuredRatio& ratio = *stage.measured;
  if (ratio.low <= 1) {
    return fmt::format(
        "Measured in this run: recording does not measurably slow down {} steps: {} times as long as without (95 % "
        "interval; {}).",
        stage.name, ratio_text(ratio), compared_text(page, stage));
  }
  std::string out =
      fmt::format("Measured in this run: recording makes a step of {} {} times as long (95 % interval; {}).",
                  stage.name, ratio_text(ratio), compared_text(page, stage));
  for (const analyze::Stage& s : page.summary.stages) {
    if (s.name != stage.name) continue;
    const auto p50 = s.tpot_p50_ns ? s.tpot_p50_ns : s.step_p50_ns, p99 = s.tpot_p50_ns ? s.tpot_p99_ns : s.step_p99_ns;
    if (!p50 || !p99) continue;
    const auto without = [&](std::int64_t value) { return ns(static_cast<double>(value) / ratio.ratio); };
    out += fmt::format(" Without it, its median would be {} (recorded {}) and its p99 {} ({}).", without(*p50),
                       ns(static_cast<double>(*p50)), without(*p99), ns(static_cast<double>(*p99)));
  }
  return out;
}

std::string flag_line(const StageCost& stage) {
  return fmt::format(
      "Recording made {} longer by an estimated {} of its time ({} and {}): annotate fewer, longer ranges.", stage.name,
      base::human_percent(*stage.share), counted(stage.range_events, "event"), counted(stage.gemm_events, "BLAS call"));
}

}  // namespace

std::string window_line(const Page& page) {
  if (page.info.window.empty()) return "";
  return wrapped(fmt::format("Only a part of the run was recorded: {}.", page.info.window));
}

std::string cost_line(const Page& page) {
  const CollectorCost& cost = page.summary.cost;
  if (is_imported(page) || is_predicted(page)) return "";
  if (!cost.known) return wrapped(fmt::format("Recording cost: unknown, {}.", cost.why));
  const StageCost* measured = nullptr;  // of the stage with the most steps: what the run itself tells is better than
                                        // an estimate
  for (const StageCost& stage : cost.stages) {
    if (stage.measured && (measured == nullptr || stage.measured->steps > measured->measured->steps)) measured = &stage;
  }
  std::string line;
  if (measured != nullptr) {
    line = measured->measured->low <= 1
               ? fmt::format("no measurable slowdown of {} steps ({} times as long, 95 % interval)", measured->name,
                             ratio_text(*measured->measured))
               : fmt::format("{} steps take {} times as long (measured, 95 % interval)", measured->name,
                             ratio_text(*measured->measured));
    if (!cost.rests_of_everything && !measured->measured_kernels && page.summary.coverage.gpu_ns > 0)
      line += cost.timing_ns ? fmt::format("; timing kernels about {} more, estimated", ns(*cost.timing_ns))
                             : "; without what timing kernels costs";
  } else if (!cost.delay_ns) {
    line = fmt::format("delay of the program unknown ({})", cost.why);
  } else {
    const double delay = *cost.delay_ns + cost.timing_ns.value_or(0);
    const auto wall = static_cast<double>(page.summary.coverage.wall_ns);
    line = delay > 0 ? fmt::format("about {} ({}estimated)", ns(delay),
                                   wall > 0 ? base::human_percent(delay / wall) + " of the run, " : "")
                     : "no delay of the program, as no call of it was recorded";
  }
  const std::int64_t cpu_ns = cost.writer_cpu_ns + cost.recorder_cpu_ns.value_or(0);
  return wrapped(fmt::format("Recording cost: {}, CPU time {}.", line, ns(static_cast<double>(cpu_ns))));
}

std::string cost_lines(const Page& page, const Style& style) {
  const CollectorCost& cost = page.summary.cost;
  if (!cost.known) return wrapped(fmt::format("Recording cost: unknown, {}.", cost.why));
  std::string beside = fmt::format("CPU time of the writer {}", cpu_text(page, cost.writer_cpu_ns));
  if (cost.recorder_cpu_ns) beside += fmt::format(", of llmprof beside it {}", cpu_text(page, *cost.recorder_cpu_ns));
  std::string out = wrapped(
      fmt::format("Recording cost: {} and {}, {} written; {}. {}, which a program that keeps all cores busy waits for.",
                  counted(cost.range_events, "event"), counted(cost.gemm_events, "BLAS call"),
                  base::human_bytes(static_cast<double>(cost.log_bytes)), delay_text(cost), beside));
  if (cost.gpu_events > 0) {
    std::string line = fmt::format("{} of CUDA were noted too", counted(cost.gpu_events, "call"));
    if (cost.timing_ns) {
      line += fmt::format(
          ", and {} timed, which is not in the estimate: about {} more, if each delays the program by {}, as on an "
          "H200; record --rests everything measures it",
          counted(cost.timed_kernels, "kernel"), ns(*cost.timing_ns), ns(trace::kTimedKernelNs));
    } else {
      line += "; what that delayed the program is not in the estimate";
    }
    out += wrapped(line + ".");
  }
  for (const StageCost& stage : cost.stages) {
    if (stage.measured && shown(page, stage.name)) out += wrapped(measured_line(page, stage));
    if (stage.flagged && shown(page, stage.name)) out += style.warning(wrapped(flag_line(stage)));
  }
  return out;
}

}  // namespace llmprof::report
