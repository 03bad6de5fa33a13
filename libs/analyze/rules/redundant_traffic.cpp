// Stages that move more bytes than they must, by hardware counters.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::redundant_traffic {
namespace {

constexpr double kLeast = 1.25;  // bytes moved, of those that must move

Finding finding_of(const RuleInput& run, const StageView& view, const CountedStage& counted) {
  const std::string& stage = view.stage->name;
  const double moved = *counted.work.dram_bytes, must = moved / *counted.redundancy, vain = moved - must;
  Finding out{.stage = stage};
  out.title = fmt::format("{} moves {:.2f} times the bytes that it must", stage, *counted.redundancy);
  out.text = fmt::format("Counters saw {} per step, of which weights, KV cache and activations explain {}.",
                         human_bytes(moved), human_bytes(must));
  out.lever = "fewer bytes through memory";
  const auto why = std::ranges::find_if(run.summary.counters.evidence, [&](const QuantityEvidence& each) {
    return each.stage == stage && each.quantity == "bytes";
  });
  if (why != run.summary.counters.evidence.end() && !why->explanation.empty() &&
      !why->explanation.starts_with("not explained"))
    out.text += fmt::format(" By the numbers, {}.", why->explanation);
  if (view.held_by_launches()) {
    out.text += hidden_by_launches(view);
  } else if (run.summary.peak_bandwidth && counted.work.bound != "compute") {
    const double gain = vain * view.steps / *run.summary.peak_bandwidth * 1e9;
    out.set_gain(std::min(gain, view.total_ns), view.total_ns,
                 fmt::format("{} per step more than must move; at {} they take {}", human_bytes(vain),
                             human_rate(*run.summary.peak_bandwidth, "B/s"), view.per_step(gain)),
                 false);
  }
  const std::string rows =
      "SELECT w.name, w.begin_ns, c.metric, c.value, c.unit FROM counter AS c JOIN counter_window AS w ON w.id = "
      "c.scope_id WHERE c.scope <> 'kernel' AND c.metric LIKE 'dram__bytes%' ORDER BY w.begin_ns LIMIT 1000";
  out.add_number("redundancy", "bytes moved for each that must move", counted.redundancy, "", "counted", rows);
  out.add_number("dram_bytes_per_step", "bytes that the device's memory moved in a step", moved, "B", "counted", rows);
  out.add_number("must_move_per_step", "weights, KV cache, activations that cannot stay on chip", must, "B",
                 "analytic");
  out.advice = {"Fuse kernels that pass large results through memory<torch> (torch.compile)</torch>: attention, MLP.",
                "Read the KV cache only as far as it is used: attention kernels that take lengths, not a padded cache.",
                "See which kernels move the bytes: record again with --counters memory --counters-method kernel."};
  out.next =
      "llmprof record --counters memory --counters-method kernel --counters-hot 10 --counters-from RUN -- PROGRAM";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.summary.counters.stages.empty()) return not_applicable("0 stages with hardware counters");
  RuleResult out;
  int known = 0;
  double most = 0;
  for (const StageView& view : steady_stages(run.summary)) {
    const auto counted = std::ranges::find(run.summary.counters.stages, view.stage->name, &CountedStage::stage);
    if (counted == run.summary.counters.stages.end() || !counted->redundancy) continue;
    if (view.stage->efficiency.at_least) continue;  // what must move is not known well enough
    ++known, most = std::max(most, *counted->redundancy);
    if (*counted->redundancy >= kLeast) out.findings.push_back(finding_of(run, view, *counted));
  }
  if (known == 0)
    return not_applicable(fmt::format("{} stages with hardware counters, 0 of them with bytes that must move",
                                      run.summary.counters.stages.size()));
  out.why = fmt::format("{} stages move at most {:.2f} times the bytes that they must", known, most);
  return out;
}

}  // namespace llmprof::analyze::redundant_traffic
