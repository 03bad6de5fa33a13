#pragma once
// A model small enough to count by hand, and a device with round numbers.

#include <gtest/gtest.h>

#include "analyze/design/design.h"

namespace llmprof::analyze::design {

template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  if (!result) std::abort();
  return std::move(*result);
}

inline Subject small_llama() {
  constexpr std::string_view kConfig = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 256,
    "max_position_embeddings": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
  return {.config = must(model::parse_config(kConfig, "small llama")), .origin = "a test", .notes = {}, .checkpoint = {}};
}

inline Roof small_roof() {
  return {.device = "round numbers",
          .source = "a test",
          .memory_bytes = 1e9,
          .on_chip_bytes = 0,
          .peaks = {{"flops", "bfloat16", 1e12, "FLOP/s", "spec", "by hand"},
                    {"flops", "float32", 5e11, "FLOP/s", "spec", "by hand"},
                    {"bandwidth", "read", 1e10, "B/s", "measured", "by hand"}},
          .why = ""};
}

}  // namespace llmprof::analyze::design
