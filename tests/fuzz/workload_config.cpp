// The workload's own reading of config.json. Nothing is built from it here: only the checks are tested.

#include "workload/config.h"

#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto config = workload::parse_config(input, "input");
  if (!config) return;
  const std::string text = workload::config_json(*config);
  const auto again = workload::parse_config(text, "again");
  require(bool(again));
  require(workload::config_json(*again) == text);
}

std::vector<std::string> seeds() {
  return {R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32})",
          R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 64,
    "tie_word_embeddings": true, "torch_dtype": "float32", "rms_norm_eps": 1e-5, "rope_theta": 10000.0})"};
}

std::vector<std::string> dictionary() {
  return {"\"model_type\"",
          "\"gpt2\"",
          "\"llama\"",
          "\"n_layer\"",
          "\"n_embd\"",
          "\"n_head\"",
          "\"vocab_size\"",
          "\"n_positions\"",
          "\"num_hidden_layers\"",
          "\"hidden_size\"",
          "\"num_attention_heads\"",
          "\"head_dim\"",
          "\"intermediate_size\"",
          "\"rope_theta\"",
          "\"rope_scaling\"",
          "null",
          "-1",
          "0",
          "1e300"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
