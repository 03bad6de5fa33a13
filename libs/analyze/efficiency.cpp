#include "analyze/efficiency.h"

#include <algorithm>

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

Denominators denominators(const Basis& basis, const std::string& type, Over over) {
  Denominators by;
  // Devices of a job are alike but for oddities: a rank's are its share of all.
  const double share = static_cast<double>(basis.job.devices_of_rank()) /
                       static_cast<double>(std::max<std::int64_t>(1, basis.busy_devices));
  const auto value_of = [&](std::string_view quantity, std::string_view kind) -> std::optional<double> {
    const PeakRate* one = basis.peak(quantity, kind);
    const std::optional<PeakRate> all = basis.total_peak(quantity, kind);
    if (over == Over::kDevice ? one == nullptr : !all) return std::nullopt;
    by.measured = by.measured && (over == Over::kDevice ? one->source : all->source) == "measured";
    return over == Over::kDevice ? one->value : over == Over::kRank ? share * all->value : all->value;
  };
  by.peak_flops = value_of("flops", type);
  by.peak_bandwidth = value_of("bandwidth", hw::kMemoryStream);
  if (basis.model) {
    const auto cache_bytes = static_cast<double>(basis.cache_bytes());
    by.weights_fit_cache = by.training_fits_cache = true;
    for (const model::Graph& part : basis.parts) {
      by.weights_fit_cache = by.weights_fit_cache && model::weights_read_bytes(part) <= cache_bytes;
      by.training_fits_cache = by.training_fits_cache && model::training_state_bytes(part) <= cache_bytes;
    }
    if (basis.parts.empty()) by.weights_fit_cache = by.training_fits_cache = false;
  }
  by.cost_why = basis.model_why;
  if (by.cost_why.empty() && basis.parts.empty()) by.cost_why = basis.job.why;
  return by;
}

Denominators for_stage(Denominators by, std::string_view stage) {
  if (stage == "forward" || stage == "backward" || stage == "optimizer") by.weights_fit_cache = by.training_fits_cache;
  return by;
}

std::optional<double> floor_ns(double flops, double bytes, const Denominators& by) {
  return model::floor_ns(flops, by.weights_fit_cache ? 0 : bytes, by.peak_flops.value_or(0),
                         by.peak_bandwidth.value_or(0));
}

std::optional<double> Denominators::ridge() const {
  if (!peak_flops || !peak_bandwidth || *peak_bandwidth <= 0) return std::nullopt;
  return *peak_flops / *peak_bandwidth;
}

namespace {

void compare_with_roof(Efficiency& e, double time_ns, const Denominators& by) {
  if (e.flops && e.bytes && *e.bytes > 0) e.intensity = *e.flops / *e.bytes;
  // Bytes that stay in the cache do not move: then there is no intensity to compare.
  if (e.intensity && by.ridge() && !by.weights_fit_cache) e.above_ridge = *e.intensity > *by.ridge();
  if (!e.floor_ns && e.flops && e.bytes) e.floor_ns = floor_ns(*e.flops, *e.bytes, by);
  if (e.floor_ns && time_ns > 0) e.of_floor = *e.floor_ns / time_ns;
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
  e.mfu = model::efficiency(e.flops.value_or(0), time_ns, by.peak_flops.value_or(0));
  if (e.recomputed_flops)
    e.hfu = model::efficiency(e.flops.value_or(0) + *e.recomputed_flops, time_ns, by.peak_flops.value_or(0));
  e.mbu = model::efficiency(e.bytes.value_or(0), time_ns, by.peak_bandwidth.value_or(0));
  e.bound = model::bound_by(e.flops.value_or(0), e.bytes.value_or(0), by.peak_flops.value_or(0),
                            by.peak_bandwidth.value_or(0));
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

}  // namespace llmprof::analyze
