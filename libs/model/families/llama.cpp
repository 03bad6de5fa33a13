// Llama and families whose layers are variants of it.

#include <algorithm>

#include "model/families/standard.h"

namespace llmprof::model {
// Defaults of the config classes in transformers, in the order of the fields of Defaults: hidden, layers, heads,
// kv_heads (0: as many as heads), head_dim (0: hidden / heads), width, vocab, positions, tied.
constexpr Defaults kLlamaConfig{4096, 32, 32, 0, 0, 11008, 32000, 2048};  // also GraniteConfig
constexpr Defaults kMistralConfig{4096, 32, 32, 8, 0, 14336, 32000, 131072};
constexpr Defaults kSmolLM3Config{2048, 36, 16, 4, 0, 11008, 128256, 32768, true};
constexpr Defaults kMixtralConfig{4096, 32, 32, 8, 0, 14336, 32000, 131072};
constexpr Defaults kOlmo2Config{4096, 32, 32, 0, 0, 11008, 50304, 2048};
constexpr Defaults kPhiConfig{2048, 24, 32, 0, 0, 8192, 51200, 2048};
constexpr Defaults kPhi3Config{3072, 32, 32, 0, 0, 8192, 32064, 4096};
constexpr Defaults kStarcoder2Config{3072, 30, 24, 2, 0, 12288, 49152, 4096, true};
constexpr Defaults kCohereConfig{8192, 40, 64, 0, 0, 22528, 256000, 8192, true};  // also Cohere2Config
constexpr Defaults kLlama4TextConfig{5120, 48, 40, 8, 128, 8192, 202048, 131072};

// Llama and its kin: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Mistral adds a window, SmolLM3 layers
// without rotation.
static const Defaults& defaults_of(std::string_view type) {
  if (type == "mistral" || type == "ministral") return kMistralConfig;
  return type == "smollm3" ? kSmolLM3Config : kLlamaConfig;
}

// Mistral's is used wherever it is given, SmolLM3's if use_sliding_window says so.
static std::int64_t read_llama_window(Fields& fields, std::string_view type) {
  if (type == "mistral" || type == "ministral") {
    return read_window(fields, 4096);  // MistralConfig
  }
  if (type != "smollm3") return 0;
  const std::int64_t window = read_window(fields, 0);
  return fields.flag_or("use_sliding_window", false) ? window : 0;
}

// no_rope_layers has a 0 for each layer that does not rotate; else, with `some_do_not`, every fourth does not.
static std::vector<std::int64_t> read_rotating(Fields& fields, std::int64_t layers, bool some_do_not) {
  std::vector<std::int64_t> rotating = fields.counts("no_rope_layers");
  const std::int64_t interval = fields.count_or("no_rope_layer_interval", 4);
  if (!rotating.empty()) fields.expect_length("no_rope_layers", rotating.size(), layers);
  if (fields.error()) return {};
  for (std::int64_t layer = 0; rotating.size() < static_cast<std::size_t>(layers); ++layer) {
    rotating.push_back(some_do_not && (layer + 1) % interval == 0 ? 0 : 1);
  }
  return rotating;
}

static Config read_llama(Fields& fields) {
  const std::string type = fields.text_or("model_type", "llama");
  Decoder decoder = read_decoder(fields, defaults_of(type));
  LayerKind& kind = decoder.kind;
  kind.attention.qkv_bias = kind.attention.out_bias = fields.flag_or("attention_bias", false);
  kind.mlp.bias = fields.flag_or("mlp_bias", false);
  const std::int64_t window = read_llama_window(fields, type);
  const std::vector<std::int64_t> rotating = read_rotating(fields, decoder.layers, type == "smollm3");
  if (fields.error()) return {};
  const std::vector<View> views = layer_views(fields, decoder.layers, [&](std::int64_t layer) {
    const bool here = type != "smollm3" || rotating[static_cast<std::size_t>(layer)] == 0;
    return window > 0 && here ? View::kSliding : View::kFull;
  });
  if (fields.error()) return {};
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    kind.attention.window = views[layer] == View::kSliding ? window : 0;
    kind.attention.rope = rotating[layer] != 0;
    add_layer(decoder.config, kind);
  }
  return decoder.config;
}

const Family kLlama{
    .name = "llama", .model_types = {"llama", "mistral", "ministral", "granite", "smollm3"}, .read = read_llama};

// Mixtral: Mistral with experts in every layer.
static Config read_mixtral(Fields& fields) {
  Decoder decoder = read_decoder(fields, kMixtralConfig);
  decoder.kind.mlp.experts = fields.count_or("num_local_experts", 8);
  decoder.kind.mlp.experts_per_token = fields.count_or("num_experts_per_tok", 2);
  decoder.kind.attention.window = read_window(fields, 0);
  expect_choice(fields, decoder.kind.mlp);
  return uniform(fields, std::move(decoder));
}

static Structure describe_mixtral(const Config& config) {
  return structure(config, {.naming = {.mlp = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"}});
}

const Family kMixtral{
    .name = "mixtral", .model_types = {"mixtral"}, .read = read_mixtral, .describe = describe_mixtral};

// OLMo 2: norms after attention and MLP instead of before, and over all heads of q and k together.
static Config read_olmo2(Fields& fields) {
  Decoder decoder = read_decoder(fields, kOlmo2Config);
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  attention.q_norm = attention.heads * attention.qk_dim;
  attention.k_norm = attention.kv_heads * attention.qk_dim;
  if (fields.text_or("model_type", "olmo2") == "olmo2") return uniform(fields, std::move(decoder));
  const std::int64_t window = read_window(fields, 4096);  // Olmo3Config, as its pattern of four
  const std::vector<View> views = windowed_but_every(fields, decoder.layers, 4);
  return with_views(std::move(decoder), views, window);
}

static Structure describe_olmo2(const Config& config) {
  return structure(config, {.before_attention = "",
                            .after_attention = "post_attention_layernorm",
                            .before_mlp = "",
                            .after_mlp = "post_feedforward_layernorm"});
}

const Family kOlmo2{.name = "olmo2", .model_types = {"olmo2", "olmo3"}, .read = read_olmo2, .describe = describe_olmo2};

// Phi-1, Phi-1.5, Phi-2: attention and MLP side by side behind one LayerNorm, biases everywhere, the logits' too.
static Config read_phi(Fields& fields) {
  Decoder decoder = read_decoder(fields, kPhiConfig);
  decoder.config.norm_bias = true;
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = true;
  decoder.kind.mlp.gated = false;
  decoder.kind.mlp.bias = true;
  if (fields.flag_or("qk_layernorm", false)) fields.caveat("qk_layernorm", "not counted: parameters are a lower bound");
  return uniform(fields, std::move(decoder));
}

static Structure describe_phi(const Config& config) {
  Structure whole = structure(
      config,
      {.naming = {.out = "dense", .up = "fc1", .down = "fc2"}, .last_norm = "final_layernorm", .before_mlp = ""});
  for (Op& op : whole.last) {
    if (op.op_class == OpClass::kLogits) op.parameters += config.vocab;  // its bias
  }
  return whole;
}

const Family kPhi{.name = "phi", .model_types = {"phi"}, .read = read_phi, .describe = describe_phi};

// Phi-3, Phi-3.5 and Phi-4: Llama with q, k and v in one matrix, gate and up in another.
static Config read_phi3(Fields& fields) {
  Decoder decoder = read_decoder(fields, kPhi3Config);
  decoder.kind.attention.window = read_window(fields, 0);
  fields.ignore({"full_attn_mod", "interpolate_factor"});  // 1 in every file
  return uniform(fields, std::move(decoder));
}

static Structure describe_phi3(const Config& config) {
  return structure(config, {.naming = {.fused_qkv = true, .fused_gate_up = true}});
}

const Family kPhi3{
    .name = "phi3", .model_types = {"phi3", "phi3_v", "phi4mm"}, .read = read_phi3, .describe = describe_phi3};

// StarCoder2: LayerNorm, biases everywhere, a plain MLP, a window.
static Config read_starcoder2(Fields& fields) {
  Decoder decoder = read_decoder(fields, kStarcoder2Config);
  const bool bias = fields.flag_or("use_bias", true);
  fields.ignore({"mlp_type"});  // one kind exists
  decoder.config.norm_bias = true;
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = bias;
  decoder.kind.attention.window = read_window(fields, 0);
  decoder.kind.mlp.gated = false;
  decoder.kind.mlp.bias = bias;
  return uniform(fields, std::move(decoder));
}

static Structure describe_starcoder2(const Config& config) {
  return structure(config, {.naming = {.up = "c_fc", .down = "c_proj"}});
}

const Family kStarcoder2{
    .name = "starcoder2", .model_types = {"starcoder2"}, .read = read_starcoder2, .describe = describe_starcoder2};

// Command R: attention and MLP side by side behind one norm (LayerNorm without bias), tied embeddings. Command R7B and
// A ("cohere2"): three of four layers see a window, the fourth does not rotate.
static Config with_windows(Fields& fields, Decoder decoder) {
  const std::int64_t window = read_window(fields, 4096);
  const std::int64_t pattern = fields.count_or("sliding_window_pattern", 4);
  const std::vector<View> views = windowed_but_every(fields, decoder.layers, pattern);
  if (fields.error()) return {};
  for (const View view : views) {
    decoder.kind.attention.window = view == View::kSliding ? window : 0;
    decoder.kind.attention.rope = view == View::kSliding;
    add_layer(decoder.config, decoder.kind);
  }
  return std::move(decoder.config);
}

static Config read_cohere(Fields& fields) {
  Decoder decoder = read_decoder(fields, kCohereConfig);
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

static Structure describe_cohere(const Config& config) { return structure(config, {.before_mlp = ""}); }

const Family kCohere{
    .name = "cohere", .model_types = {"cohere", "cohere2"}, .read = read_cohere, .describe = describe_cohere};

// Llama 4: layers with rotation see their own chunk only, every fourth has none and sees everything; one routed and one
// shared expert per token in some or all layers.
static std::vector<bool> read_sparse(Fields& fields, std::int64_t layers) {
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  const bool listed = fields.has("moe_layers");
  for (const std::int64_t layer : fields.counts("moe_layers")) {
    if (layer < layers) sparse[static_cast<std::size_t>(layer)] = true;
  }
  const std::int64_t step = fields.count_or("interleave_moe_layer_step", 1);
  if (listed || fields.error()) return sparse;
  for (std::int64_t layer = step - 1; layer < layers; layer += step) sparse[static_cast<std::size_t>(layer)] = true;
  return sparse;
}

static Config read_llama4(Fields& fields) {
  Decoder decoder = read_decoder(fields, kLlama4TextConfig);
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  fields.ignore({"use_qk_norm", "for_llm_compressor"});  // the norm has no weights
  const std::int64_t width = decoder.kind.mlp.width;
  const Mlp dense{.width = fields.count_or("intermediate_size_mlp", 16384)};
  const Mlp sparse{.width = width,
                   .experts = fields.count_or("num_local_experts", 16),
                   .experts_per_token = fields.count_or("num_experts_per_tok", 1),
                   .shared_width = width};
  expect_choice(fields, sparse);
  const std::int64_t chunk = fields.count_or("attention_chunk_size", fields.is_null("attention_chunk_size") ? 0 : 8192);
  const std::vector<std::int64_t> rotating = read_rotating(fields, decoder.layers, true);
  const std::vector<bool> with_experts = read_sparse(fields, decoder.layers);
  if (fields.error()) return {};
  const std::vector<View> views = layer_views(fields, decoder.layers, [&](std::int64_t layer) {
    return rotating[static_cast<std::size_t>(layer)] != 0 ? View::kChunked : View::kFull;
  });
  if (fields.error()) return {};
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    attention.chunk = views[layer] == View::kChunked ? chunk : 0;
    attention.rope = rotating[layer] != 0;
    decoder.kind.mlp = with_experts[layer] ? sparse : dense;
    add_layer(decoder.config, decoder.kind);
  }
  return decoder.config;
}

static Structure describe_llama4(const Config& config) {
  return structure(config, {.naming = {.mlp = "feed_forward", .router = "router", .shared = "shared_expert"}});
}

const Family kLlama4{
    .name = "llama4", .model_types = {"llama4_text", "llama4"}, .read = read_llama4, .describe = describe_llama4};

}  // namespace llmprof::model
