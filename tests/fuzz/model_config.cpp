// config.json of a model, as Hugging Face writes it or as a program declares it in a mark: what is accepted must have
// finite costs.

#include <cmath>

#include "fuzz.h"
#include "model/model.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto config = model::parse_config(input, "input");
  if (!config) return;
  const model::Graph graph(*config);
  require(model::parameters(graph) > 0);
  if (config->layers() > 200) return;  // a list of operators per layer: time, not risk
  double flops = 0;
  for (const model::OpCost& cost : model::analyze(graph, model::prefill(2, 3, 5), {.on_chip_bytes = 1 << 20})) {
    require(std::isfinite(cost.flops) && cost.flops >= 0 && cost.weight_bytes >= 0 && cost.kv_bytes >= 0);
    flops += cost.flops;
  }
  require(flops > 0 && std::isfinite(model::weights_read_bytes(graph)));
}

std::vector<std::string> seeds() {
  return {R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32})",
          R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 64,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-5})"};
}

std::vector<std::string> dictionary() {
  return {"\"model_type\"",
          "\"gpt2\"",
          "\"llama\"",
          "\"n_layer\"",
          "\"n_embd\"",
          "\"n_head\"",
          "\"n_inner\"",
          "\"vocab_size\"",
          "\"n_positions\"",
          "\"num_hidden_layers\"",
          "\"hidden_size\"",
          "\"num_attention_heads\"",
          "\"num_key_value_heads\"",
          "\"head_dim\"",
          "\"intermediate_size\"",
          "\"torch_dtype\"",
          "\"dtype\"",
          "\"quantization_config\"",
          "null",
          "-1",
          "0",
          "1e300",
          "9223372036854775807"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
