#pragma once
// Rates and ratios of something that ran (a stage, a module, an operator), and why one of them is unknown.
// FLOPs and bytes are those of libs/model, peaks and floors those of hw/roof.h.

#include <string>
#include <vector>

#include "analyze/context.h"
#include "analyze/summary.h"
#include "hw/roof.h"

namespace llmprof::analyze {

// What the numbers of one report are divided by: times of a stage by what all devices of the job can do, those of a
// step by what the devices of its rank can, and those of kernels by one device.
enum class Over : std::uint8_t { kJob, kRank, kDevice };
struct Denominators {
  std::optional<double> peak_flops, peak_bandwidth;
  double devices = 1;    // these peaks as multiples of one device's: Efficiency::compute_ns is of one
  std::string note;      // "" or why the peak FLOP/s are those of another type
  bool measured = true;  // the peaks, on this device; else they are its data sheet's
  bool weights_fit_cache = false;
  bool training_fits_cache = false;     // parameters, gradients and moments together
  std::string cost_why;                 // why flops and bytes are unknown where they are
  std::optional<double> ridge() const;  // FLOP/B
};

Denominators denominators(const AnalysisContext& analysis, const std::string& type, Over over);

// Peaks of the busiest device for every type of arithmetic of the model.
hw::Roofline roofline_of(const AnalysisContext& analysis);

// The same for one stage. A training step sweeps over parameters, gradients and moments: its weights are still in the
// cache when they are needed again only if all of these fit.
Denominators for_stage(Denominators by, std::string_view stage);

// Fills rates, ratios, bound and why from flops, compute_ns, flops_shapes and bytes.
// floor_ns, if it is not set yet, is that of the sums.
void complete(Efficiency& efficiency, double time_ns, const Denominators& by);

// Least time the work can take; bytes do not count when the weights stay in the cache.
// `compute_ns`: of the FLOPs on one device, each type at its own peak; unknown: all of them at by.peak_flops.
std::optional<double> floor_ns(double flops, double bytes, const Denominators& by,
                               std::optional<double> compute_ns = std::nullopt);

void add_why(std::string& why, std::string_view reason);

// Matrix products by shape, with the rates they reached.

struct Shape {
  GemmShape gemm;
  double flops = 0;  // of all its calls
};

// The costliest first.
Result<std::vector<Shape>> gemm_shapes(const trace::Run& run, const AnalysisContext& analysis);

// Bytes of one element; nullopt for a type we do not know.
std::optional<std::int64_t> element_bytes(std::string_view type);

}  // namespace llmprof::analyze
