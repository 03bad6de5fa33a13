// GPT-2 and the families that descend from it, Falcon, and OpenAI's open-weight models.

#include "model/families/standard.h"

namespace llmprof::model {
// Defaults of the config classes in transformers, in the order of the fields of Defaults: hidden, layers, heads,
// kv_heads (0: as many as heads), head_dim (0: hidden / heads), width, vocab, positions, tied.
constexpr Defaults kGPTNeoXConfig{6144, 44, 64, 0, 0, 24576, 50432, 2048};
constexpr Defaults kGptOssConfig{2880, 36, 64, 8, 64, 2880, 201088, 131072};

// GPT-2: LayerNorm, learned positions, one fused projection for q, k and v, GELU, biases everywhere, tied embeddings.
static Config read_gpt2(Fields& fields) {  // defaults: GPT2Config
  Config config;
  const std::int64_t layers = fields.size({"n_layer", "num_hidden_layers"}, 12);
  config.hidden = fields.size({"n_embd", "hidden_size"}, 768);
  const std::int64_t heads = fields.size({"n_head", "num_attention_heads"}, 12);
  config.positions = fields.size({"n_positions", "max_position_embeddings"}, 1024);
  config.position_table = true;
  config.vocab = fields.size({"vocab_size"}, 50257);
  config.norm_bias = true;
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  fields.expect_divisible("n_embd", config.hidden, "n_head", heads);
  const std::int64_t head_dim = heads > 0 ? config.hidden / heads : 0;
  set_layers(config, layers,
             {.attention = {.heads = heads,
                            .kv_heads = heads,
                            .qk_dim = head_dim,
                            .v_dim = head_dim,
                            .qkv_bias = true,
                            .out_bias = true,
                            .rope = false},
              .mlp = {.width = fields.count_or("n_inner", 4 * config.hidden), .gated = false, .bias = true}});
  return config;
}

static Structure describe_gpt2(const Config& config) {
  return structure(
      config,
      {.naming =
           {.attention = "attn", .fused_qkv = true, .qkv = "c_attn", .out = "c_proj", .up = "c_fc", .down = "c_proj"},
       .prefix = "h",
       .embedding = "wte",
       .last_norm = "ln_f",
       .before_attention = "ln_1",
       .before_mlp = "ln_2"});
}

const Family kGpt2{.name = "gpt2", .model_types = {"gpt2"}, .read = read_gpt2, .describe = describe_gpt2};

// GPT-J: attention and MLP side by side behind one LayerNorm; biases in the MLP and at the logits.
static Config read_gptj(Fields& fields) {  // defaults: GPTJConfig
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

static Structure describe_gptj(const Config& config) {
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

const Family kGptj{.name = "gptj", .model_types = {"gptj"}, .read = read_gptj, .describe = describe_gptj};

// GPT-NeoX and Pythia: LayerNorm, one matrix for q, k and v, rotation of a part of each head, biases everywhere.
static Config read_gpt_neox(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGPTNeoXConfig);
  decoder.config.norm_bias = true;
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = fields.flag_or("attention_bias", true);
  decoder.kind.mlp.gated = false;
  decoder.kind.mlp.bias = true;
  fields.ignore({"use_parallel_residual"});  // side by side or in turn: the same products
  return uniform(fields, std::move(decoder));
}

static Structure describe_gpt_neox(const Config& config) {
  Structure whole = structure(config, {.naming = {.attention = "attention",
                                                  .fused_qkv = true,
                                                  .qkv = "query_key_value",
                                                  .out = "dense",
                                                  .up = "dense_h_to_4h",
                                                  .down = "dense_4h_to_h"},
                                       .embedding = "embed_in",
                                       .last_norm = "final_layer_norm"});
  for (Op& op : whole.last) {
    if (op.op_class == OpClass::kLogits) op.name = "embed_out";
  }
  return whole;
}

const Family kGptNeox{
    .name = "gpt_neox", .model_types = {"gpt_neox"}, .read = read_gpt_neox, .describe = describe_gpt_neox};

// GPT-OSS: every other layer sees a window, a learned sink per head, biases everywhere, experts in every layer.
static Config read_gpt_oss(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGptOssConfig);
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", true);
  attention.sinks = true;
  Mlp& mlp = decoder.kind.mlp;
  mlp.experts = fields.count_or("num_local_experts", 128);
  const std::int64_t older = fields.count_or("experts_per_token", 4);
  mlp.experts_per_token = fields.count_or("num_experts_per_tok", older);
  mlp.bias = mlp.router_bias = true;
  expect_choice(fields, mlp);
  const std::int64_t window = read_window(fields, 128);
  const std::vector<View> views = layer_views(
      fields, decoder.layers, [](std::int64_t layer) { return layer % 2 == 0 ? View::kSliding : View::kFull; });
  return with_views(std::move(decoder), views, window);
}

static Structure describe_gpt_oss(const Config& config) {
  return structure(config, {.naming = {.fused_gate_up = true, .router = "router"}});
}

const Family kGptOss{.name = "gpt_oss", .model_types = {"gpt_oss"}, .read = read_gpt_oss, .describe = describe_gpt_oss};

// OPT: LayerNorm, learned positions (two rows more than positions), biases everywhere, tied embeddings.
static Config read_opt(Fields& fields) {  // defaults: OPTConfig
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

static Structure describe_opt(const Config& config) {
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

const Family kOpt{.name = "opt", .model_types = {"opt"}, .read = read_opt, .describe = describe_opt};

// Falcon: one matrix for q, k and v, one or few key-value heads, attention and MLP side by side, tied embeddings. The
// newer architecture has a norm for each of the two.
static bool has_two_norms(Fields& fields, bool newer) {
  const std::int64_t norms = fields.count_or("num_ln_in_parallel_attn", newer ? 2 : 1);
  return !fields.flag_or("parallel_attn", true) || norms == 2;
}

static Config read_falcon(Fields& fields) {  // defaults: FalconConfig
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

static Structure with_norms(const Config& config, const char* before_attention, const char* before_mlp) {
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

static Structure describe_one(const Config& config) { return with_norms(config, "input_layernorm", ""); }
static Structure describe_two(const Config& config) { return with_norms(config, "ln_attn", "ln_mlp"); }

const Family kFalcon{.name = "falcon", .model_types = {"falcon"}, .read = read_falcon, .describe = describe_one};
const Family kFalconTwoNorms{
    .name = "falcon_two_norms", .model_types = {}, .read = read_falcon, .describe = describe_two};

}  // namespace llmprof::model
