#include "analyze/diff/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/diff/digest_parts.h"
#include "analyze/measures.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace {

// Times of the steps of a stage in order of time.
struct StepSamples {
  std::vector<double> lasted, tpot;
  double batch = 0, context = 0, tokens = 0;
  std::int64_t sized = 0;  // steps that say their size
};
using Samples = std::map<std::string, StepSamples>;

Result<Samples> read_samples(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "sql/diff_steps"));
  Samples samples;
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    StepSamples& stage = samples[steps.names[static_cast<std::size_t>(steps.values[1][i])]];
    stage.lasted.push_back(static_cast<double>(steps.values[2][i]));
    if (steps.values[3][i] != trace::Columns::kNull) stage.tpot.push_back(static_cast<double>(steps.values[3][i]));
    if (steps.values[4][i] == trace::Columns::kNull || steps.values[6][i] == trace::Columns::kNull) continue;
    ++stage.sized;
    stage.batch += static_cast<double>(steps.values[4][i]);
    stage.context += static_cast<double>(std::max<std::int64_t>(steps.values[5][i], 0));
    stage.tokens += static_cast<double>(steps.values[4][i] * steps.values[6][i]);
  }
  return samples;
}

double quantile_of(std::string_view name) { return name.ends_with("p50") ? 0.5 : name.ends_with("p90") ? 0.9 : 0.99; }

// Measures that follow from the program and its model alone: the same in every recording.
bool is_exact(const MeasureKind& kind) {
  static constexpr std::string_view kComputed[] = {"flops", "bytes",      "intensity",
                                                   "floor", "parameters", "weights_read"};
  return kind.source == "counted" ||
         std::find(std::begin(kComputed), std::end(kComputed), kind.name) != std::end(kComputed);
}

Estimate estimate_of(const Measure& measure, const Samples& samples) {
  Estimate estimate{*measure.value, std::nullopt, 0, 1};
  const std::string_view name = measure.kind->name;
  const auto stage = samples.find(measure.scope);
  if (is_exact(*measure.kind)) {
    estimate.error = 0;
  } else if (stage != samples.end() && (name.starts_with("step_p") || name.starts_with("tpot_p"))) {
    const std::vector<double>& times = name.starts_with("step") ? stage->second.lasted : stage->second.tpot;
    const Estimate told = quantile_of_samples(times, quantile_of(name));
    if (told.error) estimate.error = *told.error * 1e-9;
    estimate.freedom = told.freedom;
    estimate.samples = told.samples;
  }
  return estimate;
}

std::string_view better_name(Better better) {
  return better == Better::kLower ? "lower" : better == Better::kHigher ? "higher" : "neither";
}

void fill_measures(const Summary& summary, const Samples& samples, Digest& digest) {
  for (const Measure& measure : measures(summary)) {
    MeasureDigest row{measure.full_name(),
                      std::string(measure.kind->unit),
                      std::string(better_name(measure.kind->better)),
                      measure.of,
                      measure.why,
                      std::nullopt};
    if (measure.value) row.value = estimate_of(measure, samples);
    digest.measures.push_back(std::move(row));
  }
}

std::optional<double> per_step(const std::optional<double>& amount, std::int64_t steps) {
  if (!amount || steps <= 0) return std::nullopt;
  return *amount / static_cast<double>(steps);
}

void fill_terms(const Summary& summary, StageDigest& stage) {
  for (const Waterfall& waterfall : summary.waterfalls) {
    if (waterfall.stage != stage.name || waterfall.samples <= 0) continue;
    stage.quantity = waterfall.quantity;
    for (const WaterfallTerm& term : waterfall.terms) {
      static constexpr std::string_view kOutside[] = {"between_steps", "gaps",   "queued",
                                                      "waits",         "copies", "other_kernels"};
      if (!term.ns || std::find(std::begin(kOutside), std::end(kOutside), term.name) == std::end(kOutside)) continue;
      stage.terms.emplace_back(term.name, waterfall.mean_ns(*term.ns));
    }
  }
}

StageDigest stage_digest(const Summary& summary, const Stage& stage, const StepSamples& samples) {
  StageDigest digest{
      .name = stage.name, .quantity = stage.name == "prefill" ? "TTFT" : "step time", .steps = stage.steps};
  const bool tpot = stage.name == "decode" && !samples.tpot.empty();
  const std::vector<double>& times = tpot ? samples.tpot : samples.lasted;
  digest.ns = quantile_of_samples(times, 0.5);
  digest.mean_ns = mean_of_samples(times).value;
  for (const Part& module : summary.modules) {
    digest.ranges = digest.ranges || (module.stage == stage.name && module.source == "range");
  }
  fill_terms(summary, digest);
  if (tpot) digest.quantity = "TPOT";
  const auto steps = static_cast<double>(std::max<std::int64_t>(stage.steps, 1));
  digest.kernels = static_cast<double>(stage.kernels) / steps;
  digest.kernel_ns = static_cast<double>(stage.kernel_ns) / steps;
  if (stage.kernel_ns > 0) {
    digest.estimated = static_cast<double>(stage.estimated_ns) / static_cast<double>(stage.kernel_ns);
  }
  if (samples.sized == static_cast<std::int64_t>(samples.lasted.size()) && samples.sized > 0) {
    const auto sized = static_cast<double>(samples.sized);
    digest.batch = samples.batch / sized;
    digest.context = samples.context / sized;
    digest.tokens = samples.tokens / sized;
  }
  digest.flops = per_step(stage.efficiency.flops, stage.steps);
  digest.bytes = per_step(stage.efficiency.bytes, stage.steps);
  // That of a stage is of all ranks at once, that of a step of one.
  if (const auto floor = stage.efficiency.floor_ns) digest.floor_ns = per_step(*floor * stage.ranks_at_once, stage.steps);
  for (const StageTelemetry& telemetry : summary.telemetry.stages) {
    if (telemetry.stage == stage.name && telemetry.sm_clock_mhz) digest.sm_clock_hz = *telemetry.sm_clock_mhz * 1e6;
  }
  return digest;
}

std::string model_text(const Summary& summary) {
  if (summary.model_family.empty()) return "";
  return fmt::format("{}, {} parameters, {}", summary.model_family,
                     base::human_count(static_cast<double>(summary.parameters.value_or(0))),
                     summary.devices.empty() ? "unknown type" : summary.devices.front().type);
}

void fill_notes(const Summary& summary, Digest& digest) {
  for (const Loss& loss : summary.losses) {
    if (loss.severity == "data_loss") {
      digest.notes.push_back(fmt::format("{} {} were lost ({}): its numbers are too low",
                                         base::human_count(static_cast<double>(loss.count)),
                                         loss.unit.empty() ? "records" : loss.unit, loss.name));
    }
  }
  if (summary.coverage.kernels == 0) {
    digest.notes.emplace_back(
        "no kernel and no BLAS call was recorded: only times of ranges and processes can be compared");
  } else if (!summary.on_gpu) {
    digest.notes.emplace_back("no GPU did anything: parts are compared by the host's time in them");
  }
  if (summary.stages.empty())
    digest.notes.emplace_back("it has no stages: only measures of the whole run can be compared");
}

}  // namespace

Result<Digest> digest_of(const trace::Run& run, const Summary& summary) {
  Digest digest{.name = run.folder(), .folder = run.folder(), .created = run.info().created};
  for (const std::string& word : run.info().command) digest.command += (digest.command.empty() ? "" : " ") + word;
  digest.model = model_text(summary);
  digest.device = summary.devices.empty() ? "" : summary.devices.front().name;
  digest.kernels = summary.coverage.kernels;
  LLMPROF_LET(const Samples samples, read_samples(run));
  fill_measures(summary, samples, digest);
  for (const Stage& stage : summary.stages) {
    const auto found = samples.find(stage.name);
    digest.steps += stage.steps;
    digest.stages.push_back(stage_digest(summary, stage, found == samples.end() ? StepSamples{} : found->second));
  }
  LLMPROF_LET(digest.parts, part_digests(run, summary));
  fill_notes(summary, digest);
  return digest;
}

const StageDigest* find_stage(const Digest& digest, std::string_view name) {
  const auto is = [&](const StageDigest& stage) { return stage.name == name; };
  const auto found = std::find_if(digest.stages.begin(), digest.stages.end(), is);
  return found == digest.stages.end() ? nullptr : &*found;
}

const MeasureDigest* find_measure(const Digest& digest, std::string_view name) {
  const auto is = [&](const MeasureDigest& measure) { return measure.name == name; };
  const auto found = std::find_if(digest.measures.begin(), digest.measures.end(), is);
  return found == digest.measures.end() ? nullptr : &*found;
}

const PartDigest* find_part(const Digest& digest, const PartDigest& like) {
  const auto is = [&](const PartDigest& p) {
    return p.kind == like.kind && p.stage == like.stage && p.name == like.name;
  };
  const auto found = std::find_if(digest.parts.begin(), digest.parts.end(), is);
  return found == digest.parts.end() ? nullptr : &*found;
}

}  // namespace llmprof::analyze
