#pragma once
// What the model is trained on: a text that is part of the program (corpus.txt, written for it), as bytes. Byte b is
// token b, so only the first 256 rows of a larger vocabulary ever occur.

#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/model.h"

namespace llmprof::workload {

inline constexpr std::int64_t kByteTokens = 256;

std::string_view corpus();

struct TrainingBatch {
  std::vector<Token> inputs, targets;  // (B, T): targets are the inputs one byte later
};

// Sequences from places of the text that follow from seed and step only. The text must be longer than `tokens`.
TrainingBatch training_batch(std::string_view text, std::int64_t batch, std::int64_t tokens, std::uint64_t seed,
                             std::int64_t step);

}  // namespace llmprof::workload
