#include "predict/run/serving_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "predict/run/layout.h"
#include "predict/run/predict_steps.h"

namespace llmprof::predict {
namespace {

using serving::RequestResult;
using serving::Simulation;

// Of the first replica. Records are thinned out evenly, so their share stands for that of all steps.
std::int64_t steps_of_first(const Simulation& simulation, std::int64_t replicas) {
  if (replicas <= 1) return simulation.step_count;
  const auto own = std::ranges::count(simulation.steps, 0, &serving::StepRecord::replica);
  return static_cast<std::int64_t>(own) * simulation.step_stride;
}

PredictedRequest request_of(const RequestResult& result, double begin_ns) {
  const auto since = [&](double ns) {
    return std::isfinite(ns) ? std::optional(ns - begin_ns) : std::optional<double>();
  };
  PredictedRequest out{.arrival_ns = result.arrival_ns - begin_ns, .first_token_ns = {}, .end_ns = {}};
  out.prompt_tokens = result.prompt_tokens;
  if (result.rejection != serving::Rejection::kNone) {
    out.status = fmt::format("rejected: {}", serving::reason_text(result.rejection));
    return out;
  }
  out.first_token_ns = since(result.first_token_ns), out.end_ns = since(result.last_token_ns);
  out.output_tokens = result.output_tokens;
  out.status = "finished";
  return out;
}

std::string sentence_of(const ServingInput& input, const ServingForecast& forecast) {
  const serving::EngineRules& rules = forecast.rules;
  const bool host = input.host.per_step_ns > 0 || input.host.per_request_ns > 0 || input.host.per_new_request_ns > 0;
  return fmt::format("A simulation of {}{}{} with the workload: {}. The device's time stands on {}{}.", rules.engine,
                     rules.version.empty() ? "" : " ", rules.version, input.workload.description,
                     stands_on_words(forecast.stands_on),
                     host ? "; the host's on " + input.host.source : "; the host's is unknown and counts as 0");
}

std::string part_words(const PredictedRun& run, std::int64_t skipped, std::int64_t all, double duration_ns) {
  const PredictedStep &first = run.steps.front(), &last = run.steps.back();
  return fmt::format(
      "all requests are in the run, and of the {2} steps those from {0} to {1}, which is from {3} to {4} of {5}",
      skipped + 1, skipped + static_cast<std::int64_t>(run.steps.size()), all, base::human_ns(first.begin_ns),
      base::human_ns(last.begin_ns + last.device_ns), base::human_ns(duration_ns));
}

// What the table of requests says, in short: a report shows steps.
std::string latency_note(const serving::Metrics& m) {
  const auto words = [](std::string_view what, const serving::Distribution& d) {
    return fmt::format("{} mean {}, p99 {}", what, base::human_ns(d.mean), base::human_ns(d.p99));
  };
  return fmt::format("{} requests were served: {}; {}; {}", m.completed, words("TTFT", m.ttft_ns),
                     words("TPOT", m.tpot_ns), words("E2E", m.e2e_ns));
}

// Executions of a step begin when the device does; what its ranks wait for each other is behind them.
class Collector {
 public:
  Collector(const TableStepCost& cost, const StepLayout& layout, double begin_ns, std::int64_t skip, std::int64_t most)
      : cost_(cost), layout_(layout), begin_ns_(begin_ns), skip_(skip), most_(most) {}

  void take(const serving::LaunchedStep& step) {
    if (step.replica != 0) return;
    const std::int64_t number = seen_++;
    if (number < skip_ || number >= skip_ + most_) return;
    steps.push_back({.begin_ns = step.begin_ns - begin_ns_,
                     .device_ns = step.device_ns,
                     .batch = step.batch,
                     .work = layout_.lay_out(step.batch, cost_.explain(step.batch))});
  }
  std::int64_t seen() const { return seen_; }
  std::vector<PredictedStep> steps;

 private:
  const TableStepCost& cost_;
  const StepLayout& layout_;
  double begin_ns_ = 0;
  std::int64_t skip_ = 0, most_ = 0, seen_ = 0;
};

}  // namespace

Result<PredictedRun> serving_run(const ServingInput& input, const ServingForecast& forecast, std::int64_t most) {
  const Simulation& simulated = forecast.simulation;
  LLMPROF_LET(const std::unique_ptr<TableStepCost> cost, step_cost_of(input));
  LLMPROF_LET(const StepLayout layout, StepLayout::make(*cost, Detail::kParts));
  PredictedRun run;
  run.config_text = input.config_text, run.model_origin = input.origin;
  run.parallel = input.parallel;
  run.device = input.device.device, run.peaks = input.device.peaks;
  run.stands_on = sentence_of(input, forecast);
  run.places = layout.places();
  for (const RequestResult& each : simulated.requests) run.requests.push_back(request_of(each, simulated.begin_ns));

  const std::int64_t expected = steps_of_first(simulated, input.replicas),
                     skip = std::max<std::int64_t>(0, (expected - most) / 2);
  Collector collector(*cost, layout, simulated.begin_ns, skip, most);
  serving::SimulateOptions options = simulate_options(input);
  options.most_step_records = 0;
  options.on_step = [&](const serving::LaunchedStep& step) { collector.take(step); };
  LLMPROF_TRY(serving::simulate(forecast.rules, input.workload, *cost, options));
  run.steps = std::move(collector.steps);
  run.notes = {latency_note(forecast.metrics)};
  run.notes.insert(run.notes.end(), forecast.notes.begin(), forecast.notes.end());
  if (input.replicas > 1) {
    run.notes.push_back(
        fmt::format("steps are those of the first of {} replicas; requests are those of all", input.replicas));
  }
  if (collector.seen() > static_cast<std::int64_t>(run.steps.size()) && !run.steps.empty()) {
    const std::string part = part_words(run, skip, collector.seen(), simulated.end_ns - simulated.begin_ns);
    run.notes.push_back(part);
    run.begin_ns = run.steps.front().begin_ns;  // else shares of the time would count what is not there
    run.stands_on += fmt::format(" A part: {}.", part);
  }
  return run;
}

}  // namespace llmprof::predict
