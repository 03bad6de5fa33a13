// Falcon: one matrix for q, k and v, one or few key-value heads, attention and MLP side by side, tied embeddings. The
// newer architecture has a norm for each of the two.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace falcon {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"falcon"};

bool has_two_norms(Fields& fields, bool newer) {
  const std::int64_t norms = fields.count_or("num_ln_in_parallel_attn", newer ? 2 : 1);
  return !fields.flag_or("parallel_attn", true) || norms == 2;
}

Config read(Fields& fields) {  // defaults: FalconConfig
  Config config;
  const std::int64_t layers = fields.size({"num_hidden_layers", "n_layer"}, 32);
  config.hidden = fields.size({"hidden_size"}, 4544);
  const std::int64_t heads = fields.size({"num_attention_heads", "n_head"}, 71);
  config.vocab = fields.size({"vocab_size"}, 65024);
  config.positions = fields.count_or("max_position_embeddings", 2048);
  config.norm_bias = true;
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  const bool newer = fields.flag_or("new_decoder_architecture", false);
  const std::int64_t older_kv_heads = fields.flag_or("multi_query", true) ? 1 : heads;
  const std::int64_t named = fields.count_or(fields.has("n_head_kv") ? "n_head_kv" : "num_kv_heads", heads);
  const std::int64_t kv_heads = newer ? named : older_kv_heads;
  fields.expect_divisible("hidden_size", config.hidden, "num_attention_heads", heads);
  fields.expect_divisible("num_attention_heads", heads, "num_kv_heads", kv_heads);
  const std::int64_t head_dim = heads > 0 ? config.hidden / heads : 0;
  const bool bias = fields.flag_or("bias", false);
  config.family = has_two_norms(fields, newer) ? "falcon_two_norms" : "falcon";
  set_layers(config, layers,
             {.attention = {.heads = heads,
                            .kv_heads = kv_heads,
                            .qk_dim = head_dim,
                            .v_dim = head_dim,
                            .qkv_bias = bias,
                            .out_bias = bias,
                            .rope = !fields.flag_or("alibi", false)},
              .mlp = {.width = fields.count_or("ffn_hidden_size", 4 * config.hidden), .gated = false, .bias = bias}});
  return config;
}

Structure with_norms(const Config& config, const char* before_attention, const char* before_mlp) {
  return structure(config, {.naming = {.attention = "self_attention",
                                       .fused_qkv = true,
                                       .qkv = "query_key_value",
                                       .out = "dense",
                                       .up = "dense_h_to_4h",
                                       .down = "dense_4h_to_h"},
                            .prefix = "h",
                            .embedding = "word_embeddings",
                            .last_norm = "ln_f",
                            .before_attention = before_attention,
                            .before_mlp = before_mlp});
}

Structure describe_one(const Config& config) { return with_norms(config, "input_layernorm", ""); }
Structure describe_two(const Config& config) { return with_norms(config, "ln_attn", "ln_mlp"); }

}  // namespace
}  // namespace falcon

extern const Family kFalcon, kFalconTwoNorms;
const Family kFalcon{
    .name = "falcon", .model_types = falcon::kModelTypes, .read = falcon::read, .describe = falcon::describe_one};
const Family kFalconTwoNorms{
    .name = "falcon_two_norms", .model_types = {}, .read = falcon::read, .describe = falcon::describe_two};

}  // namespace llmprof::model
