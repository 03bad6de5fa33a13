#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "analyze/context.h"
#include "analyze/counters/readings.h"
#include "analyze/counters/sampled.h"
#include "analyze/counters/stages.h"
#include "analyze/model/shapes.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts/subjects.h"
#include "analyze/sections/counters_summary.h"
#include "analyze/sections/sections.h"
#include "analyze/summary.h"
#include "base/human.h"
#include "base/result.h"
#include "hw/counters/catalog.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Samples of warps by kernel, reason and place.

}  // namespace llmprof::analyze

namespace llmprof::analyze::counters {

Result<void> fill_stalls(const trace::Run& run, Counters& counters);

}  // namespace llmprof::analyze::counters

namespace llmprof::analyze {

// The same quantity by the model's formulas, by the shapes of matrix products and by counters; and what explains a
// difference. Causes are tried one after the other: each predicts a number, and the first that comes near what was
// counted is told.

}  // namespace llmprof::analyze

namespace llmprof::analyze::counters {

// All of one step.
struct FlopsFacts {
  double analytic = 0, counted = 0;
  double products = 0, padded = 0;  // of matrix products with known shapes; the same in whole tiles
  double plain_products = 0;        // of these, by kernels that do not use tensor cores
  double attention = 0;             // of analytic, where it is causal
  bool tensor_only = false;         // plain cores were not counted
  std::string tile;                 // that pads most: "64x8"
};
std::string explain_flops(const FlopsFacts& facts);

struct BytesFacts {
  double analytic = 0, counted = 0;
  double weights = 0, kv = 0;  // of analytic
  double context = 0, largest_context = 0;
  double cache_bytes = 0;
  double type_ratio = 1;  // bytes of a value as multiplied / as the model has it
  bool weights_fit_cache = false;
};
std::string explain_bytes(const BytesFacts& facts);

Result<void> fill_evidence(const trace::Run& run, const AnalysisContext& analysis, const StepCosts& costs,
                           Summary& summary);

}  // namespace llmprof::analyze::counters

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

namespace llmprof::analyze::counters {

namespace {

constexpr double kSame = 0.05, kNear = 0.10;

bool near(double predicted, double counted, double within = kNear) {
  return std::abs(predicted - counted) <= within * std::abs(counted);
}

std::string flop(double value) { return base::human_rate(value, "FLOP"); }

std::string unexplained(double counted, double analytic, const char* tried) {
  return fmt::format("not explained: counted {:.3g} times what the model needs; {}", counted / analytic, tried);
}

std::int64_t round_up(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile * tile; }

// FLOPs of a product in whole tiles. Some libraries name rows first, some columns: the smaller is taken.
double padded_flops(const ProductKernel& product) {
  const std::optional<Tile> tile = tile_of(product.kernel);
  if (!tile || product.m <= 0 || product.n <= 0) return product.flops();
  const auto area = [&](std::int64_t m, std::int64_t n) {
    return static_cast<double>(round_up(product.m, m)) * static_cast<double>(round_up(product.n, n));
  };
  return product.flops() * std::min(area(tile->m, tile->n), area(tile->n, tile->m)) /
         (static_cast<double>(product.m) * static_cast<double>(product.n));
}

void add_products(const std::vector<ProductKernel>& products, const Stage& stage, FlopsFacts& facts) {
  double most = 0;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, stage.steps));
  for (const ProductKernel& product : products) {
    if (product.stage != stage.name) continue;
    const double flops = product.flops() / steps;
    const bool plain = without_tensor_cores(product.kernel) || product.kernel.find("gemv") != product.kernel.npos;
    const double padded = plain ? flops : padded_flops(product) / steps;
    facts.products += flops, facts.padded += padded;
    if (plain) facts.plain_products += flops;
    const std::optional<Tile> tile = tile_of(product.kernel);
    if (tile && padded - flops > most) most = padded - flops, facts.tile = fmt::format("{}x{}", tile->m, tile->n);
  }
}

bool is_attention_op(std::string_view op) { return op.find("attention") != op.npos || op.find("sdpa") != op.npos; }

FlopsFacts flops_facts(const QuantityEvidence& evidence, const Stage& stage, const StageBytes* work,
                       const std::vector<ProductKernel>& products) {
  FlopsFacts facts{.analytic = *evidence.analytic, .counted = *evidence.counted};
  add_products(products, stage, facts);
  if (work == nullptr || work->tokens <= 1) return facts;
  for (const OperatorBytes& op : work->operators) {
    if (is_attention_op(op.op))
      facts.attention += op.flops / static_cast<double>(std::max<std::int64_t>(1, stage.steps));
  }
  return facts;
}

BytesFacts bytes_facts(const QuantityEvidence& evidence, const Stage& stage, const StageBytes* work,
                       const Summary& summary) {
  BytesFacts facts{.analytic = *evidence.analytic, .counted = *evidence.counted};
  facts.weights_fit_cache = summary.weights_fit_cache;
  if (!summary.devices.empty()) facts.cache_bytes = static_cast<double>(summary.devices.front().cache_bytes);
  if (work == nullptr) return facts;
  const double steps = static_cast<double>(std::max<std::int64_t>(1, stage.steps));
  facts.weights = work->all().weight_bytes / steps, facts.kv = work->all().kv_bytes / steps;
  facts.context = work->context, facts.largest_context = work->largest_context;
  return facts;
}

// Bytes of a value as most of the stage's FLOPs have it / as the model's weights are stored.
double type_ratio(const std::vector<ProductKernel>& products, const Stage& stage, const ModelShape& model) {
  const ProductKernel* most = nullptr;
  for (const ProductKernel& product : products) {
    if (product.stage == stage.name && (most == nullptr || product.flops() > most->flops())) most = &product;
  }
  const std::optional<std::int64_t> bytes = most == nullptr ? std::nullopt : element_bytes(most->type);
  return bytes && model.known && model.weight_bytes_each > 0 ? static_cast<double>(*bytes) / model.weight_bytes_each
                                                             : 1;
}

bool differ(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *a > 0 && std::abs(*b / *a - 1) > kSame;
}

}  // namespace

std::string explain_flops(const FlopsFacts& facts) {
  if (facts.analytic <= 0 || std::abs(facts.counted / facts.analytic - 1) <= kSame) return "";
  const double padding = std::max(0.0, facts.padded - facts.products), more = facts.counted - facts.analytic;
  const std::string tiles = facts.tile.empty() ? "whole tiles" : "whole tiles of " + facts.tile;
  if (facts.plain_products > 0 && facts.tensor_only &&
      near(facts.analytic - facts.plain_products + padding, facts.counted))
    return fmt::format("products of {} ran on plain cores, whose FLOPs were not counted", flop(facts.plain_products));
  if (facts.attention > 0 && near(facts.analytic + facts.attention, facts.counted, kSame))
    return fmt::format("attention is computed for all pairs, not the causal half: {} more", flop(facts.attention));
  if (padding > 0 && near(facts.analytic + padding, facts.counted))
    return fmt::format("products are computed in {}: {} instead of {}", tiles, flop(facts.padded),
                       flop(facts.products));
  if (padding > 0 && facts.attention > 0 && near(facts.analytic + padding + facts.attention, facts.counted))
    return fmt::format("products are computed in {} ({} more), and attention for all pairs ({} more)", tiles,
                       flop(padding), flop(facts.attention));
  if (more > 0 && padding >= 0.3 * more && padding < more)
    return fmt::format("products are computed in {}: {} of the {} more; the rest is not explained", tiles,
                       flop(padding), flop(more));
  return unexplained(facts.counted, facts.analytic,
                     "tiles, causal attention and products on plain cores do not give that number");
}

std::string explain_bytes(const BytesFacts& facts) {
  if (facts.analytic <= 0 || std::abs(facts.counted / facts.analytic - 1) <= kSame) return "";
  const double more = facts.counted - facts.analytic;
  const std::string cache = base::human_bytes(facts.cache_bytes);
  if (more < 0 && facts.weights_fit_cache) return fmt::format("weights stay in the L2 cache ({})", cache);
  if (more < 0 && -more <= facts.cache_bytes)
    return fmt::format("{} less than must move if nothing were kept: as much fits the L2 cache ({})",
                       base::human_bytes(-more), cache);
  if (facts.type_ratio != 1 && near(facts.analytic + facts.weights * (facts.type_ratio - 1), facts.counted))
    return fmt::format("weights are read in a type of {:.3g} times the bytes that the model's config says",
                       facts.type_ratio);
  if (facts.kv > 0 && facts.context > 0 && facts.largest_context > 1.05 * facts.context &&
      near(facts.kv * (facts.largest_context / facts.context - 1), more))
    return fmt::format("the KV cache is read as allocated, {:.0f} tokens, not as used, {:.0f}", facts.largest_context,
                       facts.context);
  return unexplained(facts.counted, facts.analytic,
                     more < 0 ? "the L2 cache is too small for the rest"
                              : "neither types nor the KV cache give that number; results that kernels pass on through "
                                "memory are not in the formula");
}

Result<void> fill_evidence(const trace::Run& run, const AnalysisContext& analysis, const StepCosts& costs,
                           Summary& summary) {
  LLMPROF_LET(const std::vector<ProductKernel> products, product_kernels(run));
  LLMPROF_LET(const std::vector<StageBytes> work, stage_bytes(run));
  const ModelShape model = model_shape(analysis);
  for (const CountedStage& counted : summary.counters.stages) {
    const auto stage = std::ranges::find(summary.stages, counted.stage, &Stage::name);
    const auto cost = costs.find(counted.stage);
    if (stage == summary.stages.end() || cost == costs.end() || stage->steps <= 0) continue;
    const auto steps = static_cast<double>(stage->steps);
    const bool one_device = summary.busy_devices <= 1;  // else nobody knows which share of the model this one has
    QuantityEvidence flops{.stage = counted.stage, .quantity = "flops", .unit = "FLOP"};
    if (one_device) flops.analytic = cost->second.flops;
    if (one_device && stage->efficiency.flops_shapes) flops.shapes = *stage->efficiency.flops_shapes / steps;
    // Measured steps may be larger than others: shapes are of all.
    if (flops.shapes && flops.analytic && stage->efficiency.flops.value_or(0) > 0)
      flops.shapes = *flops.shapes * *flops.analytic / (*stage->efficiency.flops / steps);
    flops.counted = counted.work.flops;
    if (differ(flops.analytic, flops.counted)) {
      FlopsFacts facts = flops_facts(flops, *stage, find_stage(work, counted.stage), products);
      const double plain = *counted.work.flops - counted.work.tensor_flops.value_or(0);
      facts.tensor_only = plain <= 0;
      flops.explanation = explain_flops(facts);
    } else if (differ(flops.analytic, flops.shapes)) {
      flops.explanation = fmt::format(
          "shapes: {:.3g} times the model's FLOPs: products that were not seen, or attention "
          "by kernels of its own",
          *flops.shapes / *flops.analytic);
    }
    QuantityEvidence bytes{.stage = counted.stage, .quantity = "bytes", .unit = "bytes"};
    if (one_device) bytes.analytic = cost->second.bytes;
    bytes.counted = counted.work.dram_bytes;
    if (differ(bytes.analytic, bytes.counted)) {
      BytesFacts facts = bytes_facts(bytes, *stage, find_stage(work, counted.stage), summary);
      facts.type_ratio = type_ratio(products, *stage, model);
      bytes.explanation = explain_bytes(facts);
    }
    for (QuantityEvidence* each : {&flops, &bytes}) {
      if (each->counted) summary.counters.evidence.push_back(std::move(*each));
    }
  }
  return {};
}

}  // namespace llmprof::analyze::counters

namespace llmprof::analyze {}  // namespace llmprof::analyze

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
SELECT * FROM place
QUALIFY row_number() OVER (PARTITION BY kernel ORDER BY samples DESC, offset_bytes) <= 5
ORDER BY kernel, samples DESC, offset_bytes)";

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

Result<void> fill_stalls(const trace::Run& run, Counters& counters) {
  std::map<std::string, KernelStalls> kernels;
  LLMPROF_LET(const trace::ResultTable reasons, run.query(kReasons));
  for (std::size_t i = 0; i < reasons.rows.size(); ++i) {
    const RowView row{reasons, i};
    const std::int64_t samples = row.integer("samples");
    counters.stall_samples += samples;
    if (row.text("kernel") == kUnknownCode || row.text("kernel").empty()) {
      counters.stall_unknown += samples;
      continue;
    }
    KernelStalls& kernel = kernels[row.text("kernel")];
    kernel.samples += samples;
    kernel.reasons.push_back({row.text("reason"), static_cast<double>(samples)});
  }
  LLMPROF_LET(const trace::ResultTable places, run.query(kPlacesSql));
  for (std::size_t i = 0; i < places.rows.size(); ++i) {
    const RowView row{places, i};
    const auto kernel = kernels.find(row.text("kernel"));
    if (kernel == kernels.end() || kernel->second.places.size() == kPlaces) continue;
    kernel->second.places.push_back({.kernel = row.text("kernel"),
                                     .reason = row.text("reason"),
                                     .file = row.text("file"),
                                     .line = row.maybe_integer("line"),
                                     .pc_offset = row.integer("offset_bytes"),
                                     .samples = row.integer("samples"),
                                     .share = share(row.integer("samples"), kernel->second.samples)});
  }
  for (auto& [name, kernel] : kernels) {
    kernel.kernel = name;
    kernel.share = share(kernel.samples, counters.stall_samples);
    for (auto& [reason, samples] : kernel.reasons)
      samples /= static_cast<double>(std::max<std::int64_t>(1, kernel.samples));
    counters.stalls.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(counters.stalls, std::greater{}, &KernelStalls::samples);
  return {};
}

}  // namespace llmprof::analyze::counters

namespace llmprof::analyze {}  // namespace llmprof::analyze
