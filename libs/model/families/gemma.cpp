// The Gemma families.

#include "model/families/standard.h"

namespace llmprof::model {
// Defaults of the config classes in transformers, in the order of the fields of Defaults: hidden, layers, heads,
// kv_heads (0: as many as heads), head_dim (0: hidden / heads), width, vocab, positions, tied.
constexpr Defaults kGemmaConfig{3072, 28, 16, 16, 256, 24576, 256000, 8192, true};
constexpr Defaults kGemma2Config{2304, 26, 8, 4, 256, 9216, 256000, 8192, true};
constexpr Defaults kGemma3TextConfig{2304, 26, 8, 4, 256, 9216, 262208, 131072, true};

// Gemma: Llama's layers with wide heads, a GELU gate and tied embeddings.
static Config read_gemma(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGemmaConfig);
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = fields.flag_or("attention_bias", false);
  return uniform(fields, std::move(decoder));
}

const Family kGemma{.name = "gemma", .model_types = {"gemma"}, .read = read_gemma};

// Gemma 2: every other layer sees a window; norms before and after attention and MLP.
static Config read_gemma2(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGemma2Config);
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = fields.flag_or("attention_bias", false);
  fields.ignore({"sliding_window_size"});  // the same in older files
  const std::int64_t window = read_window(fields, 4096);
  const std::vector<View> views = windowed_but_every(fields, decoder.layers, 2);
  return with_views(std::move(decoder), views, window);
}

// Norms before and after attention and MLP.
static Structure describe_gemma2(const Config& config) {
  return structure(config, {.after_attention = "post_attention_layernorm",
                            .before_mlp = "pre_feedforward_layernorm",
                            .after_mlp = "post_feedforward_layernorm"});
}

const Family kGemma2{.name = "gemma2", .model_types = {"gemma2"}, .read = read_gemma2, .describe = describe_gemma2};

// Gemma 3: of six layers, five see a window; norms over the heads of q and k instead of soft caps.
static Config read_gemma3(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGemma3TextConfig);
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  attention.q_norm = attention.k_norm = attention.qk_dim;
  const std::int64_t window = read_window(fields, 4096);
  const std::int64_t older = fields.count_or("_sliding_window_pattern", 6);
  const std::int64_t pattern = fields.count_or("sliding_window_pattern", older);
  const std::vector<View> views = windowed_but_every(fields, decoder.layers, pattern);
  return with_views(std::move(decoder), views, window);
}

const Family kGemma3{
    .name = "gemma3", .model_types = {"gemma3_text", "gemma3"}, .read = read_gemma3, .describe = describe_gemma2};

}  // namespace llmprof::model
