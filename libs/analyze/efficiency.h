#pragma once
// Rates and ratios of something that ran (a stage, a module, an operator), and why one of them is unknown.
// The formulas are those of libs/model.

#include <string>

#include "analyze/basis.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

// What the numbers of one report are divided by: times of a stage by what all devices of the job can do, those of a
// step by what the devices of its rank can, and those of kernels by one device.
enum class Over : std::uint8_t { kJob, kRank, kDevice };
struct Denominators {
  std::optional<double> peak_flops, peak_bandwidth;
  bool measured = true;  // the peaks, on this device; else they are its data sheet's
  bool weights_fit_cache = false;
  bool training_fits_cache = false;     // parameters, gradients and moments together
  std::string cost_why;                 // why flops and bytes are unknown where they are
  std::optional<double> ridge() const;  // FLOP/B
};

Denominators denominators(const Basis& basis, const std::string& type, Over over);

// The same for one stage. A training step sweeps over parameters, gradients and moments: its weights are still in the
// cache when they are needed again only if all of these fit.
Denominators for_stage(Denominators by, std::string_view stage);

// Fills rates, ratios, bound and why from flops, flops_shapes and bytes.
// floor_ns, if it is not set yet, is that of the sums.
void complete(Efficiency& efficiency, double time_ns, const Denominators& by);

// Least time the work can take; bytes do not count when the weights stay in the cache.
std::optional<double> floor_ns(double flops, double bytes, const Denominators& by);

void add_why(std::string& why, std::string_view reason);

}  // namespace llmprof::analyze
