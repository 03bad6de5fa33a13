// One rank of a job that all others wait for.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::straggling_rank {
namespace {

constexpr std::int64_t kLeastSteps = 3;
constexpr double kLeastShare = 0.03;   // of the stage's time
constexpr double kLeastSlowest = 0.6;  // of the steps, the same rank

Finding finding_of(const StageRanks& seen, const RankTime& slowest, const Stage& stage) {
  const double gain = seen.slowest_ns - seen.mean_ns, steps = static_cast<double>(seen.steps),
               of_stage = static_cast<double>(stage.time_ns);
  Finding out{.stage = stage.name, .part = fmt::format("rank {}", slowest.rank)};
  out.title = fmt::format("Rank {} is the slowest in {} of {} {}; the others wait for it", slowest.rank,
                          slowest.slowest_in, seen.steps, step_word(stage.name, "steps"));
  out.text = fmt::format(
      "Its own work takes {} a step, that of a mean rank {}; the difference is time in collectives of the others.",
      human_ns(slowest.own_ns / steps), human_ns(seen.mean_ns / steps));
  const std::string rows = fmt::format(
      "SELECT p.rank, s.number, s.begin_ns, s.end_ns - s.begin_ns AS ns, s.kernel_ns FROM step AS s JOIN process AS p "
      "ON p.id = s.process_id WHERE s.stage = {} ORDER BY s.number, p.rank",
      sql_literal(stage.name));
  out.add_fraction("slowest_steps", fmt::format("steps in which rank {} took longest for its own work", slowest.rank),
                   static_cast<double>(slowest.slowest_in) / steps,
                   fmt::format("{} steps that all {} ranks made, after the first", seen.steps, seen.ranks.size()),
                   "measured", rows);
  for (const RankTime& rank : seen.ranks) {
    if (out.evidence.size() > 16) break;
    out.add_time(fmt::format("{}.rank_{}_own", stage.name, rank.rank),
                 fmt::format("rank {} outside collectives, per step", rank.rank), rank.own_ns / steps, "measured",
                 rows);
    out.add_time(fmt::format("{}.rank_{}_collectives", stage.name, rank.rank),
                 fmt::format("rank {} in collectives, waiting included, per step", rank.rank),
                 rank.collective_ns / steps, "measured", rows);
  }
  out.set_gain(gain, of_stage,
               fmt::format("own work of the slowest rank of each step, {}, less that of a mean one, {}: {} of {}",
                           human_ns(seen.slowest_ns), human_ns(seen.mean_ns), human_ns(gain), human_ns(of_stage)));
  out.advice = {fmt::format("Look at rank {} alone: clocks and temperature of its device, processes beside it, the CPU "
                            "and NUMA node it runs on.",
                            slowest.rank),
                "If its work is larger (a pipeline's last stage, more tokens or experts), share it out anew."};
  out.next = fmt::format("llmprof query RUN \"{}\"", rows);
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.ranks.empty())
    return not_applicable("fewer than 2 processes with different ranks of a distributed job");
  RuleResult out;
  for (const StageRanks& seen : run.facts.ranks) {
    const Stage* stage = stage_named(run.summary, seen.stage);
    if (stage == nullptr || seen.ranks.size() < 2) continue;
    const RankTime& slowest = *std::ranges::max_element(seen.ranks, {}, &RankTime::slowest_in);
    const double gain = seen.slowest_ns - seen.mean_ns;
    if (seen.steps >= kLeastSteps && gain >= kLeastShare * stage->time_ns &&
        slowest.slowest_in >= kLeastSlowest * seen.steps) {
      out.findings.push_back(finding_of(seen, slowest, *stage));
    } else {
      out.add_why(
          seen.stage,
          fmt::format(
              "over {} steps of {} ranks the slowest is {} above a mean one, of {}; rank {} is it most often, in {}",
              seen.steps, seen.ranks.size(), human_ns(gain), human_ns(stage->time_ns), slowest.rank,
              slowest.slowest_in));
    }
  }
  return out;
}

}  // namespace llmprof::analyze::straggling_rank
