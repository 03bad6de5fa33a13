#include "analyze/model/efficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/counters/stages.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/human.h"
#include "hw/roof.h"
#include "model/model.h"

namespace llmprof::analyze {

namespace {

std::optional<double> rate(std::optional<double> amount, double time_ns) {
  if (!amount || time_ns <= 0) return std::nullopt;
  return *amount / (time_ns * 1e-9);
}

bool too_fast(std::optional<double> ratio) { return ratio && *ratio > 1; }

}  // namespace

void add_why(std::string& why, std::string_view reason) {
  if (reason.empty() || why.find(reason) != std::string::npos) return;
  if (!why.empty()) why += "; ";
  why += reason;
}

Denominators denominators(const AnalysisContext& analysis, const std::string& type, Over over) {
  Denominators by;
  // Devices of a job are alike but for oddities: a rank's are its share of all.
  const double share = static_cast<double>(analysis.job.devices_of_rank()) /
                       static_cast<double>(std::max<std::int64_t>(1, analysis.busy_devices));
  const auto value_of = [&](std::string_view quantity, std::string_view kind) -> std::optional<double> {
    const PeakRate* one = analysis.peak(quantity, kind);
    const std::optional<PeakRate> all = analysis.total_peak(quantity, kind);
    if (over == Over::kDevice ? one == nullptr : !all) return std::nullopt;
    by.measured = by.measured && (over == Over::kDevice ? one->source : all->source) == "measured";
    return over == Over::kDevice ? one->value : over == Over::kRank ? share * all->value : all->value;
  };
  const std::optional<hw::UsedPeak> used =
      analysis.devices.empty() ? std::nullopt
                               : hw::flops_peak(counters::peaks_of(analysis, analysis.device_ids.front()), type,
                                                analysis.devices.front().name);
  const std::string peak_type = used ? used->peak_type : type;
  by.peak_flops = value_of("flops", peak_type);
  if (used) by.note = used->note;
  if (const PeakRate* one = analysis.peak("flops", peak_type); one != nullptr && by.peak_flops && one->value > 0)
    by.devices = *by.peak_flops / one->value;
  by.peak_bandwidth = value_of("bandwidth", hw::kMemoryStream);
  if (analysis.model) {
    const double cache_bytes = analysis.cache_bytes();
    by.weights_fit_cache = by.training_fits_cache = true;
    for (const model::Graph& part : analysis.parts) {
      by.weights_fit_cache = by.weights_fit_cache && model::weights_read_bytes(part) <= cache_bytes;
      by.training_fits_cache = by.training_fits_cache && model::training_state_bytes(part) <= cache_bytes;
    }
    if (analysis.parts.empty()) by.weights_fit_cache = by.training_fits_cache = false;
  }
  by.cost_why = analysis.model_why;
  if (by.cost_why.empty() && analysis.parts.empty()) by.cost_why = analysis.job.why;
  return by;
}

Denominators for_stage(Denominators by, std::string_view stage) {
  if (stage == "forward" || stage == "backward" || stage == "optimizer") by.weights_fit_cache = by.training_fits_cache;
  return by;
}

std::optional<double> Denominators::ridge() const { return hw::ridge(peak_flops, peak_bandwidth); }

hw::Roofline roofline_of(const AnalysisContext& analysis) {
  if (!analysis.whole || analysis.devices.empty()) return {};
  return {counters::peaks_of(analysis, analysis.device_ids.front()), analysis.devices.front().name,
          model::arithmetic_types(*analysis.whole)};
}

namespace {

std::optional<double> compute_time(std::optional<double> flops, std::optional<double> of_one, const Denominators& by) {
  return of_one ? std::optional(*of_one / by.devices) : hw::time_ns(flops, by.peak_flops);
}

}  // namespace

std::optional<double> floor_ns(double flops, double bytes, const Denominators& by, std::optional<double> compute_ns) {
  const hw::Floor floor = hw::floor_of(compute_time(flops, compute_ns, by),
                                       hw::time_ns(by.weights_fit_cache ? 0 : bytes, by.peak_bandwidth));
  return floor.bound() == "unknown" ? std::nullopt : floor.ns;
}

namespace {

void compare_with_roof(Efficiency& e, double time_ns, const Denominators& by) {
  if (e.flops && e.bytes && *e.bytes > 0) e.intensity = *e.flops / *e.bytes;
  // Bytes that stay in the cache do not move: then there is no intensity to compare.
  const std::optional<double> compute = compute_time(e.flops, e.compute_ns, by);
  const bool comparable = e.intensity && compute && *compute > 0 && !by.weights_fit_cache;
  if (const auto ridge = comparable ? hw::ridge(*e.flops / (*compute * 1e-9), by.peak_bandwidth) : by.ridge();
      e.intensity && ridge && !by.weights_fit_cache)
    e.above_ridge = *e.intensity > *ridge;
  if (!e.floor_ns && e.flops && e.bytes) e.floor_ns = floor_ns(*e.flops, *e.bytes, by, e.compute_ns);
  if (e.floor_ns && time_ns > 0) e.of_floor = *e.floor_ns / time_ns;
}

// A model with products of several types has no single peak: its FLOPs over the time they take, each at its own.
void explain_mixed_peak(Efficiency& e, const Denominators& by, std::optional<double> compute) {
  if (!by.note.empty()) add_why(e.why, by.note);
  if (!e.flops || !compute || *compute <= 0 || !by.peak_flops) return;
  const double peak = *e.flops / (*compute * 1e-9);
  constexpr double kSame = 0.001;  // a difference that no table shows
  if (std::abs(peak - *by.peak_flops) <= kSame * *by.peak_flops) return;
  add_why(e.why, fmt::format("products of several types, each at its own peak: {} for this mix",
                             base::human_rate(peak, "FLOP/s")));
}

}  // namespace

void complete(Efficiency& e, double time_ns, const Denominators& by) {
  e.flops_per_s = rate(e.flops, time_ns);
  e.flops_shapes_per_s = rate(e.flops_shapes, time_ns);
  e.bytes_per_s = rate(e.bytes, time_ns);
  e.reached_flops_per_s = e.flops ? e.flops_per_s : e.flops_shapes_per_s;
  e.bound = "unknown";
  if (!e.flops && !e.bytes) {
    add_why(e.why, by.cost_why);
    return;
  }
  const double flops = e.flops.value_or(0);
  const std::optional<double> compute = compute_time(flops, e.compute_ns, by);
  const std::optional<double> memory = hw::time_ns(e.bytes.value_or(0), by.peak_bandwidth);
  e.mfu = hw::share(compute, time_ns);
  // What is computed again is of the same types.
  if (e.recomputed_flops && compute)
    e.hfu = flops > 0 ? hw::share(*compute * (flops + *e.recomputed_flops) / flops, time_ns)
                      : hw::efficiency(*e.recomputed_flops, time_ns, by.peak_flops.value_or(0));
  e.mbu = hw::share(memory, time_ns);
  e.bound = hw::floor_of(compute, memory).bound();
  explain_mixed_peak(e, by, compute);
  compare_with_roof(e, time_ns, by);
  if (!by.peak_flops) add_why(e.why, "no peak FLOP/s is known for this device and type");
  if (!by.peak_bandwidth) add_why(e.why, "no peak bandwidth is known for this device");
  if (by.weights_fit_cache) {
    e.mbu.reset();
    if (e.bound == "memory") e.bound = "unknown";
    add_why(e.why, "weights fit the last-level cache");
  }
  if (e.flops == 0.0) add_why(e.why, "no matrix products, so no MFU");
  if (too_fast(e.mfu) || too_fast(e.mbu)) {
    add_why(e.why, by.measured ? "faster than the measured peak: the peak was measured under load or the cache helped"
                               : "faster than the device's peak: the cache helped");
  }
}

namespace {

// Operands that a library rounds before it multiplies are multiplied in that type: float32 as tf32 or bfloat16. Narrow
// operands whose products are added up in float32 still are products of narrow operands.
std::string peak_type_of(const std::string& type, const std::string& compute_type) {
  constexpr std::string_view kFast = "float32_fast_";
  if (type != "float32") return type;
  if (compute_type.starts_with(kFast)) return compute_type.substr(kFast.size());
  return compute_type == "tf32" ? compute_type : type;
}

Shape shape_of(GemmShape gemm_row, const AnalysisContext& analysis) {
  Shape shape{.gemm = std::move(gemm_row)};
  GemmShape& gemm = shape.gemm;
  gemm.peak_type = peak_type_of(gemm.type, gemm.compute_type);
  const double calls = gemm.calls;
  const double seconds = static_cast<double>(gemm.time_ns) * 1e-9;
  shape.flops = calls * model::gemm_flops(gemm.m, gemm.n, gemm.k, gemm.batch);
  gemm.why = "no time, or no peak FLOP/s is known for this device and type";
  if (gemm.time_ns <= 0) return shape;
  gemm.flops_per_s = shape.flops / seconds;
  if (const auto bytes = element_bytes(gemm.type)) {
    gemm.bytes_per_s = calls * model::gemm_bytes(gemm.m, gemm.n, gemm.k, gemm.batch, *bytes) / seconds;
  }
  if (const PeakRate* peak = analysis.peak("flops", gemm.peak_type)) {
    gemm.of_peak = hw::efficiency(shape.flops, static_cast<double>(gemm.time_ns), peak->value);
    if (gemm.of_peak) gemm.why.clear();
  }
  return shape;
}

}  // namespace

std::optional<std::int64_t> element_bytes(std::string_view type) {
  if (type == "float32" || type == "tf32") return 4;
  if (type == "float64" || type == "complex64") return 8;
  if (type == "float16" || type == "bfloat16") return 2;
  if (type == "int8" || type.starts_with("float8")) return 1;
  return std::nullopt;
}

Result<std::vector<Shape>> gemm_shapes(const trace::Run& run, const AnalysisContext& analysis) {
  LLMPROF_LET(std::vector<GemmShape> rows, ask_rows<GemmShape>(run, "gemm_shapes"));
  std::vector<Shape> shapes;
  for (GemmShape& row : rows) shapes.push_back(shape_of(std::move(row), analysis));
  return shapes;
}

}  // namespace llmprof::analyze
