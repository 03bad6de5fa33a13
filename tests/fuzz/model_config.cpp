// config.json of a model, as Hugging Face writes it or as a program declares it in a mark: what is accepted must have
// finite costs.

#include <cmath>

#include "fuzz.h"
#include "model/families.h"
#include "model/memory.h"
#include "model/model.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  auto config = model::parse_config(input, "input");
  if (!config) {
    require(!config.error().message.empty());
    return;
  }
  require(config->layers() > 0 && model::find_family(config->family) != nullptr);
  if (config->layers() > 64) return;  // every operator of every layer: time, not risk
  const model::Graph graph(*config);
  require(model::parameters(graph) > 0 && model::active_parameters(graph) > 0);
  for (const model::Pass& pass : {model::prefill(2, 3, 5), model::decode(1, 7)}) {
    double flops = 0;
    for (const model::OpCost& cost : model::analyze(graph, pass, {.on_chip_bytes = 1 << 20})) {
      require(std::isfinite(cost.flops) && cost.flops >= 0 && std::isfinite(cost.bytes()));
      require(cost.weight_bytes >= 0 && cost.kv_bytes >= 0 && cost.activation_bytes >= 0);
      flops += cost.flops;
    }
    require(flops > 0);
  }
  require(std::isfinite(model::weights_bytes(graph)) && std::isfinite(model::kv_cache_bytes(graph, 2, 100)));
  require(model::set_types(*config, {.weights = "int4", .kv = "fp8", .activations = "float16"}).has_value());
  require(model::weights_bytes(model::Graph(*config)) > 0);
}

// One of each kind of family, with the keys that only it has.
std::vector<std::string> seeds() {
  const std::string common = R"("num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 64,
    "torch_dtype": "bfloat16", "rms_norm_eps": 1e-5)";
  const std::string latent = R"("q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "noaux_tc", "num_nextn_predict_layers": 1)";
  return {
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32})",
      R"({"model_type": "llama", )" + common + R"(, "tie_word_embeddings": true})",
      R"({"model_type": "mistral", )" + common + R"(, "sliding_window": 8, "layer_types": ["full_attention",
        "sliding_attention", "full_attention", "sliding_attention"]})",
      R"({"model_type": "qwen3_moe", )" + common + R"(, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "decoder_sparse_step": 2, "mlp_only_layers": [0]})",
      R"({"model_type": "deepseek_v3", )" + common + ", " + latent + R"(, "quantization_config": {"quant_method": "fp8",
        "weight_block_size": [128, 128]}})",
      R"({"model_type": "llama4_text", )" + common + R"(, "num_local_experts": 4, "attention_chunk_size": 8,
        "no_rope_layers": [1, 1, 1, 0], "interleave_moe_layer_step": 2})",
      R"({"model_type": "gemma3", "dtype": "bfloat16", "vision_config": {}, "text_config": {"model_type": "gemma3_text",
        "num_hidden_layers": 4, "sliding_window": 8, "sliding_window_pattern": 2}})",
      R"({"model_type": "gpt_oss", )" + common + R"(, "num_local_experts": 4, "quantization_config": {"quant_method":
        "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}})",
      R"({"model_type": "starcoder2", )" + common + R"(, "quantization_config": {"quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 128,
        "symmetric": false}, "input_activations": {"num_bits": 8, "type": "float"}}}, "kv_cache_scheme": {"num_bits": 8,
        "type": "float"}, "ignore": ["lm_head", "re:.*mlp\\.(gate|up)_proj$", "re:model\\.layers\\.[0-9]{1,2}"]}})",
      R"({"model_type": "never_seen", )" + common + R"(, "quantization_config": {"quant_method": "gptq", "bits": 4,
        "group_size": 32, "dynamic": {"-:.*down.*": {}}}, "kv_cache_dtype": "fp8"})"};
}

std::vector<std::string> dictionary() {
  std::vector<std::string> words{"null",
                                 "-1",
                                 "0",
                                 "1e300",
                                 "9223372036854775807",
                                 "true",
                                 "[]",
                                 "{}",
                                 "\"re:.*\"",
                                 "\"float8_e4m3fn\"",
                                 "\"nf4\"",
                                 "\"NVFP4\"",
                                 "\"bitsandbytes\"",
                                 "\"awq\"",
                                 "\"torchao\"",
                                 "\"modelopt\"",
                                 "\"quark\"",
                                 "\"hqq\"",
                                 "\"linear_attention\""};
  for (const model::Family* family : model::families()) {
    for (const std::string_view type : family->model_types) words.push_back("\"" + std::string(type) + "\"");
  }
  for (const char* key : {"n_inner",
                          "ffn_dim",
                          "attention_bias",
                          "mlp_bias",
                          "use_qk_norm",
                          "use_sliding_window",
                          "max_window_layers",
                          "shared_expert_intermediate_size",
                          "no_rope_layer_interval",
                          "moe_layers",
                          "language_config",
                          "llm_config",
                          "rope_parameters",
                          "auto_map",
                          "load_in_4bit",
                          "bnb_4bit_use_double_quant",
                          "bnb_4bit_compute_dtype",
                          "quant_algo",
                          "kv_cache_quant_algo",
                          "quant_type",
                          "global_quant_config",
                          "block_structure"}) {
    words.push_back(std::string("\"") + key + "\"");
  }
  return words;
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
