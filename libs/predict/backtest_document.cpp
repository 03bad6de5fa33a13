#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/human.h"
#include "model/model.h"
#include "predict/document.h"

namespace llmprof::predict {
namespace {

StepCheckRow row_of(const StepBacktest& backtest, const StepCheck& check) {
  const MeasuredSteps& m = check.measured;
  return {backtest.name, m.stage,       m.batch,        m.tokens,  m.context,          m.graph ? "graph" : "eager",
          m.steps,       m.ns,          m.low_ns,       m.high_ns, check.predicted_ns, check.low_ns,
          check.high_ns, check.error(), check.inside(), m.from};
}

// Of the checks of one stage.
StepBacktestRow summary_of(const StepBacktest& backtest, const std::string& stage) {
  StepBacktestRow row{.name = backtest.name, .basis = backtest.basis, .stage = stage};
  std::vector<double> errors;
  for (const StepCheck& check : backtest.checks) {
    if (check.measured.stage != stage) continue;
    ++row.sizes, row.steps += check.measured.steps, row.covered += check.inside() ? 1 : 0;
    errors.push_back(std::abs(check.error()));
    if (std::abs(check.error()) > std::abs(row.worst_error)) row.worst_error = check.error();
  }
  if (errors.empty()) return row;
  std::ranges::sort(errors);
  const std::size_t half = errors.size() / 2;
  row.median_error = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  return row;
}

void add_coverage(std::string of, std::int64_t stated, std::int64_t covered, std::vector<CoverageRow>& rows) {
  if (stated == 0) return;
  rows.push_back({std::move(of), stated, covered, static_cast<double>(covered) / static_cast<double>(stated)});
}

std::vector<CoverageRow> coverage_of(const std::vector<ServingBacktest>& servings,
                                     const std::vector<StepBacktest>& steps) {
  struct Sum {
    std::int64_t stated = 0, covered = 0;
  };
  Sum tables, roof, all;
  for (const ServingBacktest& each : servings) {
    Sum& sum = each.with_tables ? tables : roof;
    sum.stated += each.stated, sum.covered += each.covered;
  }
  std::map<std::string, Sum> of_steps;
  for (const StepBacktest& each : steps) {
    Sum& sum = of_steps[each.basis];
    sum.stated += static_cast<std::int64_t>(each.checks.size()), sum.covered += each.covered();
  }
  std::vector<CoverageRow> rows;
  add_coverage("servings, from operator tables", tables.stated, tables.covered, rows);
  add_coverage("servings, from the roof alone", roof.stated, roof.covered, rows);
  all = {tables.stated + roof.stated, tables.covered + roof.covered};
  for (const auto& [basis, sum] : of_steps) {
    add_coverage("steps, from " + basis, sum.stated, sum.covered, rows);
    all.stated += sum.stated, all.covered += sum.covered;
  }
  if (rows.size() > 1) add_coverage("all", all.stated, all.covered, rows);
  return rows;
}

}  // namespace

BacktestDocument document_of(const std::vector<ServingBacktest>& servings, const std::vector<StepBacktest>& steps) {
  BacktestDocument out;
  for (const ServingBacktest& each : servings) {
    out.servings.push_back(row_of(each));
    for (OperatorRow& row : operator_rows(each)) out.operators.push_back(std::move(row));
  }
  for (const StepBacktest& each : steps) {
    for (const char* stage : {"prefill", "decode"}) {
      if (const StepBacktestRow row = summary_of(each, stage); row.sizes > 0) out.steps.push_back(row);
    }
    for (const StepCheck& check : each.checks) out.step_checks.push_back(row_of(each, check));
    out.notes.insert(out.notes.end(), each.notes.begin(), each.notes.end());
  }
  out.coverage = coverage_of(servings, steps);
  return out;
}

std::vector<NearestStepRow> nearest_rows(const StepsInput& input, const StepsPrediction& prediction,
                                         const model::Config& config, const std::vector<StepBacktest>& known) {
  std::vector<NearestStepRow> rows;
  if (known.empty()) return rows;
  const auto parameters = static_cast<double>(model::parameters(model::Graph(config)));
  for (const StageTimes& stage : prediction.stages) {
    const bool decode = stage.stage == "decode";
    const std::int64_t context = input.context > 0 ? input.context : input.prompt + 1,
                       prompts = input.batch * input.prompt;
    const PredictedStage of{.stage = stage.stage,
                            .device = input.device.name,
                            .program = input.program != nullptr,
                            .graph = decode && input.launch == Launch::kGraph,
                            .parameters = parameters,
                            .size = decode ? StepSize{input.batch, input.batch, input.batch * context}
                                           : StepSize{input.batch, prompts, prompts}};
    const NearestStep found = nearest(known, of);
    if (found.backtest == nullptr) continue;
    const StepBacktestRow all = summary_of(*found.backtest, stage.stage);
    rows.push_back({stage.stage, all.name, all.basis, row_of(*found.backtest, *found.check), all.sizes, all.covered,
                    all.median_error, all.worst_error});
  }
  return rows;
}

CalibrationDocument document_of(const Calibration& calibration, const ServingInput& input) {
  CalibrationDocument out{.run = calibration.run,
                          .device = input.device.device.name,
                          .model = input.config.family,
                          .tables = calibration.tables,
                          .steps = calibration.steps,
                          .left_out = calibration.left_out,
                          .median_error = calibration.median_error,
                          .async = calibration.async};
  for (const Term* term : calibration.terms()) {
    const auto words = [&](double value) {
      return term == &calibration.device_factor ? fmt::format("{:.3f}", value) : base::human_ns(value);
    };
    TermRow row{.term = term->name, .value = term->value, .low = term->low, .high = term->high};
    row.determined = term->determined, row.why = term->why;
    row.shown = term->determined ? words(term->value) : "not determined";
    if (term->determined) row.interval = fmt::format("{} … {}", words(term->low), words(term->high));
    out.terms.push_back(std::move(row));
  }
  return out;
}

}  // namespace llmprof::predict
