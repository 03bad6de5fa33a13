// The run once more, simulated: its requests as they came, the engine's own rules, and steps that take what the run's
// steps took. First as it was: only a simulation that comes near what was measured says what a change would do.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "analyze/counters/unmix.h"
#include "analyze/requests/answers.h"
#include "base/human.h"
#include "serving/simulate.h"

namespace llmprof::analyze {
namespace {

using serving::EngineRules;

constexpr double kReproduces = 0.15;             // of the measured value
constexpr double kWorthSaying = 0.05;            // of p99 TTFT
constexpr std::int64_t kLeastSteps = 20;         // for the times of steps
constexpr std::int64_t kMostTokens = 3'000'000;  // of output: what is simulated within seconds

constexpr std::size_t kTerms = 4;
using Terms = std::array<double, kTerms>;  // constant, new tokens with padding, pairs, sequences

Terms terms_of(const ServedStep& step) {
  return {1, static_cast<double>(step.tokens + step.padding), static_cast<double>(step.pairs),
          static_cast<double>(step.members)};
}
double dot(const Terms& a, const Terms& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kTerms; ++i) sum += a[i] * b[i];
  return sum;
}

// Steps as a simulation prices them.
class FittedCost final : public serving::StepCost {
 public:
  FittedCost(const Terms& weights, double between_ns) : weights_(weights), between_ns_(between_ns) {}
  serving::StepTime of(const serving::Batch& batch) override {
    double pairs = 0;
    for (const serving::Chunk& chunk : batch.chunks) {
      const auto n = static_cast<double>(chunk.tokens), length = static_cast<double>(chunk.computed + chunk.tokens);
      pairs += n * length - n * (n - 1) / 2;
    }
    for (const std::int64_t context : batch.contexts) pairs += static_cast<double>(context);
    const std::int64_t tokens = std::max(batch.padded_tokens, batch.tokens());
    most_tokens = std::max(most_tokens, tokens);
    const double ns = dot(weights_, {1, static_cast<double>(tokens), pairs, static_cast<double>(batch.requests())});
    return {std::max(ns, 1.0), between_ns_};
  }
  std::int64_t most_tokens = 0;

 private:
  Terms weights_;
  double between_ns_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Least squares of each step's error relative to the root of its time, no term below 0: long and short steps both
// count.
struct Fit {
  Terms weights{};
  double error = 0;  // median
  std::int64_t steps = 0, most_tokens = 0;
};

std::optional<Fit> fit_steps(const std::vector<ServedStep>& steps) {
  counters::SquareMatrix gram(kTerms);
  std::vector<double> right(kTerms, 0);
  Terms scale{};  // columns of like size, for the solver
  Fit fit;
  for (const ServedStep& step : steps) {
    const Terms terms = terms_of(step);
    for (std::size_t i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], terms[i]);
  }
  for (const ServedStep& step : steps) {
    if (step.warm_up || step.time_ns() <= 0) continue;
    const auto ns = static_cast<double>(step.time_ns());
    const Terms terms = terms_of(step);
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (scale[i] <= 0) continue;
      right[i] += terms[i] / scale[i];
      for (std::size_t j = 0; j < kTerms; ++j)
        gram.at(i, j) += scale[j] <= 0 ? 0 : terms[i] / scale[i] * terms[j] / scale[j] / ns;
    }
    ++fit.steps;
    fit.most_tokens = std::max(fit.most_tokens, step.tokens + step.padding);
  }
  if (fit.steps < kLeastSteps) return std::nullopt;
  const counters::Nnls solved = counters::nnls(gram, right);
  for (std::size_t i = 0; i < kTerms; ++i) fit.weights[i] = scale[i] > 0 ? solved.x[i] / scale[i] : 0;
  std::vector<double> errors;
  for (const ServedStep& step : steps) {
    if (!step.warm_up && step.time_ns() > 0)
      errors.push_back(std::abs(dot(fit.weights, terms_of(step)) / static_cast<double>(step.time_ns()) - 1));
  }
  fit.error = median(std::move(errors));
  return fit;
}

// From the end of a step to the begin of the next, where the engine had work: pauses of tens of medians were none.
double between_steps(const std::vector<ServedStep>& steps) {
  constexpr double kPause = 20;
  std::vector<double> gaps;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].process_id == steps[i - 1].process_id)
      gaps.push_back(static_cast<double>(steps[i].begin_ns - steps[i - 1].end_ns));
  }
  if (gaps.empty()) return 0;
  const double most = kPause * median(gaps);
  double sum = 0, count = 0;
  for (const double gap : gaps) {
    if (gap <= most) sum += gap, ++count;
  }
  return count > 0 ? sum / count : 0;
}

// The requests of the run, with their places in it.
struct Asked {
  serving::Workload workload;
  std::vector<const RequestFigures*> figures;
  std::int64_t left_out = 0, output_tokens = 0;
  bool cached = false, at_boundaries = false;  // the engine marks requests when it takes them, between its steps
};

bool between_its_steps(const Served& served, const RequestFigures& request) {
  for (auto at = std::ranges::upper_bound(served.steps, request.arrival_ns, {}, &ServedStep::begin_ns);
       at != served.steps.begin();) {
    --at;
    if (at->process_id == request.process_id) return at->end_ns <= request.arrival_ns;
  }
  return true;
}

Asked asked_of(const Served& served, const Requests& all) {
  constexpr double kAlmostAll = 0.95;
  Asked out;
  std::int64_t between = 0;
  for (const RequestFigures& request : all.all) {
    const std::int64_t output = std::max<std::int64_t>(request.output_tokens, request.first_token_ns ? 1 : 0);
    if (output == 0 || request.prompt_tokens <= 0) {
      ++out.left_out;
      continue;
    }
    // What the prefix cache had costs no time; whose prompts begin alike is not known.
    const std::int64_t cached = std::min(request.cached_tokens.value_or(0), request.prompt_tokens - 1);
    out.cached |= cached > 0;
    out.output_tokens += output;
    out.workload.requests.push_back({.arrival_ns = static_cast<double>(request.arrival_ns - all.all.front().arrival_ns),
                                     .prompt_tokens = static_cast<std::int32_t>(request.prompt_tokens - cached),
                                     .output_tokens = static_cast<std::int32_t>(output)});
    out.figures.push_back(&request);
    between += between_its_steps(served, request) ? 1 : 0;
  }
  out.at_boundaries = static_cast<double>(between) >= kAlmostAll * static_cast<double>(out.figures.size());
  return out;
}

struct Outcome {
  std::int64_t ttft_p50_ns = 0, ttft_p99_ns = 0;
  std::optional<std::int64_t> tpot_p50_ns;
  std::int64_t most_tokens = 0;
};

std::optional<Outcome> outcome_of(std::vector<std::int64_t> ttft, std::vector<std::int64_t> tpot) {
  if (ttft.empty()) return std::nullopt;
  const auto at = [](std::vector<std::int64_t>& values, double q) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(quantile_rank(std::ssize(values), q) - 1)];
  };
  Outcome out{.ttft_p50_ns = at(ttft, 0.5), .ttft_p99_ns = at(ttft, 0.99), .tpot_p50_ns = {}};
  if (!tpot.empty()) out.tpot_p50_ns = at(tpot, 0.5);
  return out;
}

std::optional<Outcome> measured_of(const Asked& asked) {
  std::vector<std::int64_t> ttft, tpot;
  for (const RequestFigures* request : asked.figures) {
    if (request->warm_up || !request->ttft_ns) continue;
    ttft.push_back(*request->ttft_ns);
    if (request->tpot_ns) tpot.push_back(*request->tpot_ns);
  }
  return outcome_of(std::move(ttft), std::move(tpot));
}

Result<Outcome> simulated(const EngineRules& rules, const Asked& asked, const Fit& fit, double between_ns,
                          std::int64_t replicas) {
  FittedCost cost(fit.weights, between_ns);
  serving::SimulateOptions options{.replicas = replicas, .most_steps = 10 * kMostTokens, .most_step_records = 0};
  LLMPROF_LET(const serving::Simulation run, serving::simulate(rules, asked.workload, cost, options));
  std::vector<std::int64_t> ttft, tpot;
  std::int64_t rejected = 0;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const serving::RequestResult& result = run.requests[i];
    if (result.rejection != serving::Rejection::kNone) ++rejected;
    if (result.rejection != serving::Rejection::kNone || asked.figures[i]->warm_up || !asked.figures[i]->ttft_ns)
      continue;
    ttft.push_back(std::llround(result.first_token_ns - (asked.at_boundaries ? result.queued_ns : result.arrival_ns)));
    if (result.output_tokens > 1)
      tpot.push_back(std::llround((result.last_token_ns - result.first_token_ns) / (result.output_tokens - 1)));
  }
  if (rejected > 0)
    return Error{ErrorCode::kUsage, fmt::format("{} of the requests would be rejected by these rules", rejected), ""};
  std::optional<Outcome> out = outcome_of(std::move(ttft), std::move(tpot));
  if (!out) return Error{ErrorCode::kUsage, "no request has a time to first token", ""};
  out->most_tokens = cost.most_tokens;
  return *out;
}

struct Change {
  std::string text;
  EngineRules rules;
  std::int64_t replicas = 1;
};

// What an operator can turn, and what more hardware gives.
std::vector<Change> changes_of(const EngineRules& rules) {
  std::vector<Change> out;
  const auto set = [&](const char* key, std::int64_t value, const std::string& was) {
    EngineRules changed = rules;
    if (value <= 0 || !serving::set_rule(changed, fmt::format("{}={}", key, value)) || !serving::check_rules(changed))
      return;
    out.push_back({fmt::format("{} {} -> {}", key, was, value), std::move(changed)});
  };
  const std::int64_t budget = rules.max_num_batched_tokens, threshold = rules.long_prefill_token_threshold;
  if (budget > 0) {
    for (const std::int64_t value : {budget / 2, budget * 2})
      set("max_num_batched_tokens", value, fmt::format("{}", budget));
    if (threshold == 0) set("long_prefill_token_threshold", budget / 4, "none");
  }
  if (threshold > 0) {
    for (const std::int64_t value : {threshold / 2, threshold * 2})
      set("long_prefill_token_threshold", value, fmt::format("{}", threshold));
  }
  set("max_num_seqs", rules.max_num_seqs * 2, fmt::format("{}", rules.max_num_seqs));
  set("num_gpu_blocks", rules.num_gpu_blocks * 2, fmt::format("{}", rules.num_gpu_blocks));
  out.push_back({"a second replica", rules, 2});
  return out;
}

ReplayStatistic statistic(const char* metric, std::int64_t measured, std::int64_t predicted) {
  return {metric, measured, predicted,
          measured > 0 ? static_cast<double>(predicted) / static_cast<double>(measured) - 1 : 0};
}

void back_test(const Outcome& measured, const Outcome& predicted, Replay& out) {
  out.back_test = {statistic("TTFT p50", measured.ttft_p50_ns, predicted.ttft_p50_ns),
                   statistic("TTFT p99", measured.ttft_p99_ns, predicted.ttft_p99_ns)};
  out.reproduces = std::ranges::all_of(out.back_test,
                                       [](const ReplayStatistic& each) { return std::abs(each.error) <= kReproduces; });
  if (measured.tpot_p50_ns && predicted.tpot_p50_ns)
    out.back_test.push_back(statistic("TPOT p50", *measured.tpot_p50_ns, *predicted.tpot_p50_ns));
  if (out.reproduces) return;
  out.why = "the simulation does not reproduce this run:";
  for (const ReplayStatistic& each : out.back_test)
    out.why += fmt::format(" {} {} measured, {} simulated ({:+.0f} %);", each.metric,
                           base::human_ns(static_cast<double>(each.measured_ns)),
                           base::human_ns(static_cast<double>(each.predicted_ns)), 100 * each.error);
  out.why.back() = '.';
}

double change_of(std::int64_t before, std::int64_t after) {
  return before > 0 ? static_cast<double>(after) / static_cast<double>(before) - 1 : 0;
}

void add_changes(const EngineRules& rules, const Asked& asked, const Fit& fit, const Outcome& as_it_was, Replay& out) {
  const bool tpot_holds = out.back_test.size() > 2 && std::abs(out.back_test[2].error) <= kReproduces;
  for (const Change& change : changes_of(rules)) {
    const Result<Outcome> after = simulated(change.rules, asked, fit, out.between_ns, change.replicas);
    if (!after) continue;
    ReplayChange row{.change = change.text, .more_devices = change.replicas > 1};
    row.beyond_seen = after->most_tokens > fit.most_tokens;
    row.ttft_p50_ns = after->ttft_p50_ns, row.ttft_p99_ns = after->ttft_p99_ns;
    row.ttft_p99_saved = -change_of(as_it_was.ttft_p99_ns, after->ttft_p99_ns);
    if (tpot_holds && after->tpot_p50_ns && as_it_was.tpot_p50_ns) {
      row.tpot_p50_ns = after->tpot_p50_ns;
      row.tpot_p50_change = change_of(*as_it_was.tpot_p50_ns, *after->tpot_p50_ns);
    }
    out.changes.push_back(std::move(row));
  }
  std::ranges::stable_sort(out.changes, std::greater{}, &ReplayChange::ttft_p99_saved);
}

// "max_num_batched_tokens 4096 -> 2048 would save 38 % of p99 TTFT (TPOT p50 +4 %)"
std::string sentence_of(const Replay& replay) {
  for (const bool more_devices : {false, true}) {
    for (const ReplayChange& change : replay.changes) {
      if (change.more_devices != more_devices || change.ttft_p99_saved < kWorthSaying) continue;
      return fmt::format(
          "{} would save {:.0f} % of p99 TTFT{}, simulated", change.change, 100 * change.ttft_p99_saved,
          change.tpot_p50_change ? fmt::format(" (TPOT p50 {:+.0f} %)", 100 * *change.tpot_p50_change) : "");
    }
  }
  return "";
}

// Steps of the one process that serves; of several replicas nobody says here which request went where.
std::vector<ServedStep> steps_of_one(const Served& served, const Requests& all) {
  std::int64_t process = 0;
  for (const RequestFigures& request : all.all) {
    if (request.steps == 0) continue;
    if (process != 0 && request.process_id != process) return {};
    process = request.process_id;
  }
  std::vector<ServedStep> out;
  std::ranges::copy_if(served.steps, std::back_inserter(out),
                       [&](const ServedStep& step) { return step.process_id == process; });
  return out;
}

std::string workload_words(const Asked& asked) {
  std::string out = fmt::format("{} requests as they arrived", asked.figures.size());
  if (asked.left_out > 0) out += fmt::format(", without {} that got no token", asked.left_out);
  if (asked.cached) out += ", prompts without what the prefix cache had";
  return out;
}

}  // namespace

void add_replay(const Served& served, Requests& all) {
  if (served.steps.empty() || all.all.empty()) return;
  Replay out;
  const auto give_up = [&](std::string why) {
    out.why = std::move(why);
    all.replay = std::move(out);
  };
  if (!served.rules) return give_up(served.rules_why);
  out.engine = served.rules->engine + (served.rules->version.empty() ? "" : " " + served.rules->version);
  const Asked asked = asked_of(served, all);
  const std::optional<Outcome> measured = measured_of(asked);
  if (!measured) return give_up("no request has a time to first token");
  if (asked.output_tokens > kMostTokens)
    return give_up(fmt::format("{} output tokens are more than are simulated here", asked.output_tokens));
  out.workload = workload_words(asked);
  const std::vector<ServedStep> steps = steps_of_one(served, all);
  if (steps.empty()) return give_up("requests are served by several processes, and which by which is not simulated");
  const std::optional<Fit> fit = fit_steps(steps);
  if (!fit) return give_up(fmt::format("fewer than {} steps tell what a step takes", kLeastSteps));
  out.step_ns = fit->weights[0], out.token_ns = fit->weights[1], out.pair_ns = fit->weights[2],
  out.sequence_ns = fit->weights[3];
  out.between_ns = between_steps(steps);
  out.fitted_steps = fit->steps, out.fit_error = fit->error;
  const Result<Outcome> as_it_was = simulated(*served.rules, asked, *fit, out.between_ns, 1);
  if (!as_it_was) return give_up(as_it_was.error().message);
  back_test(*measured, *as_it_was, out);
  if (out.reproduces) {
    add_changes(*served.rules, asked, *fit, *as_it_was, out);
    out.sentence = sentence_of(out);
  }
  all.replay = std::move(out);
}

}  // namespace llmprof::analyze
