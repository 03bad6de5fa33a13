#include "predict/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/human.h"

namespace llmprof::predict {
namespace {

using serving::Compared;
using serving::ComparedMetric;
using serving::Distribution;
using serving::Metrics;

struct Latency {
  std::string_view metric, label;
  Distribution Metrics::*of;
};
constexpr Latency kLatencies[] = {{"ttft", "TTFT", &Metrics::ttft_ns},
                                  {"tpot", "TPOT", &Metrics::tpot_ns},
                                  {"itl", "ITL", &Metrics::itl_ns},
                                  {"e2e", "E2E", &Metrics::e2e_ns},
                                  {"queue", "queue", &Metrics::queue_ns}};

std::vector<LatencyRow> latency_rows(const ServingForecast& forecast) {
  std::vector<LatencyRow> rows;
  for (const Latency& each : kLatencies) {
    const Distribution &own = forecast.metrics.*each.of, &low = forecast.low.*each.of, &high = forecast.high.*each.of;
    if (own.count == 0) continue;
    rows.push_back({each.metric, each.label, own.mean, own.p50, own.p90, own.p95, own.p99, own.max, low.mean, high.mean,
                    low.p99, high.p99, fmt::format("{} … {}", base::human_ns(low.mean), base::human_ns(high.mean))});
  }
  return rows;
}

ThroughputRow throughput_of(const ServingForecast& forecast) {
  const Metrics& m = forecast.metrics;
  const double low = forecast.low.output_tokens_per_s, high = forecast.high.output_tokens_per_s;
  return {m.completed,          m.rejected, m.duration_ns, m.requests_per_s, m.output_tokens_per_s,
          m.total_tokens_per_s, low,        high,          m.goodput_per_s,  m.good_share};
}

LoadRow load_of(const ServingForecast& forecast) {
  const Metrics& m = forecast.metrics;
  const serving::Simulation& s = forecast.simulation;
  return {s.step_count,         s.graph_steps,  s.piecewise_steps, s.eager_steps,   m.preemptions,
          m.preempted_requests, m.cached_share, m.kv_peak_share,   m.kv_mean_share, m.device_busy_share};
}

std::vector<CourseRow> course_of(const serving::Simulation& simulation) {
  constexpr std::size_t kParts = 60;
  struct Sum {
    double steps = 0, ns = 0, decodes = 0, prompt = 0, waiting = 0, blocks = 0;
    std::int64_t preempted = 0;
  };
  const double length = simulation.end_ns - simulation.begin_ns;
  if (!(length > 0)) return {};
  std::vector<Sum> sums(kParts);
  for (const serving::StepRecord& step : simulation.steps) {
    const double part = (step.begin_ns - simulation.begin_ns) / length * static_cast<double>(kParts);
    Sum& sum = sums[static_cast<std::size_t>(std::clamp(part, 0.0, static_cast<double>(kParts - 1)))];
    sum.steps += 1, sum.ns += step.device_ns, sum.decodes += step.decodes;
    sum.prompt += step.tokens - step.decodes, sum.waiting += step.waiting;
    sum.blocks += static_cast<double>(step.blocks_used), sum.preempted += step.preempted;
  }
  std::vector<CourseRow> rows;
  const auto usable = static_cast<double>(std::max<std::int64_t>(1, simulation.blocks_usable));
  for (std::size_t i = 0; i < kParts; ++i) {
    const Sum& sum = sums[i];
    const auto mean = [&](double value) {
      return sum.steps > 0 ? std::optional(value / sum.steps) : std::optional<double>();
    };
    rows.push_back({length * static_cast<double>(i) / static_cast<double>(kParts),
                    sum.steps * static_cast<double>(simulation.step_stride), mean(sum.ns), mean(sum.decodes),
                    mean(sum.prompt), mean(sum.waiting), mean(sum.blocks / usable), sum.preempted});
  }
  return rows;
}

// Whether a measured statistic lies in the stated interval; unknown where none is stated.
std::optional<bool> inside(const ServingForecast& forecast, std::string_view metric, double Distribution::*statistic,
                           double measured) {
  for (const Latency& each : kLatencies) {
    if (each.metric != metric) continue;
    return measured >= (forecast.low.*each.of).*statistic && measured <= (forecast.high.*each.of).*statistic;
  }
  return std::nullopt;
}

std::vector<ComparisonRow> comparison_rows(const ServingForecast& forecast, const serving::Comparison& all) {
  std::vector<ComparisonRow> rows;
  const auto add = [&](std::string_view metric, std::string_view label, std::string_view statistic,
                       double Distribution::*member, const Compared& one, std::optional<double> mape) {
    rows.push_back({metric, statistic, fmt::format("{} {}", label, statistic), one.measured, one.predicted,
                    one.error_percent() / 100, inside(forecast, metric, member, one.measured), mape});
  };
  struct Pair {
    std::string_view metric, label;
    const ComparedMetric& compared;
  };
  for (const auto& [metric, label, compared] : {Pair{"ttft", "TTFT", all.ttft_ns}, Pair{"tpot", "TPOT", all.tpot_ns},
                                                Pair{"e2e", "E2E", all.e2e_ns}, Pair{"queue", "queue", all.queue_ns}}) {
    std::optional<double> mape = compared.mape_percent;
    if (mape) *mape /= 100;
    add(metric, label, "mean", &Distribution::mean, compared.mean, mape);
    add(metric, label, "p50", &Distribution::p50, compared.p50, std::nullopt);
    add(metric, label, "p99", &Distribution::p99, compared.p99, std::nullopt);
  }
  rows.push_back({"duration", "", "duration", all.duration_ns.measured, all.duration_ns.predicted,
                  all.duration_ns.error_percent() / 100, std::nullopt, std::nullopt});
  return rows;
}

}  // namespace

BacktestRow row_of(const ServingBacktest& backtest) {
  const serving::Comparison& c = backtest.comparison;
  BacktestRow row{.name = backtest.name,
                  .basis = backtest.with_tables ? "from operator tables" : "from the roof alone",
                  .requests = c.requests,
                  .covered = backtest.covered,
                  .stated = backtest.stated};
  const auto error = [&](const Compared& one, double& into) {
    into = one.error_percent() / 100;
    if (std::fabs(into) > std::fabs(row.worst_error)) row.worst_error = into;
  };
  error(c.ttft_ns.mean, row.ttft_mean_error), error(c.ttft_ns.p50, row.ttft_p50_error);
  error(c.ttft_ns.p99, row.ttft_p99_error), error(c.tpot_ns.mean, row.tpot_mean_error);
  error(c.tpot_ns.p50, row.tpot_p50_error), error(c.tpot_ns.p99, row.tpot_p99_error);
  error(c.e2e_ns.mean, row.e2e_mean_error), error(c.e2e_ns.p50, row.e2e_p50_error);
  error(c.e2e_ns.p99, row.e2e_p99_error);
  return row;
}

std::vector<OperatorRow> operator_rows(const ServingBacktest& backtest) {
  std::vector<OperatorRow> rows;
  for (const OperatorError& each : backtest.operators) {
    rows.push_back({backtest.name, each.op, each.axis, each.beyond ? "beyond" : "between", each.points, each.median,
                    each.p90, each.bias});
  }
  return rows;
}

ServingDocument document_of(const ServingInput& input, const ServingForecast& forecast, const ServingBacktest* measured,
                            const ServingBacktest* nearest) {
  const serving::EngineRules& rules = forecast.rules;
  const auto share = [&](Basis basis) { return forecast.stands_on.share(basis); };
  ServingDocument out;
  out.model = input.config.name, out.device = input.device.device.name;
  out.engine = rules.version.empty() ? rules.engine : rules.engine + " " + rules.version;
  out.workload = input.workload.description;
  out.split = {input.parallel.tensor, input.parallel.expert, input.replicas, input.parallel.ranks() * input.replicas};
  for (const serving::RuleSource& each : rules.sources) out.rules.push_back({each.key, each.value, each.source});
  out.memory = {forecast.memory.weights_bytes,
                forecast.memory.activation_bytes,
                forecast.memory.kv_bytes_per_token,
                rules.num_gpu_blocks,
                rules.block_size,
                forecast.blocks_derived ? "rule" : "given"};
  out.stands_on = {share(Basis::kMeasured), share(Basis::kInterpolated), share(Basis::kExtrapolated),
                   share(Basis::kRoof),     share(Basis::kAssumed),      forecast.stands_on.total()};
  out.step_error = forecast.error;
  out.latency = latency_rows(forecast);
  out.throughput = throughput_of(forecast), out.load = load_of(forecast);
  out.steps = course_of(forecast.simulation);
  if (measured != nullptr) {
    out.comparison = comparison_rows(forecast, measured->comparison);
    out.comparison_requests = measured->comparison.requests;
  }
  if (nearest != nullptr) out.backtest = row_of(*nearest);
  out.notes = forecast.notes;
  return out;
}

}  // namespace llmprof::predict
