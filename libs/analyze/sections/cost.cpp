#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/sections.h"
#include "trace/recording_cost.h"

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

constexpr std::size_t kFewestSteps = 3;   // of a window: fewer, and those that fit into it are the short ones
constexpr std::size_t kFewestRatios = 3;  // windows, for an interval
// Who rests hears of it by timers: so long after the moment, and at most a tenth of a rest, nothing is compared.
constexpr std::int64_t kSwitchingNs = 2'000'000;

bool is_timed(const TimedStep& step) { return step.recorded > 0.99; }
bool is_noted(const TimedStep& step) { return step.recorded < 0.01; }
bool is_any(const TimedStep&) { return true; }

// Of an even number the mean of the two in the middle: the upper one would grow as the number shrinks.
double median(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const auto upper = static_cast<double>(values[half]);
  return values.size() % 2 != 0 ? upper : (static_cast<double>(values[half - 1]) + upper) / 2;
}

// Two-sided 95 % of Student's distribution.
double student(std::size_t freedom) {
  constexpr double kTable[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return freedom <= std::size(kTable) ? kTable[freedom - 1] : 1.96 + 2.7 / static_cast<double>(freedom);
}

using Lengths = std::vector<std::int64_t>;

// A median against those before and after it, each of as many steps: if recording cost nothing, the three could change
// places, so that neither a drift nor scattered lengths of steps look like a cost.
double compared(const Lengths& before, const Lengths& between, const Lengths& after) {
  return (std::log(median(before)) + std::log(median(after))) / 2 - std::log(median(between));
}

// The mean of such logarithms, and its interval. Neighbours may share a window, and a busy machine stays so for a
// while: what two in a row have in common widens the interval.
class Ratios {
 public:
  void add(double log, std::size_t steps) {
    logs_.push_back(log);
    steps_ += static_cast<std::int64_t>(steps);
  }
  std::optional<MeasuredRatio> finish() const {
    if (logs_.size() < kFewestRatios) return std::nullopt;
    const auto count = static_cast<double>(logs_.size());
    double mean = 0, squares = 0, in_common = 0;
    for (const double log : logs_) mean += log / count;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      squares += (logs_[i] - mean) * (logs_[i] - mean);
      if (i > 0) in_common += (logs_[i] - mean) * (logs_[i - 1] - mean);
    }
    squares += 2 * std::max(0.0, in_common);
    const double error = student(logs_.size() - 1) * std::sqrt(squares / (count - 1) / count);
    return MeasuredRatio{std::exp(mean), std::exp(mean - error), std::exp(mean + error),
                         static_cast<std::int64_t>(logs_.size()), steps_};
  }

 private:
  std::vector<double> logs_;
  std::int64_t steps_ = 0;
};

bool is_outside(const TimedStep& step, const wire::Rests& rests) {
  const auto begin_ns = static_cast<std::uint64_t>(step.begin_ns);
  return !rests.at(begin_ns) && rests.next_change(begin_ns) > static_cast<std::uint64_t>(step.end_ns);
}

// Of steps in the order of their begins, those that lie in a window.
Lengths lengths_in(const std::vector<TimedStep>& steps, std::int64_t begin_ns, std::int64_t end_ns,
                   bool (*kind)(const TimedStep&)) {
  Lengths out;
  auto at = std::lower_bound(steps.begin(), steps.end(), begin_ns,
                             [](const TimedStep& step, std::int64_t ns) { return step.begin_ns < ns; });
  for (; at != steps.end() && at->begin_ns < end_ns; ++at)
    if (at->end_ns <= end_ns && kind(*at)) out.push_back(at->end_ns - at->begin_ns);
  return out;
}

// Both together: of the mean step, some of which have kernels timed. The errors are independent.
std::optional<MeasuredRatio> together(const StageCost& cost) {
  if (!cost.measured_watching) return std::nullopt;
  if (!cost.measured_kernels) return cost.measured_watching;
  const double share = cost.kernels_share, watching = std::log(cost.measured_watching->ratio);
  const double kernels = std::log(1 + share * (cost.measured_kernels->ratio - 1));
  const double error =
      std::hypot(std::log(cost.measured_watching->high) - watching,
                 share * (cost.measured_kernels->high - cost.measured_kernels->ratio) / std::exp(kernels));
  MeasuredRatio out = *cost.measured_watching;
  out.ratio = std::exp(watching + kernels);
  out.low = out.ratio * std::exp(-error);
  out.high = out.ratio * std::exp(error);
  return out;
}

Result<void> measure_stages(const trace::Run& run, Summary& summary) {
  const std::optional<trace::NotedRests>& rests = run.info().rests;
  if (!rests) return {};
  summary.cost.rests_of_everything = rests->everything;
  LLMPROF_LET(const std::vector<TimedStep> rows, ask_rows<TimedStep>(run, "cost_steps"));
  std::map<std::string, std::vector<TimedStep>> steps;
  for (const TimedStep& row : rows) steps[row.stage].push_back(row);
  for (const auto& [name, of_stage] : steps) {
    auto found = std::find_if(summary.cost.stages.begin(), summary.cost.stages.end(),
                              [&, stage = name](const StageCost& cost) { return cost.name == stage; });
    if (found == summary.cost.stages.end())
      found = summary.cost.stages.insert(found, StageCost{.name = name, .delay_ns = 0, .share = 0});
    StageCost& cost = *found;
    cost.measured_watching = ratio_of_watching(of_stage, rests->when, rests->everything);
    if (!rests->everything) cost.measured_kernels = ratio_of_timing(of_stage, rests->when);
    const auto timed = std::count_if(of_stage.begin(), of_stage.end(), is_timed);
    cost.kernels_share = of_stage.empty() ? 0 : static_cast<double>(timed) / static_cast<double>(of_stage.size());
    cost.measured = together(cost);
  }
  return {};
}

// ---- estimated ----------------------------------------------------------------------------------------------------

// Events delay the thread that raises them, so a stage's delay is held against its steps added up over all threads.
Result<void> fill_stages(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(std::vector<StageCost> rows, ask_rows<StageCost>(run, "cost_stages"));
  for (StageCost& cost : rows) {
    const auto stage = std::find_if(summary.stages.begin(), summary.stages.end(),
                                    [&](const Stage& known) { return known.name == cost.name; });
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
  if (steps.empty() || !rests.any()) return std::nullopt;
  Ratios ratios;
  const auto lasts = static_cast<std::int64_t>(rests.lasts_ns), every = static_cast<std::int64_t>(rests.every_ns);
  const std::int64_t margin = std::min(kSwitchingNs, lasts / 10);
  const auto compare = [&](std::int64_t rest_ns, bool (*kind)(const TimedStep&)) {
    const auto window = [&](std::int64_t begin_ns) {
      return lengths_in(steps, begin_ns + margin, begin_ns + lasts, kind);
    };
    const Lengths before = window(rest_ns - lasts), inside = window(rest_ns), after = window(rest_ns + lasts);
    if (std::min({before.size(), inside.size(), after.size()}) < kFewestSteps) return;
    ratios.add(compared(before, inside, after), inside.size());
  };
  const auto from = static_cast<std::int64_t>(rests.from_ns);
  const std::int64_t skipped = std::max<std::int64_t>(0, (steps.front().begin_ns - from) / every);
  for (std::int64_t rest_ns = from + skipped * every; rest_ns < steps.back().end_ns; rest_ns += every) {
    if (any_kind) {
      compare(rest_ns, is_any);
    } else {
      compare(rest_ns, is_timed);
      compare(rest_ns, is_noted);
    }
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
    Lengths before, timed, after;
    const auto take = [&](const TimedStep& step, Lengths& into) {
      if (is_outside(step, rests)) into.push_back(step.end_ns - step.begin_ns);
    };
    for (std::size_t at = i; at < end; ++at) take(steps[at], timed);
    // The step in which timing begins or ends is of neither kind.
    for (std::size_t at = i; at-- > 0 && i - at <= timed.size() + 1;)
      if (is_noted(steps[at])) take(steps[at], before);
    for (std::size_t at = end; at < steps.size() && at - end <= timed.size(); ++at)
      if (is_noted(steps[at])) take(steps[at], after);
    // Before the first stretch that is noted nothing can be told: the program begins.
    if (std::min({before.size(), timed.size(), after.size()}) >= kFewestSteps)
      ratios.add(-compared(before, timed, after), timed.size());
    i = end;
  }
  return ratios.finish();
}

Result<void> fill_cost(const trace::Run& run, Summary& summary) {
  CollectorCost& cost = summary.cost;
  LLMPROF_LET(cost, ask_row<CollectorCost>(run, "cost"));
  if (cost.gpu_events == 0) cost.timed_kernels = 0;  // nobody called CUPTI
  cost.recorder_cpu_ns = run.info().recorder_cpu_ns;
  // A recording in which no process raised an event has nothing to note.
  cost.known = cost.processes > 0 || cost.recorder_cpu_ns;
  if (!cost.known) {
    cost.why = run.info().source == "predict" ? "it is predicted, nothing was recorded" : "the run does not say";
    return {};
  }
  cost.writer_share = share_of(static_cast<double>(cost.writer_cpu_ns), summary.coverage.wall_ns);
  cost.delay_ns = delay_ns(cost, cost.range_events, cost.gemm_events);
  cost.delay_share = share_of(cost.delay_ns, summary.coverage.wall_ns);
  if (!cost.delay_ns) cost.why = "what one event costs was not measured on this machine";
  LLMPROF_TRY(fill_stages(run, summary));
  LLMPROF_TRY(measure_stages(run, summary));
  const bool measured = std::any_of(cost.stages.begin(), cost.stages.end(), [&](const StageCost& stage) {
    return stage.measured_kernels || (cost.rests_of_everything && stage.measured_watching);
  });
  if (!measured && cost.timed_kernels > 0)
    cost.timing_ns = static_cast<double>(cost.timed_kernels) * trace::kTimedKernelNs;
  return {};
}

}  // namespace llmprof::analyze
