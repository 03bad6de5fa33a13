#pragma once
// Training told from the matrix products alone: a product with weights has two on the way back, one of which multiplies
// activations by gradients over all rows. Such products come in stretches, backward passes; what lies between two of
// them is forward. docs/format/analysis.md states the rules in words.

#include <cstdint>
#include <vector>

#include "analyze/passes/match.h"

namespace llmprof::analyze {

// Launches of kernels that update parameters (their names say so).
struct Updates {
  std::vector<std::int64_t> process_id, begin_ns, end_ns;  // by begin; host times
  std::size_t size() const { return begin_ns.size(); }
};

struct TrainingPass {
  enum class Kind : std::uint8_t { kForward, kBackward, kOptimizer, kForwardOnly } kind = Kind::kForward;
  std::int64_t process_id = 0, thread_id = 0;  // the thread that goes forward
  std::int64_t back_thread_id = 0;             // backward: the thread that goes back, which may be the same
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t rows = 0, tokens = 0;  // batch x tokens; tokens of a sequence, 0: unknown
};

// By process, then begin. Empty: no process trains, or it cannot be told where passes begin.
std::vector<TrainingPass> training_passes(const Calls& calls, const Updates& updates);

}  // namespace llmprof::analyze
