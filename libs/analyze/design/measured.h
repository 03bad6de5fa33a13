#pragma once
// Model-level efficiency from one measured number: tokens/s, TTFT or TPOT. No profile is needed for it.

#include <optional>
#include <string>
#include <vector>

#include "analyze/design/design.h"

namespace llmprof::analyze::design {

struct Measurement {
  std::optional<double> tokens_per_s;  // of all sequences: in decode, or of training
  std::optional<double> ttft_ns, tpot_ns;
};

struct Reached {
  std::string stage;                        // "prefill", "decode", "training step"
  std::string from;                         // "--measured-tps 1200"
  double time_ns = 0;                       // of one pass
  double flops_per_s = 0, bytes_per_s = 0;  // on each device
  std::optional<double> mfu;                // model FLOPs / time / peak: sum over types of FLOPs / peak, by the time
  std::optional<double> hfu;                // training: with what is computed again
  std::optional<double> mbu;                // bytes that must move / time / bandwidth
  std::optional<double> floor_ns;           // of tokens/s: with a batch in every stage of a pipeline
  std::optional<double> floor_share;        // floor / time
  std::string why;                          // of what is unknown, or above 1
};

Result<std::vector<Reached>> reached(const Design& design, const Measurement& measurement);

}  // namespace llmprof::analyze::design
