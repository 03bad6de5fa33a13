#include "analyze/sections/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/counters/evidence.h"
#include "analyze/counters/readings.h"
#include "analyze/counters/sampled.h"
#include "analyze/counters/stages.h"
#include "analyze/counters/stalls.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts/subjects.h"
#include "base/human.h"
#include "hw/counters/catalog.h"

namespace llmprof::analyze {
namespace {

constexpr std::size_t kKernels = 12;  // whose occupancy is told though it was not counted

// "sm_90" -> "GH100"; what it is not said for stays as it is.
std::string chip_name(const std::string& chip) {
  if (!chip.starts_with("sm_") || chip.size() < 5) return chip;
  const std::string digits = chip.substr(3, chip.find_first_not_of("0123456789", 3) - 3);
  const hw::counters::Chip* found =
      hw::counters::chip_of_capability(digits.substr(0, digits.size() - 1) + "." + digits.substr(digits.size() - 1));
  return found == nullptr ? chip : found->name;
}

Result<void> fill_totals(const trace::Run& run, Counters& counters) {
  LLMPROF_LET(const trace::ResultTable table, run.query(R"(
SELECT scope, coalesce(method, '') AS method, count(*) AS windows, sum(cost_ns)::BIGINT AS cost_ns,
  median(end_ns - begin_ns)::DOUBLE AS length_ns
FROM counter_window GROUP BY ALL ORDER BY scope, method)"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const bool sample = row.text("scope") == "sample";
    (sample ? counters.samples : counters.windows) += row.integer("windows");
    counters.cost_ns += row.integer("cost_ns");
    if (sample) counters.period_ns = row.real("length_ns");
    const std::string method = row.text("method");
    if (counters.method.find(method) == counters.method.npos)
      counters.method += (counters.method.empty() ? "" : ", ") + method;
  }
  return {};
}

// Timings are those of the steps that were not measured, where there are any.
void note_measured_steps(Summary& summary) {
  for (const Stage& stage : summary.stages) {
    if (stage.measured_steps == 0) continue;
    const bool all = stage.measured_steps == stage.steps;
    summary.counters.notes.push_back(fmt::format(
        "{}: {} of {} steps were measured, and take longer for it: {}", stage.name, stage.measured_steps, stage.steps,
        all ? "its times are theirs, as there are no others" : "percentiles of its steps and TPOT are without them"));
  }
}

Result<void> note_untimed(const trace::Run& run, Counters& counters) {
  LLMPROF_LET(const trace::ResultTable table, run.query(R"(
SELECT count(*) AS launches, count(time_ns) AS timed FROM counted_kernel WHERE kernel_id IS NULL)"));
  const RowView row{table, 0};
  const std::int64_t launches = row.integer("launches"), untimed = launches - row.integer("timed");
  if (launches == 0) return {};
  std::string note = fmt::format(
      "CUPTI gave no times of {} launches that counters were read of; it does not of kernels that --replay executes "
      "again. They are in no stage and no sum of GPU time",
      launches);
  if (untimed < launches)
    note += fmt::format("; the times of {} in the table of counters are the counter gpu__time_duration",
                        untimed == 0 ? "all" : std::to_string(launches - untimed));
  if (untimed > 0)
    note += fmt::format("; times of {} launches are unknown: ask for gpu_time_ns beside what is counted", untimed);
  counters.notes.push_back(std::move(note));
  return {};
}

// Of the kernels that took most time and of every kernel that was counted.
Result<void> fill_occupancy(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const std::vector<LaunchShape> shapes, launch_shapes(run));
  std::size_t listed = 0;
  for (const LaunchShape& shape : shapes) {
    const auto counted = std::ranges::find(summary.imported.counted, shape.kernel, &CountedKernel::name);
    const bool known = counted != summary.imported.counted.end();
    const std::optional<SmLimits> limits = sm_limits(shape.chip);
    if ((!known && listed >= kKernels) || !limits) continue;
    const Occupancy fits = occupancy_of(shape, *limits);
    summary.counters.occupancy.push_back({.kernel = shape.kernel,
                                          .limiter = fits.limiter,
                                          .theoretical = fits.occupancy,
                                          .achieved = known ? counted->occupancy : std::nullopt});
    ++listed;
  }
  return {};
}

Result<counters::StepCosts> fill_stages(const trace::Run& run, const AnalysisContext& analysis, Summary& summary) {
  using namespace counters;
  LLMPROF_LET(const std::vector<PlacedStep> steps, read_steps(run));
  LLMPROF_LET(const std::vector<Measurement> measurements, read_measurements(run));
  StepCosts costs = fill_measured(measurements, steps, analysis, summary);
  if (summary.counters.samples == 0) return costs;
  LLMPROF_LET(SampleSet samples, read_samples(run, analysis.device_ids.empty() ? 0 : analysis.device_ids.front()));
  LLMPROF_LET(const Timeline timeline, read_timeline(run, samples.device_id));
  align_samples(timeline, samples, summary.counters);
  if (summary.counters.stages.empty()) costs = fill_sampled_stages(samples, steps, analysis, summary);
  fill_unmixed(samples, timeline, analysis.cache_bytes(), summary.counters);
  return costs;
}

}  // namespace

Result<void> fill_counters(const trace::Run& run, const AnalysisContext& analysis, Summary& summary) {
  using namespace counters;
  if (has_rows(run, "stall")) LLMPROF_TRY(fill_stalls(run, summary.counters));
  if (!summary.counters.stalls.empty() && !analysis.devices.empty())
    summary.counters.chip = chip_name(analysis.devices.front().chip);
  if (!has_rows(run, "counter_window")) return {};
  LLMPROF_TRY(fill_totals(run, summary.counters));
  if (!analysis.devices.empty()) summary.counters.chip = chip_name(analysis.devices.front().chip);
  LLMPROF_LET(const StepCosts costs, fill_stages(run, analysis, summary));
  note_measured_steps(summary);
  LLMPROF_TRY(note_untimed(run, summary.counters));
  LLMPROF_TRY(fill_occupancy(run, summary));
  return fill_evidence(run, analysis, costs, summary);
}

}  // namespace llmprof::analyze
