#include "analyze/diff/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "analyze/measures/measures.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts.h"
#include "base/fields_json.h"
#include "base/human.h"

namespace llmprof::analyze {

namespace {

// Times of the steps of a stage in order of time.
struct StepSamples {
  std::vector<double> lasted, tpot;
  double batch = 0, context = 0, tokens = 0;
  std::int64_t batches = 0, contexts = 0, sized = 0;  // steps that say their batch, context, tokens
};
using Samples = std::map<std::string, StepSamples>;

Result<Samples> read_samples(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "diff_steps"));
  Samples samples;
  for (std::size_t i = 0; i < steps.rows(); ++i) {
    StepSamples& stage = samples[steps.names[steps.values[1][i]]];
    stage.lasted.push_back(static_cast<double>(steps.values[2][i]));
    if (steps.values[3][i] != trace::Columns::kNull) stage.tpot.push_back(static_cast<double>(steps.values[3][i]));
    const std::int64_t batch = steps.values[4][i], context = steps.values[5][i], tokens = steps.values[6][i];
    constexpr std::int64_t kNull = trace::Columns::kNull;
    if (context != kNull) ++stage.contexts, stage.context += static_cast<double>(context);
    if (batch == kNull) continue;
    ++stage.batches, stage.batch += static_cast<double>(batch);
    if (tokens != kNull) ++stage.sized, stage.tokens += static_cast<double>(batch * tokens);
  }
  return samples;
}

double quantile_of(std::string_view name) { return name.ends_with("p50") ? 0.5 : name.ends_with("p90") ? 0.9 : 0.99; }

// Measures that follow from the program and its model alone: the same in every recording.
bool is_exact(const MeasureKind& kind) {
  static constexpr std::string_view kComputed[] = {"flops", "bytes",      "intensity",
                                                   "floor", "parameters", "weights_read"};
  return kind.source == "counted" || std::ranges::count(kComputed, kind.name) > 0;
}

bool is_rate(std::string_view name) {
  static constexpr std::string_view kRates[] = {"tokens_per_s", "flops_per_s", "bytes_per_s", "mfu", "mbu", "of_floor"};
  return std::ranges::count(kRates, name) > 0;
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
  } else if (stage != samples.end() && is_rate(name)) {
    // An amount that is counted, over the time of the steps: as uncertain as the mean step.
    const Estimate told = mean_of_samples(stage->second.lasted);
    if (told.error && told.value > 0) estimate.error = *told.error / told.value * estimate.value;
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
    stage.on_cpu = waterfall.on_cpu;
    for (const WaterfallTerm& term : waterfall.terms) {
      static constexpr std::string_view kOutside[] = {"between_steps", "gaps",   "queued",
                                                      "waits",         "copies", "other_kernels"};
      if (term.ns && std::ranges::count(kOutside, term.name) > 0)
        stage.terms.push_back({term.name, waterfall.mean_ns(*term.ns)});
    }
  }
}

// Known only if every step says it.
std::optional<double> mean_size(double sum, std::int64_t known, const StepSamples& samples) {
  if (known == 0 || known != std::ssize(samples.lasted)) return std::nullopt;
  return sum / static_cast<double>(known);
}

void fill_sizes(const Summary& summary, const Stage& stage, const StepSamples& samples, StageDigest& digest) {
  digest.batch = mean_size(samples.batch, samples.batches, samples);
  digest.context = mean_size(samples.context, samples.contexts, samples);
  digest.tokens = mean_size(samples.tokens, samples.sized, samples);
  // Sequences of different lengths packed into a step: only their sum is known.
  if (!digest.tokens && stage.tokens > 0 && stage.steps > 0 && summary.job.ranks.size() <= 1)
    digest.tokens = static_cast<double>(stage.tokens) / static_cast<double>(stage.steps);
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
  const double steps = std::max<std::int64_t>(stage.steps, 1);
  digest.kernels = static_cast<double>(stage.kernels) / steps;
  digest.kernel_ns = static_cast<double>(stage.kernel_ns) / steps;
  if (stage.kernel_ns > 0) {
    digest.estimated = static_cast<double>(stage.estimated_ns) / static_cast<double>(stage.kernel_ns);
  }
  fill_sizes(summary, stage, samples, digest);
  digest.flops = per_step(stage.efficiency.flops, stage.steps);
  digest.bytes = per_step(stage.efficiency.bytes, stage.steps);
  digest.flops_shapes = per_step(stage.efficiency.flops_shapes, stage.steps);
  digest.bound = stage.efficiency.bound;
  digest.time_ns = static_cast<double>(stage.time_ns);
  digest.confidence = stage.confidence;
  // That of a stage is of all ranks at once, that of a step of one.
  if (const auto floor = stage.efficiency.floor_ns)
    digest.floor_ns = per_step(*floor * stage.ranks_at_once, stage.steps);
  for (const StageTelemetry& telemetry : summary.telemetry.stages) {
    if (telemetry.stage == stage.name && telemetry.sm_clock_mhz) digest.sm_clock_hz = *telemetry.sm_clock_mhz * 1e6;
  }
  return digest;
}

// The first steps of a training that take more than twice the median: the program warms up.
std::size_t warm_up_of(const std::vector<TrainingStep>& steps) {
  std::vector<double> times;
  for (const TrainingStep& step : steps) times.push_back(static_cast<double>(step.total_ns));
  const double median = quantile_of_samples(times, 0.5).value;
  const auto steady = std::ranges::find_if(times, [&](double ns) { return ns <= 2 * median; });
  return static_cast<std::size_t>(steady - times.begin());
}

// Forward, backward and optimizer of one step together: what training is judged by.
std::optional<StageDigest> training_digest(const Summary& summary) {
  std::vector<double> times;
  double tokens = 0, time_ns = 0, flops = 0;
  bool sized = true;
  std::int64_t all = 0;
  for (const StepSeries& series : summary.training) {
    for (std::size_t i = warm_up_of(series.steps); i < series.steps.size(); ++i) {
      const TrainingStep& step = series.steps[i];
      times.push_back(static_cast<double>(step.total_ns));
      tokens += static_cast<double>(step.tokens);
      sized = sized && step.tokens > 0;
    }
    for (const TrainingStep& step : series.steps) time_ns += static_cast<double>(step.total_ns);
    all += std::ssize(series.steps);
  }
  if (times.empty() || summary.training.size() > 1) return std::nullopt;  // ranks make the same step together
  StageDigest digest{.name = std::string(kTrainingStep), .quantity = "step time", .steps = all};
  digest.ns = quantile_of_samples(times, 0.5);
  digest.mean_ns = mean_of_samples(times).value;
  digest.time_ns = time_ns;
  if (sized) digest.tokens = tokens / static_cast<double>(times.size());
  bool known = true;
  for (const Stage& stage : summary.stages) {
    if (stage.name != "forward" && stage.name != "backward" && stage.name != "optimizer") continue;
    digest.confidence = std::min(digest.confidence, stage.confidence);
    known = known && stage.efficiency.flops;
    flops += stage.efficiency.flops.value_or(0);
  }
  if (known && flops > 0) digest.flops = flops / static_cast<double>(all);
  digest.bound = "compute";
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
        "no kernels and no BLAS calls recorded: only times of ranges and processes can be compared");
  } else if (!summary.on_gpu) {
    digest.notes.emplace_back("no GPU kernels: modules and operators are compared by CPU time");
  }
  if (summary.stages.empty())
    digest.notes.emplace_back("it has no stages: only measures of the whole run can be compared");
}

constexpr const char* kNoModule = "not matched to the model";

struct Key {
  std::string kind, stage, name;
  auto operator<=>(const Key&) const = default;
};

struct Sums {
  double ns = 0, estimated_ns = 0, calls = 0;  // over all steps
  std::map<std::string, KernelUse> kernels;    // by name
  double steady_ns = 0;                        // over the steps that are compared, measured
  std::map<std::size_t, double> batches;       // ns per step, by batch of these

  void add(std::int64_t batch, double batch_ns, double steps) {
    batches[batch] += batch_ns / steps;
    steady_ns += batch_ns;
  }
};
using Parts = std::map<Key, Sums>;

// The module and those around it: layers.7.mlp, layers.7, layers.
void each_module(std::string path, const std::function<void(const std::string&)>& visit) {
  while (!path.empty()) {
    visit(path);
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return;
    path.resize(dot);
  }
}

// Of kernels (sql/diff_kernels), or of those of a batch of steps (sql/diff_part_batches).
struct PartRow {
  std::string stage, module, op, name, type;
  std::optional<std::int64_t> m;
  std::int64_t n = 0, k = 0, products = 0, batch = 0;
  double steps = 0, executions = 0, time_ns = 0, estimated_ns = 0;
};

struct RangeBatchRow {
  std::string stage, module, op;
  std::int64_t batch = 0;
  double steps = 0, total_ns = 0, self_ns = 0;
};

std::string shape_name(const PartRow& row) {
  return fmt::format("[{}, {}] x [{}, {}]{} {}", *row.m, row.k, row.k, row.n,
                     row.products > 1 ? fmt::format(" x {}", row.products) : "", row.type);
}

// What a row of a kernel counts for.
template <class Visit>
void each_part(const PartRow& row, const Visit& visit) {
  each_module(row.module, [&](const std::string& path) { visit(Key{"module", row.stage, path}); });
  visit(Key{"operator", row.stage, row.op.empty() ? kNoModule : row.op});
  if (row.m) visit(Key{"shape", row.stage, shape_name(row)});
}

Result<void> add_kernels(const trace::Run& run, Parts& parts) {
  LLMPROF_LET(const std::vector<PartRow> rows, ask_rows<PartRow>(run, "diff_kernels"));
  for (const PartRow& row : rows) {
    each_part(row, [&](const Key& key) {
      Sums& part = parts[key];
      part.ns += row.time_ns, part.estimated_ns += row.estimated_ns, part.calls += row.executions;
      KernelUse& kernel = part.kernels[row.name];
      kernel.executions += row.executions, kernel.ns += row.time_ns;
    });
  }
  return {};
}

Result<void> add_kernel_batches(const trace::Run& run, Parts& parts) {
  LLMPROF_LET(const std::vector<PartRow> rows, ask_rows<PartRow>(run, "diff_part_batches"));
  for (const PartRow& row : rows)
    each_part(row, [&](const Key& key) { parts[key].add(row.batch, row.time_ns, row.steps); });
  return {};
}

// Where the host computes, a part takes the time of its ranges: modules whole, operators without the modules inside.
Result<void> use_ranges(const trace::Run& run, const Summary& summary, Parts& parts) {
  for (auto& [key, part] : parts) {
    if (key.kind == "shape") continue;
    part.ns = part.steady_ns = 0;
    part.batches.clear();
  }
  for (const Part& module : summary.modules) parts[{"module", module.stage, module.name}].ns += module.time_ns;
  for (const Part& op : summary.ops) parts[{"operator", op.stage, op.name}].ns += op.self_ns;
  LLMPROF_LET(const std::vector<RangeBatchRow> rows, ask_rows<RangeBatchRow>(run, "diff_range_batches"));
  for (const RangeBatchRow& row : rows) {
    parts[{"module", row.stage, row.module}].add(row.batch, row.total_ns, row.steps);
    parts[{"operator", row.stage, row.op}].add(row.batch, row.self_ns, row.steps);
  }
  return {};
}

void set_work(const Summary& summary, double steps, PartDigest& part) {
  for (const Part& each : part.kind == "operator" ? summary.ops : summary.modules) {
    if (part.kind == "shape" || each.stage != part.stage || each.name != part.name) continue;
    if (each.efficiency.flops) part.flops = *each.efficiency.flops / steps;
    if (each.efficiency.bytes) part.bytes = *each.efficiency.bytes / steps;
    part.bound = each.efficiency.bound;
  }
}

// How many steps of each stage are compared.
Result<std::map<std::string, std::int64_t>> steady_steps(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query("SELECT stage, count(*) FROM paced_step WHERE steady AND stage IS NOT NULL GROUP BY stage"));
  std::map<std::string, std::int64_t> steps;
  for (const auto& row : table.rows) steps[row[0].text] = row[1].as_int();
  return steps;
}

PartDigest finished(const Key& key, const Sums& sums, const Stage& stage, std::int64_t steady) {
  const double steps = std::max<std::int64_t>(stage.steps, 1);
  PartDigest part{.kind = key.kind, .name = key.name, .stage = key.stage};
  const bool measured = sums.estimated_ns <= 0 && !sums.batches.empty();
  if (measured) {
    // A batch without the part took no time in it.
    std::vector<double> batches(static_cast<std::size_t>(std::min<std::int64_t>(steady, kMostBatches)));
    for (const auto& [batch, ns] : sums.batches) {
      if (batch >= 1 && batch <= batches.size()) batches[batch - 1] = ns;
    }
    part.ns = mean_of_batches(std::move(batches));
  }
  // Times of graphs that were not recorded node by node are known for all steps together only.
  part.ns.value = measured ? sums.steady_ns / static_cast<double>(std::max<std::int64_t>(steady, 1)) : sums.ns / steps;
  part.ns.samples = measured ? steady : 1;
  part.calls = sums.calls / steps;
  if (sums.ns > 0) part.estimated = sums.estimated_ns / sums.ns;
  for (const auto& [name, kernel] : sums.kernels) {
    part.kernels.push_back({name, kernel.executions / steps, kernel.ns / steps});
  }
  std::ranges::sort(part.kernels, {}, [](const KernelUse& kernel) { return std::tuple(-kernel.ns, kernel.name); });
  constexpr std::size_t kMostKernels = 40;
  if (part.kernels.size() > kMostKernels) part.kernels.resize(kMostKernels);
  return part;
}

Result<std::vector<PartDigest>> part_digests(const trace::Run& run, const Summary& summary) {
  Parts parts;
  LLMPROF_TRY(add_kernels(run, parts));
  LLMPROF_TRY(add_kernel_batches(run, parts));
  if (!summary.on_gpu) LLMPROF_TRY(use_ranges(run, summary, parts));
  LLMPROF_LET(auto steady, steady_steps(run));
  std::vector<PartDigest> digests;
  for (const auto& [key, sums] : parts) {
    for (const Stage& stage : summary.stages) {
      if (stage.name != key.stage || sums.ns <= 0) continue;
      PartDigest part = finished(key, sums, stage, steady[stage.name]);
      set_work(summary, static_cast<double>(std::max<std::int64_t>(stage.steps, 1)), part);
      digests.push_back(std::move(part));
    }
  }
  std::ranges::sort(
      digests, {}, [](const PartDigest& part) { return std::tuple(part.kind, -part.ns.value, part.stage, part.name); });
  return digests;
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
  if (std::optional<StageDigest> training = training_digest(summary)) digest.stages.push_back(std::move(*training));
  LLMPROF_LET(digest.parts, part_digests(run, summary));
  digest.facts = facts_of(run.info(), summary);
  if (run.info().source == "predict")
    digest.notes.emplace_back("predicted, not measured: an interval only says how its steps differ");
  fill_notes(summary, digest);
  return digest;
}

const StageDigest* find_stage(const Digest& digest, std::string_view name) {
  return find_by(digest.stages, name, &StageDigest::name);
}

const MeasureDigest* find_measure(const Digest& digest, std::string_view name) {
  return find_by(digest.measures, name, &MeasureDigest::name);
}

const WorkFact* find_fact(const Digest& digest, std::string_view name) {
  return find_by(digest.facts, name, &WorkFact::name);
}

const PartDigest* find_part(const Digest& digest, const PartDigest& like) {
  const auto is = [&](const PartDigest& p) {
    return p.kind == like.kind && p.stage == like.stage && p.name == like.name;
  };
  const auto found = std::find_if(digest.parts.begin(), digest.parts.end(), is);
  return found == digest.parts.end() ? nullptr : &*found;
}

// What a baseline file holds.
base::Json to_json(const Digest& digest) { return base::fields_json(digest); }

Result<Digest> digest_from_json(const base::Json& json, std::string_view where) {
  Digest digest;
  if (!json.is_object() || !json.contains("measures") || !base::read_fields(json, digest))
    return Error{ErrorCode::kCorruptInput, std::string(where) + " holds no run", "save it again"};
  return digest;
}

}  // namespace llmprof::analyze
