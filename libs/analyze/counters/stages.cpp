#include "analyze/counters/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "analyze/counters/readings.h"
#include "analyze/model/efficiency.h"
#include "analyze/names/range_words.h"
#include "analyze/passes/products.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts.h"
#include "base/human.h"

namespace llmprof::analyze::counters {

namespace {

struct Group {
  Fold fold;
  std::int64_t measured = 0;    // steps or ranges
  std::set<std::string> names;  // of ranges
  std::set<std::int64_t> devices;
  CostSum cost;
};

const Stage* stage_of(const Summary& summary, std::string_view name) {
  const auto found = std::ranges::find(summary.stages, name, &Stage::name);
  return found == summary.stages.end() ? nullptr : &*found;
}

// Instructions are counted by code put into kernels: kernels in graphs do not have it and count as nothing.
bool is_instrumented(std::string_view metric) { return metric.find("__sass_") != metric.npos; }

Metrics without_instrumented(const Metrics& metrics) {
  Metrics out = metrics;
  std::erase_if(out, [](const auto& entry) { return is_instrumented(entry.first); });
  return out;
}

double time_of(const Measurement& measurement) {
  if (const auto gpu = value_of("gpu_time_ns", measurement.metrics)) return *gpu;
  double sum = 0;
  for (const MeasuredWindow& window : measurement.windows) sum += window.end_ns - window.begin_ns;
  return sum / static_cast<double>(std::max<std::size_t>(1, measurement.windows.size()));
}

class Groups {
 public:
  Groups(const std::vector<PlacedStep>& steps, Summary& summary) : steps_(steps), summary_(summary) {
    for (const PlacedStep& step : steps) by_id_.emplace(step.id, &step);
  }

  void add(const Measurement& measurement) {
    if (measurement.graph)
      add_graph(measurement);
    else
      add_range(measurement);
  }

  StepCosts finish(const AnalysisContext& analysis) {
    for (auto& [stage, group] : graphs_) ranges_.try_emplace(stage, std::move(group));  // ranges say more
    for (const Stage& stage : summary_.stages) {
      const auto found = ranges_.find(stage.name);
      if (found != ranges_.end()) add_stage(stage, found->second, analysis);
    }
    for (const auto& [shape, group] : modules_) {
      const std::string& name = group.names.size() == 1 ? *group.names.begin() : shape;
      summary_.counters.modules.push_back({name, group.measured, group.fold.values("range")});
    }
    add_notes();
    return std::move(costs_);
  }

 private:
  void add_range(const Measurement& measurement) {
    std::optional<CoveredSteps> all;
    for (const MeasuredWindow& window : measurement.windows) {
      const std::optional<CoveredSteps> here = covered(window, measurement.name, steps_);
      if (!here || (all && all->stage != here->stage)) {
        add_module(measurement);
        return;
      }
      if (!all) all = CoveredSteps{.stage = here->stage};
      all->steps += here->steps, all->flops += here->flops, all->bytes += here->bytes;
    }
    if (!all) return;
    const double steps = all->steps;
    Group& group = ranges_[all->stage];
    group.cost.add(all->flops, all->bytes, steps);
    group.measured += all->steps;
    add_to(group, measurement, all->stage, steps / static_cast<double>(measurement.windows.size()));
  }

  // A step may launch several graphs: each measured launch then stands for one of them.
  void add_graph(const Measurement& measurement) {
    const MeasuredWindow& first = measurement.windows.front();
    const Stage* stage = stage_of(summary_, first.graph_stage);
    if (first.graph_stage_step < 0 || stage == nullptr || stage->steps <= 0) {
      ++unplaced_graphs_;
      return;
    }
    const double launches = static_cast<double>(stage->graph_launches) / static_cast<double>(stage->steps);
    if (launches > 1.01) several_graphs_.insert(stage->name);
    Group& group = graphs_[stage->name];
    for (const MeasuredWindow& window : measurement.windows) {
      const auto step = by_id_.find(window.graph_stage_step);
      if (step != by_id_.end()) group.cost.add(step->second->flops, step->second->bytes, 1);
    }
    group.measured += std::ssize(measurement.windows);
    add_to(group, measurement, stage->name, 1 / std::max(1.0, launches));
  }

  void add_to(Group& group, const Measurement& measurement, const std::string& stage_name, double steps) {
    const Stage* stage = stage_of(summary_, stage_name);
    const bool graphs = measurement.graph || (stage != nullptr && stage->graph_launches > 0);
    const bool blind = graphs && std::ranges::any_of(measurement.metrics,
                                                     [](const auto& entry) { return is_instrumented(entry.first); });
    if (blind) blind_.insert(stage_name);
    group.fold.add(blind ? without_instrumented(measurement.metrics) : measurement.metrics, steps,
                   time_of(measurement));
    group.devices.insert(measurement.device_id);
  }

  void add_module(const Measurement& measurement) {
    Group& group = modules_[shape_of(measurement.name)];  // "Train step 5", "Train step 6" are alike
    group.names.insert(measurement.name);
    Metrics metrics = measurement.metrics;
    if (summary_.coverage.graph_launches > 0)
      std::erase_if(metrics, [](const auto& entry) { return is_instrumented(entry.first) && entry.second == 0; });
    group.fold.add(metrics, 1, time_of(measurement));
    group.measured += std::ssize(measurement.windows);
    group.devices.insert(measurement.device_id);
  }

  void add_stage(const Stage& stage, const Group& group, const AnalysisContext& analysis) {
    CountedStage counted{.stage = stage.name, .steps = stage.steps, .measured = group.measured, .method = "range"};
    counted.values = group.fold.values("range");
    costs_[stage.name] = group.cost.mean();
    complete(counted, group.fold.metrics(), *group.devices.begin(), costs_[stage.name], {analysis, summary_});
    if (group.devices.size() > 1)
      note(fmt::format("{}: means over {} devices that were measured", stage.name, group.devices.size()));
    summary_.counters.stages.push_back(std::move(counted));
  }

  void add_notes() {
    for (const std::string& stage : blind_)
      note(
          fmt::format("{} launches graphs: instructions of plain cores are not seen in them, so FLOPs outside of the "
                      "tensor cores are unknown",
                      stage));
    for (const std::string& stage : several_graphs_)
      note(
          fmt::format("{} launches several graphs per step: a step is taken as so many times the mean of the launches "
                      "that were measured",
                      stage));
    if (unplaced_graphs_ > 0)
      note(fmt::format("{} measured graph launches belong to no step and are left out", unplaced_graphs_));
  }
  void note(std::string text) { summary_.counters.notes.push_back(std::move(text)); }

  const std::vector<PlacedStep>& steps_;
  Summary& summary_;
  std::unordered_map<std::int64_t, const PlacedStep*> by_id_;
  StepCosts costs_;
  std::map<std::string, Group> ranges_, graphs_, modules_;
  std::set<std::string> blind_, several_graphs_;
  std::int64_t unplaced_graphs_ = 0;
};

}  // namespace

StepCost CostSum::mean() const {
  const auto known = [this](double sum) {
    return steps_ > 0 && std::isfinite(sum) ? std::optional(sum / steps_) : std::nullopt;
  };
  return {known(flops_), known(bytes_)};
}

void complete(CountedStage& counted, const Metrics& metrics, std::int64_t device_id, const StepCost& cost,
              const std::pair<const AnalysisContext&, const Summary&>& from) {
  const auto& [analysis, summary] = from;
  const Stage* stage = stage_of(summary, counted.stage);
  const std::vector<hw::Peak> peaks = peaks_of(analysis, device_id);
  // Measured steps take longer: the time is that of the others (sql/stages.sql).
  const double time_ns = stage == nullptr ? 0 : static_cast<double>(stage->step_p50_ns.value_or(0));
  counted.work = work_of(metrics, time_ns, peaks);
  counted.hfu = flops_of_peak(counted.work, peaks);
  if (counted.hfu) counted.hfu_type = counted.work.type;
  // Which share of the model one of several devices has to move is unknown.
  if (summary.busy_devices <= 1 && cost.bytes.value_or(0) > 0 && counted.work.dram_bytes)
    counted.redundancy = *counted.work.dram_bytes / *cost.bytes;
}

StepCosts fill_measured(const std::vector<Measurement>& measurements, const std::vector<PlacedStep>& steps,
                        const AnalysisContext& analysis, Summary& summary) {
  Groups groups(steps, summary);
  for (const Measurement& measurement : measurements) groups.add(measurement);
  return groups.finish(analysis);
}

namespace {

bool covers(const MeasuredWindow& window, const std::string& name, const PlacedStep& step) {
  if (window.begin_ns <= step.begin_ns && step.host_end_ns <= window.end_ns) return true;
  if (step.range != name) return false;  // a part of the step
  const std::int64_t shared = std::min(window.end_ns, step.host_end_ns) - std::max(window.begin_ns, step.begin_ns);
  return 2 * shared >= step.host_end_ns - step.begin_ns;
}

}  // namespace

std::optional<CoveredSteps> covered(const MeasuredWindow& window, const std::string& name,
                                    const std::vector<PlacedStep>& steps) {
  const auto first_after =
      std::ranges::lower_bound(steps, std::pair(window.thread_id, window.end_ns), {},
                               [](const PlacedStep& step) { return std::pair(step.thread_id, step.begin_ns); });
  CoveredSteps out;
  // Steps of a thread do not overlap, but for nested ones: the first that ended before the window ends the search.
  for (auto at = first_after; at != steps.begin();) {
    --at;
    if (at->thread_id != window.thread_id || at->host_end_ns <= window.begin_ns) break;
    if (!covers(window, name, *at)) continue;
    if (out.steps > 0 && out.stage != at->stage) return std::nullopt;
    out.stage = at->stage;
    ++out.steps, out.flops += at->flops, out.bytes += at->bytes;
  }
  return out.steps > 0 ? std::optional(out) : std::nullopt;
}

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
  const double steps = std::max<std::int64_t>(1, stage.steps);
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
  const double steps = std::max<std::int64_t>(1, stage.steps);
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
  LLMPROF_LET(const std::vector<ProductKernel> products, ask_rows<ProductKernel>(run, "product_kernels"));
  LLMPROF_LET(const std::vector<StageBytes> work, stage_bytes(run));
  const ModelShape model = model_shape(analysis);
  for (const CountedStage& counted : summary.counters.stages) {
    const auto stage = std::ranges::find(summary.stages, counted.stage, &Stage::name);
    const auto cost = costs.find(counted.stage);
    if (stage == summary.stages.end() || cost == costs.end() || stage->steps <= 0) continue;
    const double steps = stage->steps;
    const bool one_device = summary.busy_devices <= 1;  // else nobody knows which share of the model this one has
    QuantityEvidence flops{.stage = counted.stage, .quantity = "flops", .unit = "FLOP"};
    if (one_device) flops.analytic = cost->second.flops;
    if (one_device && stage->efficiency.flops_shapes) flops.shapes = *stage->efficiency.flops_shapes / steps;
    // Measured steps may be larger than others: shapes are of all.
    if (flops.shapes && flops.analytic && stage->efficiency.flops.value_or(0) > 0)
      flops.shapes = *flops.shapes * *flops.analytic / (*stage->efficiency.flops / steps);
    flops.counted = counted.work.flops;
    if (differ(flops.analytic, flops.counted)) {
      FlopsFacts facts = flops_facts(flops, *stage, find_by(work, counted.stage, &StageBytes::stage), products);
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
      BytesFacts facts = bytes_facts(bytes, *stage, find_by(work, counted.stage, &StageBytes::stage), summary);
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
