#pragma once
// The GPT-2 whose costs the tests derive by hand.

#include "model/model.h"

namespace llmprof::model {

// Hidden 8, 2 heads of 4, MLP 32, 10 words, 16 positions, 3 layers.
inline Config tiny_gpt2() {
  return {.family = "gpt2",
          .layers = 3,
          .hidden = 8,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 4,
          .intermediate = 32,
          .vocab = 10,
          .positions = 16,
          .biases = true,
          .tied_embeddings = true};
}

inline constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

}  // namespace llmprof::model
