#pragma once
// What `llmprof predict` says, as rows by the names that its JSON has (libs/analyze/tables/predict.md describes each).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/backtests.h"
#include "predict/measured/calibration.h"
#include "predict/run/predict_steps.h"
#include "predict/step_backtests.h"

namespace llmprof::predict {

struct SplitRow {
  std::int64_t tensor = 1, expert = 1, replicas = 1, devices = 1;
};

struct MemoryRow {
  double weights_bytes = 0, activation_bytes = 0, kv_bytes_per_token = 0;
  std::int64_t kv_blocks = 0, block_tokens = 0;
  std::string blocks_source;  // "given", "rule"
};

struct RuleRow {
  std::string rule, value, source;
};

struct StandsOnRow {
  double measured = 0, interpolated = 0, extrapolated = 0, roof = 0, assumed = 0;  // shares
  double device_ns = 0;
};

struct LatencyRow {
  std::string_view metric, label;
  double mean_ns = 0, p50_ns = 0, p90_ns = 0, p95_ns = 0, p99_ns = 0, max_ns = 0;
  double mean_low_ns = 0, mean_high_ns = 0, p99_low_ns = 0, p99_high_ns = 0;
  std::string interval;
};

struct ThroughputRow {
  std::int64_t completed = 0, rejected = 0;
  double duration_ns = 0;
  double requests_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  double output_tokens_per_s_low = 0, output_tokens_per_s_high = 0;
  std::optional<double> goodput_per_s, good_share;
};

struct LoadRow {
  std::int64_t steps = 0, graph_steps = 0, piecewise_steps = 0, eager_steps = 0;
  std::int64_t preemptions = 0, preempted_requests = 0;
  double cached_share = 0, kv_peak_share = 0, kv_mean_share = 0, device_busy_share = 0;
};

// A part of the duration.
struct CourseRow {
  double begin_ns = 0;
  double steps = 0;
  std::optional<double> step_ns, decodes, prompt_tokens, waiting, kv_share;  // means over its steps
  std::int64_t preempted = 0;
};

struct ComparisonRow {
  std::string_view metric, statistic;
  std::string label;
  double measured_ns = 0, predicted_ns = 0, error = 0;
  std::optional<bool> inside;
  std::optional<double> mape;
};

struct BacktestRow {
  std::string name;
  std::string_view basis;
  std::int64_t requests = 0;
  double ttft_mean_error = 0, ttft_p50_error = 0, ttft_p99_error = 0;
  double tpot_mean_error = 0, tpot_p50_error = 0, tpot_p99_error = 0;
  double e2e_mean_error = 0, e2e_p50_error = 0, e2e_p99_error = 0;
  double worst_error = 0;
  std::int64_t covered = 0, stated = 0;
};
BacktestRow row_of(const ServingBacktest& backtest);

struct OperatorRow {
  std::string backtest, op, axis;
  std::string_view where;  // "between", "beyond"
  std::int64_t points = 0;
  double median = 0, p90 = 0, bias = 0;
};
std::vector<OperatorRow> operator_rows(const ServingBacktest& backtest);

// Steps of one stage of a step back-test, all its sizes together.
struct StepBacktestRow {
  std::string name, basis, stage;
  std::int64_t sizes = 0, steps = 0;
  double median_error = 0, worst_error = 0;  // the median of absolute values; the worst with its sign
  std::int64_t covered = 0;
};

struct StepCheckRow {
  std::string backtest, stage;
  std::int64_t batch = 1;
  double tokens = 1, context = 1;
  std::string_view launch;
  std::int64_t steps = 0;
  double measured_ns = 0, measured_low_ns = 0, measured_high_ns = 0;
  double predicted_ns = 0, low_ns = 0, high_ns = 0, error = 0;
  bool inside = false;
  std::string from;
};

// How often stated intervals held.
struct CoverageRow {
  std::string of;
  std::int64_t stated = 0, covered = 0;
  std::optional<double> share;
};

struct BacktestDocument {
  std::vector<BacktestRow> servings;
  std::vector<StepBacktestRow> steps;
  std::vector<StepCheckRow> step_checks;
  std::vector<OperatorRow> operators;
  std::vector<CoverageRow> coverage;
  std::vector<std::string> notes;  // what could not be predicted, and why
  std::string saved;               // where it was written to
};
BacktestDocument document_of(const std::vector<ServingBacktest>& servings, const std::vector<StepBacktest>& steps);

struct ServingDocument {
  std::string model, device, engine, workload;
  SplitRow split;
  std::vector<RuleRow> rules;
  MemoryRow memory;
  StandsOnRow stands_on;
  StepError step_error;
  std::vector<LatencyRow> latency;
  ThroughputRow throughput;
  LoadRow load;
  std::vector<CourseRow> steps;
  std::vector<ComparisonRow> comparison;
  std::optional<std::int64_t> comparison_requests;
  std::optional<BacktestRow> backtest;
  std::vector<std::string> notes;
  std::string run;  // that was written; "" none
};

// `measured`: this prediction against a real run; `nearest`: the back-test most like it. Both may be nullptr.
ServingDocument document_of(const ServingInput& input, const ServingForecast& forecast, const ServingBacktest* measured,
                            const ServingBacktest* nearest);

// ---- calibration

struct TermRow {
  std::string term;
  double value = 0, low = 0, high = 0;
  std::string shown, interval;  // with its unit
  bool determined = false;
  std::string why;
};

struct CalibrationDocument {
  std::string run, device, model, tables;
  std::int64_t steps = 0, left_out = 0, unknown_steps = 0;
  double median_error = 0;
  bool async = false;
  std::vector<TermRow> terms;
  std::string kept;
};
CalibrationDocument document_of(const Calibration& calibration, const ServingInput& input);

// ---- steps

struct StageRow {
  std::string stage;
  std::int64_t steps = 0;
  double step_ns = 0, device_ns = 0, host_ns = 0;
  std::optional<double> floor_ns, of_floor;
  std::string bound;
  double flops = 0, bytes = 0;
  double measured = 0, interpolated = 0, roof = 0, assumed = 0;  // shares
};

struct OpRow {
  std::string stage, op;
  std::int64_t calls = 0;
  double ns = 0, share = 0;
  std::optional<double> floor_ns, of_floor;
  std::string_view basis;
  std::string source;
};

struct VariantRow {
  std::string stage, name;
  std::int64_t kernels = 0;
  std::optional<double> ns;
  std::string meaning, why;
};

struct NeedsRow {
  double weights_bytes = 0, kv_bytes = 0, activation_bytes = 0, total_bytes = 0;
  std::optional<double> device_bytes;
  bool fits = true;
};

// Of one stage.
struct EnergyRow {
  std::string stage;
  double watts = 0;
  bool bound = false;
  std::string source;
  double joules = 0, joules_per_token = 0;
};

// The measured step that is most like a predicted one, and the rest of its back-test.
struct NearestStepRow {
  std::string stage, name, basis;
  StepCheckRow step;
  std::int64_t sizes = 0, covered = 0;
  double median_error = 0, worst_error = 0;
};

struct StepsDocument {
  std::string model, device;
  std::int64_t batch = 1, prompt = 0, context = 0;
  std::optional<double> ttft_ns, tpot_ns, tpot_first_ns, tpot_last_ns, tokens_per_s, total_ns;
  StepError step_error;
  std::vector<StageRow> stages;
  std::vector<OpRow> operators;
  std::vector<VariantRow> variants;
  NeedsRow needs;
  std::vector<EnergyRow> energy;
  std::vector<NearestStepRow> backtest;  // a row per stage
  std::vector<std::string> notes;
  std::string run;
};
StepsDocument document_of(const StepsInput& input, const StepsPrediction& prediction, const TableStepCost& cost);
// For each stage of a prediction, of all back-tests of steps.
std::vector<NearestStepRow> nearest_rows(const StepsInput& input, const StepsPrediction& prediction,
                                         const model::Config& config, const std::vector<StepBacktest>& known);

}  // namespace llmprof::predict
