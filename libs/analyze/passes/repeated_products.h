#pragma once
// Passes over a model that nobody described: the calls of a thread repeat, and one product comes once in each pass: the
// one that makes the logits, mostly the largest of all. It separates the passes; the rows of the other products tell
// how many tokens each one worked on. docs/format/analysis.md states the rules in words.

#include <optional>

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

}  // namespace llmprof::analyze
