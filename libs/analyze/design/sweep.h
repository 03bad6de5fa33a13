#pragma once
// One design under many conditions: the graph is built once and costed at every point.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/design/design.h"
#include "base/axis.h"
#include "base/result.h"
#include "model/pass.h"

namespace llmprof::analyze::design {

inline constexpr std::size_t kMaxSweepPoints = 1'000'000;

struct SweepPoint {
  Load load;
  double memory_bytes = 0;  // on the device that needs most
  std::optional<bool> fits;
  // Inference: of the prefill and the decode step. Training: of the whole step, in `first` alone.
  struct Pass {
    double flops = 0, bytes = 0;
    Floor floor;
    std::optional<double> slowest_ns;  // of the devices of a pipeline
    std::optional<double> intensity() const { return bytes > 0 ? std::optional(flops / bytes) : std::nullopt; }
  };
  Pass first, decode;
  std::optional<double> tokens_per_s;               // of all sequences: decode, or training
  std::optional<double> tokens_per_s_per_sequence;  // decode
};

struct Sweep {
  std::vector<base::Axis> axes;  // "batch", "prompt", "context": the last one changes fastest
  bool train = false;
  std::vector<SweepPoint> points;
};

Result<Sweep> sweep(const Subject& subject, const Options& options, const Roof& roof, std::vector<base::Axis> axes);

// The sequences of a mixed pass as the user types them: "8x1@2048,1x512" is eight sequences that decode at a context of
// 2048 and one that prefills 512 tokens.

Result<std::vector<model::Sequences>> parse_sequences(std::string_view text);

}  // namespace llmprof::analyze::design
