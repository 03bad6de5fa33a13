#include "analyze/cost.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

std::optional<double> delay_ns(const CollectorCost& cost, std::int64_t range_events, std::int64_t gemm_events) {
  if (range_events == 0 && gemm_events == 0) return 0;
  if (!cost.range_event_ns || !cost.gemm_event_ns) return std::nullopt;
  return static_cast<double>(range_events) * *cost.range_event_ns +
         static_cast<double>(gemm_events) * *cost.gemm_event_ns;
}

std::optional<double> share_of(std::optional<double> part_ns, std::int64_t whole_ns) {
  if (!part_ns || whole_ns <= 0) return std::nullopt;
  return *part_ns / static_cast<double>(whole_ns);
}

// ---- measured -----------------------------------------------------------------------------------------------------

constexpr std::size_t kFewestOf = 2;      // steps of a stretch, on each side of a comparison
constexpr std::size_t kFewestRatios = 3;  // stretches, for an interval

bool is_timed(const TimedStep& step) { return step.recorded > 0.99; }
bool is_noted(const TimedStep& step) { return step.recorded < 0.01; }

double median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

// Two-sided 95 % of Student's distribution.
double student(std::size_t freedom) {
  constexpr double kTable[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return freedom <= std::size(kTable) ? kTable[freedom - 1] : 1.96 + 2.7 / static_cast<double>(freedom);
}

// The mean of ratios, and its interval: on a logarithmic scale, where a half is as far from 1 as a double.
class Ratios {
 public:
  void add(const std::vector<std::int64_t>& with, const std::vector<std::int64_t>& without, std::size_t steps) {
    if (with.size() < kFewestOf || without.size() < kFewestOf) return;
    logs_.push_back(std::log(median(with) / median(without)));
    steps_ += static_cast<std::int64_t>(steps);
  }
  std::optional<MeasuredRatio> finish() const {
    if (logs_.size() < kFewestRatios) return std::nullopt;
    const auto count = static_cast<double>(logs_.size());
    double mean = 0, squares = 0;
    for (const double log : logs_) mean += log / count;
    for (const double log : logs_) squares += (log - mean) * (log - mean);
    const double error = student(logs_.size() - 1) * std::sqrt(squares / (count - 1) / count);
    return MeasuredRatio{std::exp(mean), std::exp(mean - error), std::exp(mean + error),
                         static_cast<std::int64_t>(logs_.size()), steps_};
  }

 private:
  std::vector<double> logs_;
  std::int64_t steps_ = 0;
};

bool rests_at(const wire::Rests& rests, std::int64_t ns) { return rests.at(static_cast<std::uint64_t>(ns)); }
bool is_outside(const TimedStep& step, const wire::Rests& rests) {
  return !rests_at(rests, step.begin_ns) && !rests_at(rests, step.end_ns) &&
         rests.next_change(static_cast<std::uint64_t>(step.begin_ns)) > static_cast<std::uint64_t>(step.end_ns);
}
bool is_inside(const TimedStep& step, const wire::Rests& rests) {
  return rests_at(rests, step.begin_ns) &&
         rests.next_change(static_cast<std::uint64_t>(step.begin_ns)) > static_cast<std::uint64_t>(step.end_ns);
}

// Both together: of the mean step, some of which have kernels timed. The errors are independent.
std::optional<MeasuredRatio> together(const StageCost& cost) {
  if (!cost.watching) return std::nullopt;
  if (!cost.kernels) return cost.watching;
  const double share = cost.kernels_share, watching = std::log(cost.watching->ratio);
  const double kernels = std::log(1 + share * (cost.kernels->ratio - 1));
  const double error = std::hypot(std::log(cost.watching->high) - watching,
                                  share * (cost.kernels->high - cost.kernels->ratio) / std::exp(kernels));
  MeasuredRatio out = *cost.watching;
  out.ratio = std::exp(watching + kernels);
  out.low = out.ratio * std::exp(-error);
  out.high = out.ratio * std::exp(error);
  return out;
}

Result<void> measure_stages(const trace::Run& run, Summary& summary) {
  const std::optional<trace::NotedRests>& rests = run.info().rests;
  if (!rests) return {};
  summary.cost.rests_of_everything = rests->everything;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/cost_steps"));
  std::map<std::string, std::vector<TimedStep>> steps;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    steps[row.text("stage")].push_back({row.integer("begin_ns"), row.integer("end_ns"), row.real("recorded")});
  }
  for (const auto& [name, of_stage] : steps) {
    auto found = std::find_if(summary.cost.stages.begin(), summary.cost.stages.end(),
                              [&, stage = name](const StageCost& cost) { return cost.stage == stage; });
    if (found == summary.cost.stages.end())
      found = summary.cost.stages.insert(found, StageCost{.stage = name, .delay_ns = 0, .share = 0});
    StageCost& cost = *found;
    cost.watching = ratio_of_watching(of_stage, rests->when, rests->everything);
    if (!rests->everything) cost.kernels = ratio_of_timing(of_stage, rests->when);
    const auto timed = std::count_if(of_stage.begin(), of_stage.end(), is_timed);
    cost.kernels_share = of_stage.empty() ? 0 : static_cast<double>(timed) / static_cast<double>(of_stage.size());
    cost.recording = together(cost);
  }
  return {};
}

// ---- estimated ----------------------------------------------------------------------------------------------------

// Events delay the thread that raises them, so a stage's delay is held against its steps added up over all threads.
Result<void> fill_stages(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/cost_stages"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    StageCost cost{.stage = row.text("stage"),
                   .range_events = row.integer("range_events"),
                   .gemm_events = row.integer("gemm_events")};
    const auto stage = std::find_if(summary.stages.begin(), summary.stages.end(),
                                    [&](const Stage& known) { return known.name == cost.stage; });
    if (stage == summary.stages.end()) continue;
    cost.delay_ns = delay_ns(summary.cost, cost.range_events, cost.gemm_events);
    cost.share = share_of(cost.delay_ns, stage->steps_ns);
    cost.flagged = cost.share && *cost.share > kFlaggedShare;
    summary.cost.stages.push_back(std::move(cost));
  }
  return {};
}

}  // namespace

std::optional<MeasuredRatio> ratio_of_watching(const std::vector<TimedStep>& steps, const wire::Rests& rests,
                                               bool any_kind) {
  Ratios ratios;
  const auto near_ns = static_cast<std::int64_t>(2 * rests.lasts_ns);
  for (std::size_t i = 0; i < steps.size();) {
    if (!is_inside(steps[i], rests)) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < steps.size() && is_inside(steps[end], rests) &&
           rests.next_change(static_cast<std::uint64_t>(steps[end].begin_ns)) ==
               rests.next_change(static_cast<std::uint64_t>(steps[i].begin_ns)))
      ++end;
    for (const auto kind : {is_timed, is_noted}) {
      std::vector<std::int64_t> with, without;
      const auto take = [&](const TimedStep& step, std::vector<std::int64_t>& into) {
        if (any_kind || kind(step)) into.push_back(step.end_ns - step.begin_ns);
      };
      for (std::size_t at = i; at < end; ++at) take(steps[at], without);
      for (std::size_t at = i; at-- > 0 && steps[at].begin_ns > steps[i].begin_ns - near_ns;)
        if (is_outside(steps[at], rests)) take(steps[at], with);
      for (std::size_t at = end; at < steps.size() && steps[at].end_ns < steps[end - 1].end_ns + near_ns; ++at)
        if (is_outside(steps[at], rests)) take(steps[at], with);
      ratios.add(with, without, without.size());
      if (any_kind) break;
    }
    i = end;
  }
  return ratios.finish();
}

std::optional<MeasuredRatio> ratio_of_timing(const std::vector<TimedStep>& steps, const wire::Rests& rests) {
  Ratios ratios;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t end = i;
    while (end < steps.size() && is_timed(steps[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    std::vector<std::int64_t> with, without;
    for (std::size_t at = i; at < end; ++at)
      if (is_outside(steps[at], rests)) with.push_back(steps[at].end_ns - steps[at].begin_ns);
    const std::size_t as_many = with.size();
    const auto take = [&](const TimedStep& step) {
      if (is_noted(step) && is_outside(step, rests)) without.push_back(step.end_ns - step.begin_ns);
    };
    for (std::size_t at = i; at-- > 0 && i - at <= as_many + 1;) take(steps[at]);
    const std::size_t before = without.size();
    for (std::size_t at = end; at < steps.size() && at - end <= as_many; ++at) take(steps[at]);
    // Before the first stretch that is noted nothing can be told: the program begins.
    if (before >= kFewestOf && without.size() >= before + kFewestOf) ratios.add(with, without, with.size());
    i = end;
  }
  return ratios.finish();
}

Result<void> fill_cost(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/cost"));
  const RowView row{table, 0};
  CollectorCost& cost = summary.cost;
  cost.recorder_cpu_ns = run.info().recorder_cpu_ns;
  // A recording in which no process raised an event has nothing to note.
  cost.known = row.integer("processes") > 0 || cost.recorder_cpu_ns;
  if (!cost.known) {
    cost.why = "the run does not say";
    return {};
  }
  cost.range_events = row.integer("range_events");
  cost.gemm_events = row.integer("gemm_events");
  cost.gpu_events = row.integer("gpu_events");
  cost.log_bytes = row.integer("log_bytes");
  cost.writer_cpu_ns = row.integer("writer_cpu_ns");
  cost.range_event_ns = row.maybe_real("range_event_ns");
  cost.gemm_event_ns = row.maybe_real("gemm_event_ns");
  cost.writer_share = share_of(static_cast<double>(cost.writer_cpu_ns), summary.coverage.wall_ns);
  cost.delay_ns = delay_ns(cost, cost.range_events, cost.gemm_events);
  cost.delay_share = share_of(cost.delay_ns, summary.coverage.wall_ns);
  if (!cost.delay_ns) cost.why = "what one event costs was not measured on this machine";
  LLMPROF_TRY(fill_stages(run, summary));
  return measure_stages(run, summary);
}

}  // namespace llmprof::analyze
