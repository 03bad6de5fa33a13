#include "analyze/diff/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "analyze/diff/digest_parts.h"
#include "analyze/measures/measures.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/human.h"
#include "base/json.h"

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
  if (const auto floor = stage.efficiency.floor_ns)
    digest.floor_ns = per_step(*floor * stage.ranks_at_once, stage.steps);
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

namespace {

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

std::string shape_name(const RowView& row, std::string_view products) {
  const std::int64_t count = row.integer(products);
  return fmt::format("[{}, {}] x [{}, {}]{} {}", row.integer("m"), row.integer("k"), row.integer("k"), row.integer("n"),
                     count > 1 ? fmt::format(" x {}", count) : "", row.text("type"));
}

// What a row of a kernel counts for.
template <class Visit>
void each_part(const RowView& row, std::string_view products, const Visit& visit) {
  const std::string stage = row.text("stage"), op = row.text("op");
  each_module(row.text("module"), [&](const std::string& path) { visit(Key{"module", stage, path}); });
  visit(Key{"operator", stage, op.empty() ? kNoModule : op});
  if (!row.value("m").is_null()) visit(Key{"shape", stage, shape_name(row, products)});
}

Result<void> add_kernels(const trace::Run& run, Parts& parts) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/diff_kernels"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    each_part(row, "batch", [&](const Key& key) {
      Sums& part = parts[key];
      part.ns += row.real("time_ns");
      part.estimated_ns += row.real("estimated_ns");
      part.calls += row.real("executions");
      KernelUse& kernel = part.kernels[row.text("name")];
      kernel.name = row.text("name");
      kernel.executions += row.real("executions");
      kernel.ns += row.real("time_ns");
    });
  }
  return {};
}

Result<void> add_kernel_batches(const trace::Run& run, Parts& parts) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/diff_part_batches"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto batch = static_cast<std::size_t>(row.integer("batch"));
    each_part(row, "products", [&](const Key& key) {
      parts[key].batches[batch] += row.real("time_ns") / row.real("steps");
      parts[key].steady_ns += row.real("time_ns");
    });
  }
  return {};
}

// Where the host computes, a part takes the time of its ranges: modules whole, operators without the modules inside.
Result<void> use_ranges(const trace::Run& run, const Summary& summary, Parts& parts) {
  for (auto& [key, part] : parts) {
    if (key.kind == "shape") continue;
    part.ns = part.steady_ns = 0;
    part.batches.clear();
  }
  for (const Part& module : summary.modules) {
    parts[{"module", module.stage, module.name}].ns += static_cast<double>(module.time_ns);
  }
  for (const Part& op : summary.ops) parts[{"operator", op.stage, op.name}].ns += static_cast<double>(op.self_ns);
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/diff_range_batches"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto batch = static_cast<std::size_t>(row.integer("batch"));
    const double steps = row.real("steps");
    const auto add = [&](Sums& part, double ns) {
      part.batches[batch] += ns / steps;
      part.steady_ns += ns;
    };
    add(parts[{"module", row.text("stage"), row.text("module")}], row.real("total_ns"));
    add(parts[{"operator", row.text("stage"), row.text("op")}], row.real("self_ns"));
  }
  return {};
}

void set_work(const Summary& summary, double steps, PartDigest& part) {
  for (const Part& each : part.kind == "operator" ? summary.ops : summary.modules) {
    if (part.kind == "shape" || each.stage != part.stage || each.name != part.name) continue;
    if (each.efficiency.flops) part.flops = *each.efficiency.flops / steps;
    if (each.efficiency.bytes) part.bytes = *each.efficiency.bytes / steps;
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
  const auto steps = static_cast<double>(std::max<std::int64_t>(stage.steps, 1));
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
  std::sort(part.kernels.begin(), part.kernels.end(),
            [](const KernelUse& a, const KernelUse& b) { return std::tie(b.ns, a.name) < std::tie(a.ns, b.name); });
  constexpr std::size_t kMostKernels = 40;
  if (part.kernels.size() > kMostKernels) part.kernels.resize(kMostKernels);
  return part;
}

}  // namespace

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
  std::sort(digests.begin(), digests.end(), [](const PartDigest& a, const PartDigest& b) {
    return std::tie(a.kind, b.ns.value, a.stage, a.name) < std::tie(b.kind, a.ns.value, b.stage, b.name);
  });
  return digests;
}

// Digests as JSON: what a baseline file holds.

namespace {

using base::Json;

Json to_json(const Estimate& estimate) {
  return {{"value", estimate.value},
          {"error", base::maybe(estimate.error)},
          {"freedom", estimate.freedom},
          {"samples", estimate.samples}};
}

Json to_json(const MeasureDigest& measure) {
  return {{"name", measure.name},     {"unit", measure.unit},
          {"better", measure.better}, {"of", measure.of},
          {"why", measure.why},       {"value", measure.value ? to_json(*measure.value) : Json(nullptr)}};
}

Json to_json(const PartDigest& part) {
  Json kernels = Json::array();
  for (const KernelUse& kernel : part.kernels) {
    kernels.push_back({{"name", kernel.name}, {"executions", kernel.executions}, {"ns", kernel.ns}});
  }
  return {{"kind", part.kind},
          {"name", part.name},
          {"stage", part.stage},
          {"ns", to_json(part.ns)},
          {"calls", part.calls},
          {"estimated", part.estimated},
          {"flops", base::maybe(part.flops)},
          {"bytes", base::maybe(part.bytes)},
          {"kernels", std::move(kernels)}};
}

Json to_json(const StageDigest& stage) {
  Json terms = Json::array();
  for (const auto& [name, ns] : stage.terms) terms.push_back({{"name", name}, {"ns", ns}});
  return {{"name", stage.name},
          {"quantity", stage.quantity},
          {"steps", stage.steps},
          {"ns", to_json(stage.ns)},
          {"mean_ns", stage.mean_ns},
          {"ranges", stage.ranges ? 1 : 0},
          {"kernels", stage.kernels},
          {"kernel_ns", stage.kernel_ns},
          {"estimated", stage.estimated},
          {"batch", base::maybe(stage.batch)},
          {"context", base::maybe(stage.context)},
          {"tokens", base::maybe(stage.tokens)},
          {"flops", base::maybe(stage.flops)},
          {"bytes", base::maybe(stage.bytes)},
          {"floor_ns", base::maybe(stage.floor_ns)},
          {"sm_clock_hz", base::maybe(stage.sm_clock_hz)},
          {"terms", std::move(terms)}};
}

template <class T>
Json list(const std::vector<T>& rows) {
  Json out = Json::array();
  for (const T& row : rows) out.push_back(to_json(row));
  return out;
}

// Reading: what is missing or of another type is left as it is; files of other versions stay readable.
template <class T>
void read(const Json& from, const char* key, T& into) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  if (!from.is_object() || found == from.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) into = found->get<std::string>();
  } else {
    if (found->is_number()) into = found->get<T>();
  }
}

void read(const Json& from, const char* key, std::optional<double>& into) {
  if (from.is_object() && from.contains(key) && from[key].is_number()) into = from[key].get<double>();
}

Estimate read_estimate(const Json& from) {
  Estimate estimate;
  read(from, "value", estimate.value);
  read(from, "error", estimate.error);
  read(from, "freedom", estimate.freedom);
  read(from, "samples", estimate.samples);
  return estimate;
}

const Json& member(const Json& from, const char* key) {
  static const Json nothing;
  return from.is_object() && from.contains(key) ? from[key] : nothing;
}

MeasureDigest read_measure(const Json& from) {
  MeasureDigest measure;
  read(from, "name", measure.name);
  read(from, "unit", measure.unit);
  read(from, "better", measure.better);
  read(from, "of", measure.of);
  read(from, "why", measure.why);
  if (member(from, "value").is_object()) measure.value = read_estimate(member(from, "value"));
  return measure;
}

StageDigest read_stage(const Json& from) {
  StageDigest stage;
  read(from, "name", stage.name);
  read(from, "quantity", stage.quantity);
  read(from, "steps", stage.steps);
  stage.ns = read_estimate(member(from, "ns"));
  read(from, "mean_ns", stage.mean_ns);
  int ranges = 0;
  read(from, "ranges", ranges);
  stage.ranges = ranges != 0;
  read(from, "kernels", stage.kernels);
  read(from, "kernel_ns", stage.kernel_ns);
  read(from, "estimated", stage.estimated);
  read(from, "batch", stage.batch);
  read(from, "context", stage.context);
  read(from, "tokens", stage.tokens);
  read(from, "flops", stage.flops);
  read(from, "bytes", stage.bytes);
  read(from, "floor_ns", stage.floor_ns);
  read(from, "sm_clock_hz", stage.sm_clock_hz);
  for (const Json& term : member(from, "terms")) {
    auto& [name, ns] = stage.terms.emplace_back();
    read(term, "name", name);
    read(term, "ns", ns);
  }
  return stage;
}

PartDigest read_part(const Json& from) {
  PartDigest part;
  read(from, "kind", part.kind);
  read(from, "name", part.name);
  read(from, "stage", part.stage);
  part.ns = read_estimate(member(from, "ns"));
  read(from, "calls", part.calls);
  read(from, "estimated", part.estimated);
  read(from, "flops", part.flops);
  read(from, "bytes", part.bytes);
  for (const Json& use : member(from, "kernels")) {
    KernelUse& kernel = part.kernels.emplace_back();
    read(use, "name", kernel.name);
    read(use, "executions", kernel.executions);
    read(use, "ns", kernel.ns);
  }
  return part;
}

}  // namespace

Json to_json(const Digest& digest) {
  return {{"name", digest.name},           {"folder", digest.folder},
          {"created", digest.created},     {"command", digest.command},
          {"model", digest.model},         {"device", digest.device},
          {"notes", digest.notes},         {"steps", digest.steps},
          {"kernels", digest.kernels},     {"measures", list(digest.measures)},
          {"stages", list(digest.stages)}, {"parts", list(digest.parts)}};
}

Result<Digest> digest_from_json(const Json& json, std::string_view where) {
  if (!json.is_object() || !json.contains("measures")) {
    return Error{ErrorCode::kCorruptInput, std::string(where) + " holds no run", "save it again"};
  }
  Digest digest;
  read(json, "name", digest.name);
  read(json, "folder", digest.folder);
  read(json, "created", digest.created);
  read(json, "command", digest.command);
  read(json, "model", digest.model);
  read(json, "device", digest.device);
  read(json, "steps", digest.steps);
  read(json, "kernels", digest.kernels);
  for (const Json& note : member(json, "notes")) {
    if (note.is_string()) digest.notes.push_back(note.get<std::string>());
  }
  for (const Json& row : member(json, "measures")) digest.measures.push_back(read_measure(row));
  for (const Json& row : member(json, "stages")) digest.stages.push_back(read_stage(row));
  for (const Json& row : member(json, "parts")) digest.parts.push_back(read_part(row));
  return digest;
}

}  // namespace llmprof::analyze
