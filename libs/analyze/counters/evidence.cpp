#include "analyze/counters/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/model/shapes.h"
#include "analyze/passes/products.h"
#include "analyze/rules/facts/subjects.h"
#include "base/human.h"

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
