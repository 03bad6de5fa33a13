#include "predict/forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "predict/measured/calibration.h"

namespace llmprof::predict {
namespace {

using serving::EngineRules;
using serving::Simulation;

// Of a step whose operators all have measured times: what composing them leaves out (gaps between kernels, the host,
// clocks). The statistics of the one known back-test of a serving were at most 1.4 % off.
constexpr double kComposition = 0.02;
// The roof is the least time; an engine in the known back-test took 1.2 to 1.3 times as long, unfused programs of
// PyTorch four times. An assumption about engines, which only tables can replace.
constexpr double kRoofMost = 1.0;
constexpr double kAssumedLeast = 0.5, kAssumedMost = 1.0;

bool has_experts(const model::Config& config) {
  return std::ranges::any_of(config.kinds, [](const model::LayerKind& kind) { return kind.mlp.experts > 0; });
}

// Every figure that has an interval.
constexpr serving::Distribution serving::Metrics::*kDistributions[] = {
    &serving::Metrics::ttft_ns, &serving::Metrics::tpot_ns, &serving::Metrics::itl_ns, &serving::Metrics::e2e_ns,
    &serving::Metrics::queue_ns};
constexpr double serving::Distribution::*kStatistics[] = {&serving::Distribution::mean, &serving::Distribution::p50,
                                                          &serving::Distribution::p90,  &serving::Distribution::p95,
                                                          &serving::Distribution::p99,  &serving::Distribution::max};

void widen(const serving::Metrics& by, ServingForecast& out) {
  const auto take = [](double value, double& low, double& high) {
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const auto distribution : kDistributions) {
    for (const auto statistic : kStatistics)
      take((by.*distribution).*statistic, (out.low.*distribution).*statistic, (out.high.*distribution).*statistic);
  }
  take(by.output_tokens_per_s, out.low.output_tokens_per_s, out.high.output_tokens_per_s);
}

// Longer steps may shorten a latency, and fewer blocks another: all ends are tried.
Result<void> add_interval(const ServingInput& input, TableStepCost& cost, ServingForecast& out) {
  serving::SimulateOptions options = simulate_options(input);
  options.most_step_records = 0;
  for (const double factor : {out.error.least, out.error.most}) {
    for (const double blocks : {1 - kBlocksUncertain, 1 + kBlocksUncertain}) {
      EngineRules rules = out.rules;
      if (!out.blocks_derived && blocks > 1) continue;
      if (out.blocks_derived)
        rules.num_gpu_blocks = static_cast<std::int64_t>(static_cast<double>(rules.num_gpu_blocks) * blocks);
      ScaledCost scaled(cost, factor);
      LLMPROF_LET(const Simulation simulation, serving::simulate(rules, input.workload, scaled, options));
      widen(serving::metrics_of(simulation, input.slo, input.replicas, input.since), out);
    }
  }
  return {};
}

// Records of steps may be thinned out: each stands for as many as were left out.
CalibratedLoad load_of(const Simulation& simulation) {
  CalibratedLoad load{.steps = static_cast<double>(simulation.step_count)};
  for (const serving::StepRecord& step : simulation.steps) {
    load.device_ns += step.device_ns, load.host_ns += step.host_ns;
    load.requests += step.chunks + step.decodes;
  }
  const auto stride = static_cast<double>(simulation.step_stride);
  load.device_ns *= stride, load.host_ns *= stride, load.requests *= stride;
  load.new_requests = static_cast<double>(simulation.requests.size());
  return load;
}

}  // namespace

Result<void> settle_blocks(const ServingInput& input, ServingForecast& out) {
  EngineSizes sizes{.max_batched_tokens = out.rules.max_num_batched_tokens, .max_requests = out.rules.max_num_seqs};
  if (sizes.max_batched_tokens == 0) sizes.max_batched_tokens = std::max<std::int64_t>(1, out.rules.max_model_len);
  LLMPROF_LET(out.memory, memory_needs(input.config, input.parallel, sizes));
  if (out.rules.num_gpu_blocks > 0) return {};
  const auto device_bytes = static_cast<double>(input.device.device.memory_bytes);
  if (device_bytes <= 0) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("the memory of {} is not known, so neither is the number of KV blocks", input.device.device.name),
        "give it with --set num_gpu_blocks=N (vLLM logs \"GPU KV cache size\"), or --device-memory SIZE"};
  }
  LLMPROF_LET(out.rules.num_gpu_blocks,
              serving::kv_blocks(out.rules, {.device_bytes = device_bytes,
                                             .weight_bytes = out.memory.weights_bytes,
                                             .activation_bytes = out.memory.activation_bytes + out.memory.outside_bytes,
                                             .graph_bytes = out.memory.graph_bytes,
                                             .kv_bytes_per_token = out.memory.kv_bytes_per_token}));
  out.blocks_derived = true;
  out.notes.push_back(fmt::format(
      "{} KV blocks of {} tokens follow from the engine's rule ({} of {}, less weights {}, activations {} and "
      "what libraries take); the engine's own count is better (--set num_gpu_blocks=N)",
      out.rules.num_gpu_blocks, out.rules.block_size, base::human_percent(out.rules.gpu_memory_utilization),
      base::human_bytes(device_bytes), base::human_bytes(out.memory.weights_bytes),
      base::human_bytes(out.memory.activation_bytes)));
  return {};
}

serving::SimulateOptions simulate_options(const ServingInput& input) {
  serving::SimulateOptions options;
  options.replicas = input.replicas;
  // Replicas of a mixture of experts exchange tokens in every layer: none is ahead of the others.
  options.lockstep = input.replicas > 1 && has_experts(input.config);
  return options;
}

StepError step_error(const std::vector<OperatorError>& operators, const BasisTimes& stands_on) {
  double between = 0, beyond = 0, between_rows = 0, beyond_rows = 0;
  for (const OperatorError& row : operators) {
    const auto points = static_cast<double>(row.points);
    (row.beyond ? beyond : between) += points * row.median;
    (row.beyond ? beyond_rows : between_rows) += points;
  }
  if (between_rows > 0) between /= between_rows;
  if (beyond_rows > 0) beyond /= beyond_rows;
  const double inside = stands_on.share(Basis::kInterpolated) * between,
               outside = stands_on.share(Basis::kExtrapolated) * beyond, roof = stands_on.share(Basis::kRoof),
               assumed = stands_on.share(Basis::kAssumed);
  StepError out;
  const double tables = (1 - roof - assumed) * kComposition + inside + outside;
  out.least = 1 - tables - assumed * kAssumedLeast;
  out.most = 1 + tables + roof * kRoofMost + assumed * kAssumedMost;
  out.why =
      roof + assumed < 0.9995 ? fmt::format("composing measured operators ±{}", base::human_percent(kComposition)) : "";
  if (inside > 0) {
    out.why += fmt::format(", interpolation ±{} (left-out points were off by {} at the median)",
                           base::human_percent(inside), base::human_percent(between));
  }
  if (outside > 0) out.why += fmt::format(", extrapolation ±{}", base::human_percent(outside));
  if (roof > 0.001) {
    out.why += fmt::format(
        "{}{} of the time is the roof, which kernels of an engine may take up to twice as long as (assumed; unfused "
        "programs take longer)",
        out.why.empty() ? "" : ", ", base::human_percent(roof));
  }
  if (assumed > 0.001) {
    out.why += fmt::format("{}{} of the time is stated costs of links and launches, half to twice of which it may be",
                           out.why.empty() ? "" : ", ", base::human_percent(assumed));
  }
  return out;
}

Result<std::unique_ptr<TableStepCost>> step_cost_of(const ServingInput& input) {
  return TableStepCost::make(
      {.config = input.config,
       .parallel = input.parallel,
       .tables = input.tables,
       .roof = roof_for(input.config, input.device.peaks, input.device.device.name, input.device.device.cache_bytes),
       .link = default_link(input.device.spec),
       .host = input.host,
       .device_factor = input.device_factor,
       .attention = input.attention});
}

Result<ServingForecast> forecast_serving(const ServingInput& input) {
  ServingForecast out;
  out.rules = input.rules;
  out.notes = input.notes;
  LLMPROF_TRY(settle_blocks(input, out));
  LLMPROF_TRY(serving::check_rules(out.rules));
  LLMPROF_LET(const std::unique_ptr<TableStepCost> cost, step_cost_of(input));
  LLMPROF_LET(out.simulation, serving::simulate(out.rules, input.workload, *cost, simulate_options(input)));
  out.metrics = serving::metrics_of(out.simulation, input.slo, input.replicas, input.since);
  out.stands_on = cost->stands_on();
  out.operator_errors = backtest_operators(*cost);
  out.error = step_error(out.operator_errors, out.stands_on);
  if (input.calibration) widen(out.error, *input.calibration, load_of(out.simulation));
  out.low = out.high = out.metrics;
  LLMPROF_TRY(add_interval(input, *cost, out));
  if (!input.other_tables.empty()) {
    ServingInput other = input;
    other.tables = input.other_tables;
    LLMPROF_LET(const std::unique_ptr<TableStepCost> other_cost, step_cost_of(other));
    LLMPROF_TRY(add_interval(other, *other_cost, out));
  }
  out.notes.insert(out.notes.end(), cost->notes().begin(), cost->notes().end());
  for (std::size_t i = 1; i < out.simulation.rejected.size(); ++i) {
    if (out.simulation.rejected[i] == 0) continue;
    out.notes.push_back(fmt::format("{} requests were refused: {}", out.simulation.rejected[i],
                                    serving::reason_text(static_cast<serving::Rejection>(i))));
  }
  const bool calibrated = input.calibration && input.calibration->per_step_ns.determined;
  if (input.host.per_step_ns == 0 && input.host.per_request_ns == 0 && !calibrated)
    out.notes.emplace_back("time of the host is not known and counts as hidden: a busy or slow CPU makes steps longer");
  return out;
}

}  // namespace llmprof::predict
