// GPT-J: attention and MLP side by side behind one LayerNorm; biases in the MLP and at the logits.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gptj {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gptj"};

Config read(Fields& fields) {  // defaults: GPTJConfig
  Config config;
  const std::int64_t layers = fields.size({"n_layer", "num_hidden_layers"}, 28);
  config.hidden = fields.size({"n_embd", "hidden_size"}, 4096);
  const std::int64_t heads = fields.size({"n_head", "num_attention_heads"}, 16);
  config.positions = fields.size({"n_positions", "max_position_embeddings"}, 2048);
  config.vocab = fields.size({"vocab_size"}, 50400);
  config.norm_bias = true;
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  fields.expect_divisible("n_embd", config.hidden, "n_head", heads);
  const std::int64_t head_dim = heads > 0 ? config.hidden / heads : 0;
  set_layers(config, layers,
             {.attention = {.heads = heads, .kv_heads = heads, .qk_dim = head_dim, .v_dim = head_dim},
              .mlp = {.width = fields.count_or("n_inner", 4 * config.hidden), .gated = false, .bias = true}});
  return config;
}

Structure describe(const Config& config) {
  Structure whole =
      structure(config, {.naming = {.attention = "attn", .out = "out_proj", .up = "fc_in", .down = "fc_out"},
                         .prefix = "h",
                         .embedding = "wte",
                         .last_norm = "ln_f",
                         .before_attention = "ln_1",
                         .before_mlp = ""});
  for (Op& op : whole.last) {
    if (op.op_class == OpClass::kLogits) op.parameters += config.vocab;  // its bias
  }
  return whole;
}

}  // namespace
}  // namespace gptj

extern const Family kGptj;
const Family kGptj{.name = "gptj", .model_types = gptj::kModelTypes, .read = gptj::read, .describe = gptj::describe};

}  // namespace llmprof::model
