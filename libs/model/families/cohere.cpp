// Command R: attention and MLP side by side behind one norm (LayerNorm without bias), tied embeddings. Command R7B and
// A ("cohere2"): three of four layers see a window, the fourth does not rotate.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace cohere {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"cohere", "cohere2"};

Config with_windows(Fields& fields, Decoder decoder) {
  const std::int64_t window = read_window(fields, 4096);
  const std::int64_t pattern = fields.count_or("sliding_window_pattern", 4);
  const std::vector<View> views = layer_views(fields, decoder.layers, [&](std::int64_t layer) {
    return pattern > 0 && (layer + 1) % pattern != 0 ? View::kSliding : View::kFull;
  });
  if (fields.error()) return {};
  for (const View view : views) {
    decoder.kind.attention.window = view == View::kSliding ? window : 0;
    decoder.kind.attention.rope = view == View::kSliding;
    add_layer(decoder.config, decoder.kind);
  }
  return std::move(decoder.config);
}

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 8192,  // CohereConfig, Cohere2Config
                                          .layers = 40,
                                          .heads = 64,
                                          .width = 22528,
                                          .vocab = 256000,
                                          .positions = 8192,
                                          .tied = true});
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  fields.ignore({"order_of_interleaved_layers", "layer_switch", "use_embedding_sharing", "use_gated_activation",
                 "use_parallel_block", "use_parallel_embedding"});  // repeat what the family is
  if (fields.text_or("model_type", "cohere") == "cohere2") return with_windows(fields, std::move(decoder));
  if (fields.flag_or("use_qk_norm", false)) {  // weights for each head
    attention.q_norm = attention.heads * attention.qk_dim;
    attention.k_norm = attention.kv_heads * attention.qk_dim;
  }
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) { return structure(config, {.before_mlp = ""}); }

}  // namespace
}  // namespace cohere

extern const Family kCohere;
const Family kCohere{
    .name = "cohere", .model_types = cohere::kModelTypes, .read = cohere::read, .describe = cohere::describe};

}  // namespace llmprof::model
