#pragma once
// Shapes in which products come nearest to a GPU's peak.

#include <cstdint>
#include <span>

#include "bench/type.h"

namespace llmprof::bench {

struct PeakShape {
  std::int64_t m = 0, n = 0, k = 0;
};

// Most promising first.
std::span<const PeakShape> peak_shapes(Type type);

}  // namespace llmprof::bench
