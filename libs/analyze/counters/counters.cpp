#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/counters/readings.h"
#include "analyze/counters/stages.h"
#include "analyze/model/kernel_roofline.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts.h"
#include "analyze/sections/sections.h"
#include "base/human.h"
#include "base/strings.h"
#include "hw/counters/catalog.h"
#include "hw/roof.h"

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

struct WindowTotals {
  std::string scope, method;
  std::int64_t windows = 0, cost_ns = 0;
  double length_ns = 0;
};

Result<void> fill_totals(const trace::Run& run, Counters& counters) {
  LLMPROF_LET(const trace::ResultTable table, run.query(R"(
SELECT scope, coalesce(method, '') AS method, count(*) AS windows, sum(cost_ns)::BIGINT AS cost_ns,
  median(end_ns - begin_ns)::DOUBLE AS length_ns
FROM counter_window GROUP BY ALL ORDER BY scope, method)"));
  LLMPROF_LET(const std::vector<WindowTotals> rows, rows_as<WindowTotals>(table));
  for (const WindowTotals& row : rows) {
    const bool sample = row.scope == "sample";
    (sample ? counters.samples : counters.windows) += row.windows;
    counters.cost_ns += row.cost_ns;
    if (sample) counters.period_ns = row.length_ns;
    if (!base::contains(counters.method, row.method))
      counters.method += (counters.method.empty() ? "" : ", ") + row.method;
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
  const std::int64_t launches = table.rows[0][0].as_int(), untimed = launches - table.rows[0][1].as_int();
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
  LLMPROF_LET(const std::vector<LaunchShape> shapes, ask_rows<LaunchShape>(run, "launch_shapes"));
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

namespace llmprof::analyze::counters {

namespace {

constexpr std::size_t kPlaces = 5;
constexpr const char* kUnknownCode = "<unknown code>";  // as the collector names it

constexpr const char* kReasons = R"(
SELECT coalesce(kernel, '') AS kernel, coalesce(reason, 'unknown') AS reason, sum(samples)::BIGINT AS samples
FROM stall GROUP BY ALL ORDER BY samples DESC, kernel, reason)";

// Per kernel the places with most samples, each with the reason that most of them have.
constexpr const char* kPlacesSql = R"(
WITH by_reason AS (
  SELECT kernel, offset_bytes, coalesce(file, '') AS file, line, coalesce(reason, 'unknown') AS reason,
    sum(samples)::BIGINT AS samples
  FROM stall WHERE kernel IS NOT NULL GROUP BY ALL),
place AS (
  SELECT kernel, offset_bytes, file, line, sum(samples)::BIGINT AS samples, arg_max(reason, samples) AS reason
  FROM by_reason GROUP BY ALL)
SELECT * RENAME (offset_bytes AS pc_offset) FROM place
QUALIFY row_number() OVER (PARTITION BY kernel ORDER BY samples DESC, offset_bytes) <= 5
ORDER BY kernel, samples DESC, offset_bytes)";

struct ReasonRow {
  std::string kernel, reason;
  std::int64_t samples = 0;
};

}  // namespace

Result<void> fill_stalls(const trace::Run& run, Counters& counters) {
  std::map<std::string, KernelStalls> kernels;
  LLMPROF_LET(const trace::ResultTable reasons, run.query(kReasons));
  LLMPROF_LET(const std::vector<ReasonRow> reason_rows, rows_as<ReasonRow>(reasons));
  for (const ReasonRow& row : reason_rows) {
    counters.stall_samples += row.samples;
    if (row.kernel == kUnknownCode || row.kernel.empty()) {
      counters.stall_unknown += row.samples;
      continue;
    }
    KernelStalls& kernel = kernels[row.kernel];
    kernel.samples += row.samples;
    kernel.reasons.push_back({row.reason, static_cast<double>(row.samples)});
  }
  LLMPROF_LET(const trace::ResultTable places, run.query(kPlacesSql));
  LLMPROF_LET(const std::vector<StallPlace> place_rows, rows_as<StallPlace>(places));
  for (const StallPlace& place : place_rows) {
    const auto kernel = kernels.find(place.kernel);
    if (kernel == kernels.end() || kernel->second.places.size() == kPlaces) continue;
    kernel->second.places.push_back(place);
    kernel->second.places.back().share = hw::share(place.samples, kernel->second.samples).value_or(0);
  }
  for (auto& [name, kernel] : kernels) {
    kernel.kernel = name;
    kernel.share = hw::share(kernel.samples, counters.stall_samples).value_or(0);
    for (auto& [reason, samples] : kernel.reasons)
      samples /= static_cast<double>(std::max<std::int64_t>(1, kernel.samples));
    counters.stalls.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(counters.stalls, std::greater{}, &KernelStalls::samples);
  return {};
}

namespace {

std::optional<double> ratio(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *b > 0 ? std::optional(*a / *b) : std::nullopt;
}

}  // namespace

std::vector<hw::Peak> peaks_of(const AnalysisContext& analysis, std::int64_t device_id) {
  std::vector<hw::Peak> peaks;
  for (const PeakRate& peak : analysis.peaks) {
    if (peak.device_id == device_id)
      peaks.push_back({peak.quantity, peak.type, peak.value, "", peak.source, peak.method});
  }
  return peaks;
}

std::optional<double> l1_bytes(const Metrics& metrics) {
  const std::optional<double> asked = value_of("l1_bytes", metrics);
  return asked ? std::optional(*asked + value_of("tma_read_bytes", metrics).value_or(0)) : std::nullopt;
}

CountedWork work_of(const Metrics& metrics, double time_ns, const std::vector<hw::Peak>& peaks) {
  const KernelRoofline point = kernel_roofline({time_ns, metrics}, peaks);
  CountedWork work;
  work.flops = point.flops, work.tensor_flops = point.tensor_flops;
  work.dram_bytes = point.dram_bytes;
  work.l2_bytes = value_of("l2_bytes", metrics);
  work.l1_bytes = l1_bytes(metrics);
  if (time_ns > 0) work.time_ns = time_ns;
  work.dram_intensity = point.flops_per_byte;
  work.l2_intensity = ratio(work.flops, work.l2_bytes), work.l1_intensity = ratio(work.flops, work.l1_bytes);
  work.flops_per_s = point.flops_per_s, work.dram_bytes_per_s = point.bytes_per_s;
  work.type = point.type, work.bound = point.bound, work.of_roof = point.share_of_roof;
  return work;
}

std::optional<double> flops_of_peak(const CountedWork& work, const std::vector<hw::Peak>& peaks) {
  if (!work.flops_per_s) return std::nullopt;
  const hw::Peak* peak = peak_of_arithmetic(work.type, peaks);
  return peak != nullptr && peak->value > 0 ? std::optional(*work.flops_per_s / peak->value) : std::nullopt;
}

}  // namespace llmprof::analyze::counters
