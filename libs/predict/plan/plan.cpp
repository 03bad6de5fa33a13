#include "predict/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace llmprof::predict::plan {
namespace {

constexpr double kRateTolerance = 0.05;
constexpr double kMostRateFactor = 64;
// Requests have to arrive over so many times what an answer takes: else the workload ends before a queue shows.
constexpr double kSpanOfAnswers = 4;
constexpr std::size_t kMostRepeats = 16;  // of the workload, where it does not last so long
constexpr std::size_t kMostRepeatsOfRates = 4;

// What ways share that differ in their limits only.
struct Group {
  ServingInput input;
  std::unique_ptr<TableStepCost> cost;
  std::vector<OperatorError> errors;
};

Result<Group> make_group(const Asked& asked, const Way& way) {
  Deployment deployment = asked.deployment;
  deployment.dtype = way.dtype, deployment.tensor = way.tensor, deployment.expert = way.expert;
  Group out;
  LLMPROF_LET(out.input, serving_input(deployment, asked.model, asked.devices[way.device], {}));
  if (asked.tables) {
    LLMPROF_LET(out.input.tables, asked.tables(out.input, way.tensor));
  }
  LLMPROF_LET(out.cost, step_cost_of(out.input));
  out.errors = backtest_operators(*out.cost);
  return out;
}

bool same_group(const Way& a, const Way& b) {
  return a.device == b.device && a.dtype == b.dtype && a.tensor == b.tensor && a.expert == b.expert;
}

struct Trial {
  Judged judged;
  double busy_share = 0, kv_peak_share = 0, output_tokens_per_s = 0;
  serving::Rejection rejection = serving::Rejection::kNone;  // the most common
  bool steady = true;                                        // the workload lasts long enough to tell
};

// Simulations of one configuration: any number of replicas, steps longer by a factor.
class Trials {
 public:
  Trials(const Asked& asked, Group& group, const ServingForecast& settled, std::int64_t& simulations)
      : asked_(asked), group_(group), settled_(settled), simulations_(simulations) {}

  // `load`: times the workload's own rate.
  Result<Trial> run(std::int64_t replicas, double factor, double load = 1) {
    const auto key = std::pair(static_cast<double>(replicas) / load, factor);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    serving::EngineRules rules = settled_.rules;
    if (factor > 1 && settled_.blocks_derived) {
      const double fewer = static_cast<double>(rules.num_gpu_blocks) * (1 - kBlocksUncertain);
      rules.num_gpu_blocks = std::max<std::int64_t>(2, static_cast<std::int64_t>(fewer));
    }
    ScaledCost cost(*group_.cost, factor);
    serving::SimulateOptions options;
    options.replicas = asked_.stretch ? 1 : replicas;
    options.most_step_records = 0;
    Trial trial;
    for (std::size_t repeats = 1;; repeats *= 4) {
      ++simulations_;
      LLMPROF_LET(
          const serving::Simulation simulation,
          serving::simulate(rules, asked_.stretch ? stretched(key.first, repeats) : asked_.workload, cost, options));
      trial = trial_of(simulation, static_cast<double>(options.replicas),
                       asked_.stretch ? static_cast<double>(replicas) : 1.0);
      // What is kept only because the load ends soon is tried with more of it.
      const bool told = trial.steady || !trial.judged.kept();
      if (told || !asked_.repeat || repeats >= (load == 1 ? kMostRepeats : kMostRepeatsOfRates)) break;
    }
    known_.emplace(key, trial);
    return trial;
  }

 private:
  // The same requests again and again, and all arrivals farther apart.
  const serving::Workload& stretched(double factor, std::size_t repeats) {
    const std::vector<serving::Request>& all = asked_.workload.requests;
    own_.content_ids = asked_.workload.content_ids, own_.content_tokens = asked_.workload.content_tokens;
    own_.requests.resize(all.size() * repeats);
    const double again_ns = all.back().arrival_ns + (asked_.rate > 0 ? 1e9 / asked_.rate : 0);
    for (std::size_t i = 0; i < own_.requests.size(); ++i) {
      own_.requests[i] = all[i % all.size()];
      own_.requests[i].arrival_ns += again_ns * static_cast<double>(i / all.size());
      own_.requests[i].arrival_ns *= factor;
    }
    return own_;
  }

  // `replicas` were simulated, `copies` of them there are.
  Trial trial_of(const serving::Simulation& simulation, double replicas, double copies) const {
    Trial out;
    out.judged = judge(simulation, asked_.limits);
    const double span_ns = simulation.end_ns - simulation.begin_ns;
    double tokens = 0;
    for (const serving::RequestResult& request : simulation.requests) {
      if (request.rejection == serving::Rejection::kNone) tokens += request.output_tokens;
    }
    if (span_ns > 0) {
      out.busy_share = simulation.device_busy_ns / (span_ns * replicas);
      out.output_tokens_per_s = tokens / (span_ns * 1e-9) * copies;
    }
    out.kv_peak_share =
        static_cast<double>(simulation.blocks_used_peak) / static_cast<double>(simulation.blocks_usable);
    if (asked_.workload.concurrency == 0)
      out.steady = simulation.requests.back().arrival_ns - simulation.requests.front().arrival_ns >=
                   kSpanOfAnswers * out.judged.e2e_ns;
    const auto most = std::max_element(simulation.rejected.begin() + 1, simulation.rejected.end());
    if (*most > 0) out.rejection = static_cast<serving::Rejection>(most - simulation.rejected.begin());
    return out;
  }

  const Asked& asked_;
  Group& group_;
  const ServingForecast& settled_;
  std::int64_t& simulations_;
  serving::Workload own_;
  std::map<std::pair<double, double>, Trial> known_;
};

// How many devices the way before needed: a good guess for the next.
struct Guess {
  std::int64_t predicted = 1, longest = 1;
};

Result<ServingForecast> settled(const Group& group, const Way& way, Result<void>& fits) {
  ServingForecast out;
  out.rules = group.input.rules;
  out.rules.max_num_seqs = way.max_num_seqs;
  out.rules.max_num_batched_tokens = way.max_num_batched_tokens;
  fits = settle_blocks(group.input, out);
  return out;
}

class Planner {
 public:
  Planner(const Asked& asked, const base::Progress& progress) : asked_(asked), progress_(progress) {}

  Result<Plan> run() {
    LLMPROF_LET(const std::vector<Way> all, ways(asked_));
    for (std::size_t i = 0; i < all.size(); ++i) {
      LLMPROF_TRY(report("configurations", i, all.size()));
      if (i == 0 || !same_group(all[i - 1], all[i])) {
        LLMPROF_LET(group_, make_group(asked_, all[i]));
        const serving::EngineRules& rules = group_.input.rules;
        out_.engine = rules.engine + (rules.version.empty() ? "" : " " + rules.version);
      }
      Configuration configuration;
      configuration.way = all[i];
      LLMPROF_TRY(judge_way(configuration));
      out_.configurations.push_back(std::move(configuration));
    }
    mark_fronts();
    LLMPROF_TRY(find_highest_rates());
    return std::move(out_);
  }

 private:
  Result<void> report(std::string_view what, std::size_t done, std::size_t total) const {
    if (progress_({what, static_cast<double>(done), static_cast<double>(total), what})) return {};
    return Error{ErrorCode::kInterrupted, "interrupted", ""};
  }

  std::int64_t most_replicas(const Way& way) const {
    const std::int64_t most = std::min<std::int64_t>(4096, std::max<std::int64_t>(1, asked_.most_devices / way.tensor));
    return asked_.workload.concurrency > 0 ? std::min(most, asked_.workload.concurrency) : most;
  }

  Result<void> judge_way(Configuration& out) {
    const model::Config& config = group_.input.config;
    out.dtype = config.quantization ? config.quantization->weight.type : config.weight.type;
    Result<void> fits;
    LLMPROF_LET(const ServingForecast settled_rules, settled(group_, out.way, fits));
    out.memory = settled_rules.memory;
    out.granted_bytes = settled_rules.rules.gpu_memory_utilization *
                        static_cast<double>(asked_.devices[out.way.device].device.memory_bytes);
    if (!fits) {
      if (out.memory.weights_bytes <= 0) return std::move(fits.error());  // nothing is known of the memory at all
      out.outcome = Outcome::kDoesNotFit;
      out.why = fits.error().message;
      return {};
    }
    LLMPROF_TRY(serving::check_rules(settled_rules.rules));
    out.kv_tokens = (settled_rules.rules.num_gpu_blocks - 1) * settled_rules.rules.block_size;
    const BasisTimes before = group_.cost->stands_on();
    out.alone = judge_alone(asked_.workload, settled_rules.rules, *group_.cost, asked_.limits);
    take_basis(before, out);
    if (!out.alone.kept()) {
      out.outcome = Outcome::kTooSlow;
      return {};
    }
    return search(settled_rules, out);
  }

  // What the times since `before` stand on.
  void take_basis(const BasisTimes& before, Configuration& out) const {
    out.stands_on = group_.cost->stands_on();
    for (std::size_t i = 0; i < kBases; ++i) out.stands_on.ns[i] -= before.ns[i];
    out.error = step_error(group_.errors, out.stands_on);
  }

  Result<void> search(const ServingForecast& settled_rules, Configuration& out) {
    ++out_.simulated;
    Trials trials(asked_, group_, settled_rules, out_.simulations);
    const BasisTimes before = group_.cost->stands_on();
    const std::int64_t most = most_replicas(out.way);
    const auto guessed = [&](std::int64_t devices) {
      return std::clamp<std::int64_t>(devices / out.way.tensor, 1, most);
    };
    const std::int64_t guess = guessed(guess_.predicted);
    LLMPROF_LET(const Trial first, trials.run(guess, 1));
    if (std::isinf(first.judged.of_slo)) {
      out.outcome = Outcome::kRefused;
      out.why = std::string(serving::reason_text(first.rejection));
      return {};
    }
    const auto enough = [&](double factor) {
      return [&trials, factor](std::int64_t replicas) -> Result<bool> {
        LLMPROF_LET(const Trial trial, trials.run(replicas, factor));
        return trial.judged.kept();
      };
    };
    LLMPROF_LET(const auto predicted, least_count(1, most, guess, enough(1)));
    take_basis(before, out);
    if (!predicted) {
      LLMPROF_LET(const Trial with_most, trials.run(most, 1));
      out.outcome = Outcome::kTooMany;
      out.with_most = with_most.judged;
      return {};
    }
    guess_.predicted = *predicted * out.way.tensor;
    const double longest = out.error.most;
    std::optional<std::int64_t> sure;
    if (out.alone.of_slo * longest <= 1) {
      LLMPROF_LET(sure, least_count(*predicted, most, guessed(guess_.longest), enough(longest)));
    }
    const auto load_of = [&](std::int64_t replicas) -> Result<Load> {
      LLMPROF_LET(const Trial trial, trials.run(replicas, 1));
      LLMPROF_LET(const Trial at_longest, trials.run(replicas, longest));
      return Load{.replicas = replicas,
                  .predicted = trial.judged,
                  .longest = at_longest.judged,
                  .busy_share = trial.busy_share,
                  .kv_peak_share = trial.kv_peak_share,
                  .output_tokens_per_s = trial.output_tokens_per_s,
                  .steady = trial.steady};
    };
    if (sure) {
      guess_.longest = *sure * out.way.tensor;
      LLMPROF_LET(out.meets, load_of(*sure));
    }
    if (!sure || *predicted < *sure) {
      LLMPROF_LET(out.may, load_of(*predicted));
    }
    return {};
  }

  // Of those that meet the limits; and of those that may, where these are worth their risk.
  void mark_fronts() {
    std::vector<Load*> sure, may;
    std::vector<Objectives> sure_rows, may_rows;
    std::vector<const Configuration*> of_sure, of_may;
    for (Configuration& each : out_.configurations) {
      if (each.meets) {
        sure.push_back(&*each.meets), of_sure.push_back(&each);
        sure_rows.push_back(objectives_of(asked_, each, *each.meets, true));
      }
      if (each.may) {
        may.push_back(&*each.may), of_may.push_back(&each);
        may_rows.push_back(objectives_of(asked_, each, *each.may, false));
      }
    }
    mark(sure, sure_rows, of_sure);
    for (std::size_t i = 0; i < sure.size(); ++i)
      may_rows.push_back(objectives_of(asked_, *of_sure[i], *sure[i], false));
    mark(may, may_rows, of_may);
  }

  // `rows` may be more than `loads`: what these are held against, and better where equal. Of equal rows of one device
  // and type the first, which has the engine's own limits.
  void mark(const std::vector<Load*>& loads, const std::vector<Objectives>& rows,
            const std::vector<const Configuration*>& of) const {
    std::vector<std::size_t> kept;
    for (const std::size_t i : pareto_front(rows)) {
      if (i >= loads.size()) continue;
      const auto alike = [&](std::size_t other) {
        return rows[other] == rows[i] && of[other]->way.device == of[i]->way.device && of[other]->dtype == of[i]->dtype;
      };
      const auto rest = std::span(rows).subspan(loads.size());
      if (std::ranges::find(rest, rows[i]) != rest.end() || std::ranges::any_of(kept, alike)) continue;
      kept.push_back(i);
      loads[i]->front = true;
    }
  }

  Result<void> find_highest_rates() {
    if (!asked_.stretch || asked_.rate <= 0) return {};
    std::vector<std::pair<Configuration*, Load*>> front;
    for (Configuration& each : out_.configurations) {
      if (each.meets && each.meets->front) front.emplace_back(&each, &*each.meets);
      if (each.may && each.may->front) front.emplace_back(&each, &*each.may);
    }
    for (std::size_t i = 0; i < front.size(); ++i) {
      LLMPROF_TRY(report("highest rates", i, front.size()));
      const auto configuration = front[i].first;
      const auto load = front[i].second;  // clang 14 captures no structured binding
      LLMPROF_LET(group_, make_group(asked_, configuration->way));
      Result<void> fits;
      LLMPROF_LET(const ServingForecast settled_rules, settled(group_, configuration->way, fits));
      Trials trials(asked_, group_, settled_rules, out_.simulations);
      const bool sure = configuration->meets && load == &*configuration->meets;
      const double factor = sure ? configuration->error.most : 1;
      double least_failed = kMostRateFactor + 1;
      bool too_short = true;  // rather than too slow: why the least rate that failed did
      const auto kept = [&](double more) -> Result<bool> {
        LLMPROF_LET(const Trial trial, trials.run(load->replicas, factor, more));
        const bool is_kept = trial.judged.kept();
        if ((!is_kept || !trial.steady) && more < least_failed) least_failed = more, too_short = is_kept;
        return is_kept && trial.steady;
      };
      LLMPROF_LET(const double times, highest_load(kMostRateFactor, kRateTolerance, kept));
      load->rate_may_be_higher = too_short;
      load->highest_rate = asked_.rate * times;
    }
    return {};
  }

  const Asked& asked_;
  const base::Progress& progress_;
  Group group_;
  Guess guess_;
  Plan out_;
};

}  // namespace

Result<Plan> make_plan(const Asked& asked, const base::Progress& progress) { return Planner(asked, progress).run(); }

}  // namespace llmprof::predict::plan
