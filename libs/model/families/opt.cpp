// OPT: LayerNorm, learned positions (two rows more than positions), biases everywhere, tied embeddings.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace opt {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"opt"};

Config read(Fields& fields) {  // defaults: OPTConfig
  Config config;
  const std::int64_t layers = fields.size({"num_hidden_layers"}, 12);
  config.hidden = fields.size({"hidden_size"}, 768);
  const std::int64_t heads = fields.size({"num_attention_heads"}, 12);
  config.positions = fields.size({"max_position_embeddings"}, 2048) + 2;
  config.position_table = true;
  config.vocab = fields.size({"vocab_size"}, 50272);
  config.norm_bias = fields.flag_or("layer_norm_elementwise_affine", true);
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  fields.expect_divisible("hidden_size", config.hidden, "num_attention_heads", heads);
  const std::int64_t head_dim = heads > 0 ? config.hidden / heads : 0;
  const bool bias = fields.flag_or("enable_bias", true);
  if (fields.count_or("word_embed_proj_dim", config.hidden) != config.hidden) {
    fields.caveat("word_embed_proj_dim",
                  "tables are counted as wide as hidden_size: their parameters are upper bounds");
  }
  if (!fields.flag_or("do_layer_norm_before", true)) {
    fields.caveat("do_layer_norm_before", "a last norm is counted that is not there: some 2 x hidden_size parameters");
  }
  set_layers(config, layers,
             {.attention = {.heads = heads,
                            .kv_heads = heads,
                            .qk_dim = head_dim,
                            .v_dim = head_dim,
                            .qkv_bias = bias,
                            .out_bias = bias,
                            .rope = false},
              .mlp = {.width = fields.size({"ffn_dim"}, 3072), .gated = false, .bias = bias}});
  return config;
}

Structure describe(const Config& config) {
  Structure whole = structure(config, {.naming = {.out = "out_proj", .up = "fc1", .down = "fc2"},
                                       .prefix = "decoder.layers",
                                       .embedding = "decoder.embed_tokens",
                                       .last_norm = "decoder.final_layer_norm",
                                       .before_attention = "self_attn_layer_norm",
                                       .before_mlp = "final_layer_norm"});
  constexpr std::string_view kMlp = "mlp.";  // its matrices belong to the layer itself
  for (std::vector<Op>& ops : whole.kinds) {
    for (Op& op : ops) {
      if (op.name.starts_with(kMlp)) op.name.erase(0, kMlp.size());
    }
  }
  return whole;
}

}  // namespace
}  // namespace opt

extern const Family kOpt;
const Family kOpt{.name = "opt", .model_types = opt::kModelTypes, .read = opt::read, .describe = opt::describe};

}  // namespace llmprof::model
