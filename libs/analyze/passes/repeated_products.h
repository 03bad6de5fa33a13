#pragma once
// Passes over a model that nobody described: the calls of a thread repeat, and one product comes once in each pass: the
// one that makes the logits, mostly the largest of all. It separates the passes; the rows of the other products tell
// how many tokens each one worked on. docs/format/analysis.md states the rules in words.

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/passes/match.h"

namespace llmprof::analyze {

inline constexpr std::int64_t kVocabulary = 4;  // times the width of a row: what makes logits is at least as wide
inline constexpr double kRepeatedShare = 0.85;  // of a match by name: what such a pass counts at most

// The matrix that separates passes, of those that products were made with at least three times: the largest, unless it
// comes in every layer while others come once a pass. `calls` and `captured` are of the same run; calls in graphs count
// once.
std::optional<MatrixSize> separating_matrix(const Calls& calls, const Calls& captured);

// The passes of each thread (of `captured`: of each graph), by thread, then time. Only calls of segment 0 or more
// count. Passes with far fewer products than most are left out. A smaller model with the same vocabulary drafts for the
// larger one; what comes before a decoder, with rows of its own that the decoder looks at again, is an encoder.
Matches repeated_passes(const Calls& calls, const MatrixSize& separator);

// The value that was counted most often, the smallest of several; 0 if there is none.
std::int64_t most_common(const std::map<std::int64_t, std::int64_t>& counts);

// Steps of a thread that launches the same sequence of work again and again, told from nothing but that sequence: the
// last resort, where neither ranges nor matrix products say anything. docs/format/analysis.md states the rules.

// What one thread launched, in order.
struct LaunchSequence {
  std::vector<std::uint32_t> symbol;    // kernels by name, graphs by what they are
  std::vector<std::int64_t> begin_ns;   // of the launch
  std::vector<std::int64_t> done_ns;    // its end on the device
  std::vector<std::int64_t> device_ns;  // its time there
  std::size_t size() const { return symbol.size(); }
};

struct PeriodicStep {
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct Periodicity {
  std::size_t period = 0;  // launches
  double match = 0;        // device time of launches that come again one period later, of all device time
  std::vector<PeriodicStep> steps;
};

// Nothing: the sequence does not repeat for at least half of its device time.
std::optional<Periodicity> find_period(const LaunchSequence& sequence);

// Training told from the matrix products alone: a product with weights has two on the way back, one of which multiplies
// activations by gradients over all rows. Such products come in stretches, backward passes; what lies between two of
// them is forward. docs/format/analysis.md states the rules in words.

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
