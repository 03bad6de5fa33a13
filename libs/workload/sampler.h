#pragma once
// Picks the next token from logits. A pure function of its arguments: the same seed gives the same text.

#include <cstdint>
#include <span>

#include "workload/model.h"

namespace llmprof::workload {

struct Sampler {
  enum class Kind : std::uint8_t { kGreedy, kTopK };
  Kind kind = Kind::kGreedy;
  std::int64_t k = 40;  // kTopK: how many of the likeliest tokens may be drawn
  std::uint64_t seed = 0;
};

// `sequence` and `position` say which draw this is. logits (V).
Token sample(const Sampler& sampler, std::span<const float> logits, std::int64_t sequence, std::int64_t position);

}  // namespace llmprof::workload
