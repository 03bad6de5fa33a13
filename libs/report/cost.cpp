#include "report/cost.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::CollectorCost;
using analyze::StageCost;
using base::Json;
using base::maybe;

std::string ns(double value) { return base::human_ns(value); }

std::string delay_text(const CollectorCost& cost) {
  if (!cost.delay_ns) return fmt::format("estimated delay of the program unknown: {}", cost.why);
  if (!cost.range_event_ns || !cost.gemm_event_ns) return "no delay of the program";
  return fmt::format(
      "estimated delay of the program {}{}, at {} an event and {} a BLAS call", ns(*cost.delay_ns),
      cost.delay_share ? fmt::format(" ({} of the wall time)", base::human_percent(*cost.delay_share)) : std::string(),
      ns(*cost.range_event_ns), ns(*cost.gemm_event_ns));
}

std::string flag_line(const StageCost& stage) {
  return fmt::format(
      "Recording made {} longer by an estimated {} of its time ({} and {}): annotate fewer, longer ranges.",
      stage.stage, base::human_percent(*stage.share), counted(stage.range_events, "event"),
      counted(stage.gemm_events, "BLAS call"));
}

}  // namespace

std::string window_line(const Page& page) {
  if (page.info.window.empty()) return "";
  return wrapped(fmt::format("Only a part of the run was recorded: {}.", page.info.window));
}

std::string cost_lines(const Page& page, const Style& style) {
  const CollectorCost& cost = page.summary.cost;
  if (!cost.known) return wrapped(fmt::format("Recording cost: unknown, {}.", cost.why));
  std::string writer = ns(static_cast<double>(cost.writer_cpu_ns));
  if (cost.writer_share) writer += fmt::format(" ({} of one core)", base::human_percent(*cost.writer_share));
  if (cost.recorder_cpu_ns) {
    writer += fmt::format(", of llmprof beside it {}", ns(static_cast<double>(*cost.recorder_cpu_ns)));
  }
  std::string out =
      wrapped(fmt::format("Recording cost: {} and {}, {} written; CPU time of the writer {}; {}.",
                          counted(cost.range_events, "event"), counted(cost.gemm_events, "BLAS call"),
                          base::human_bytes(static_cast<double>(cost.log_bytes)), writer, delay_text(cost)));
  if (cost.gpu_events > 0) {
    out += wrapped(fmt::format("{} of CUDA were noted too; what that delayed the program is not in the estimate.",
                               counted(cost.gpu_events, "call")));
  }
  for (const StageCost& stage : cost.stages) {
    if (stage.flagged && shown(page, stage.stage)) out += style.warning(wrapped(flag_line(stage)));
  }
  return out;
}

Json cost_json(const Page& page) {
  const CollectorCost& cost = page.summary.cost;
  const auto known = [&](std::int64_t value) { return cost.known ? Json(value) : Json(nullptr); };
  Json out = {
      {"range_events", known(cost.range_events)},       {"gemm_events", known(cost.gemm_events)},
      {"gpu_events", known(cost.gpu_events)},           {"log_bytes", known(cost.log_bytes)},
      {"writer_cpu_ns", known(cost.writer_cpu_ns)},     {"writer_share", maybe(cost.writer_share)},
      {"recorder_cpu_ns", maybe(cost.recorder_cpu_ns)}, {"range_event_ns", maybe(cost.range_event_ns)},
      {"gemm_event_ns", maybe(cost.gemm_event_ns)},     {"delay_ns", maybe(cost.delay_ns)},
      {"delay_share", maybe(cost.delay_share)},         {"why", cost.why.empty() ? Json(nullptr) : Json(cost.why)}};
  out["stages"] = Json::array();
  for (const StageCost& stage : cost.stages) {
    if (!shown(page, stage.stage)) continue;
    out["stages"].push_back({{"name", stage.stage},
                             {"range_events", stage.range_events},
                             {"gemm_events", stage.gemm_events},
                             {"delay_ns", maybe(stage.delay_ns)},
                             {"share", maybe(stage.share)},
                             {"flagged", stage.flagged}});
  }
  return out;
}

}  // namespace llmprof::report
