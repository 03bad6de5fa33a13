#include "workload/config.h"

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/json.h"

namespace llmprof::workload {

namespace {

struct Range {
  const char* name;
  std::int64_t ModelConfig::*field;
  std::int64_t max;
};

// Largest values: matrix dimensions must fit the 32-bit integers of BLAS with room to spare.
constexpr Range kRanges[] = {
    {"layers", &ModelConfig::layers, 4096},     {"hidden", &ModelConfig::hidden, 1 << 17},
    {"heads", &ModelConfig::heads, 4096},       {"kv-heads", &ModelConfig::kv_heads, 4096},
    {"head-dim", &ModelConfig::head_dim, 4096}, {"intermediate", &ModelConfig::intermediate, 1 << 20},
    {"vocab", &ModelConfig::vocab, 1 << 24},    {"positions", &ModelConfig::positions, 1 << 24},
};

struct Key {
  const char* name;
  std::int64_t ModelConfig::*field;
  bool required;
};

constexpr Key kGpt2Keys[] = {
    {"n_layer", &ModelConfig::layers, true},   {"n_embd", &ModelConfig::hidden, true},
    {"n_head", &ModelConfig::heads, true},     {"n_inner", &ModelConfig::intermediate, false},
    {"vocab_size", &ModelConfig::vocab, true}, {"n_positions", &ModelConfig::positions, true},
};

constexpr Key kLlamaKeys[] = {
    {"num_hidden_layers", &ModelConfig::layers, true},  {"hidden_size", &ModelConfig::hidden, true},
    {"num_attention_heads", &ModelConfig::heads, true}, {"num_key_value_heads", &ModelConfig::kv_heads, false},
    {"head_dim", &ModelConfig::head_dim, false},        {"intermediate_size", &ModelConfig::intermediate, true},
    {"vocab_size", &ModelConfig::vocab, true},          {"max_position_embeddings", &ModelConfig::positions, false},
};

Error bad_key(std::string_view where, std::string_view key, std::string_view what) {
  return corrupt_error("{}: {}: {}", where, key, what);
}

Result<void> read_sizes(const base::Json& json, std::span<const Key> keys, std::string_view where,
                        ModelConfig& config) {
  for (const Key& key : keys) {
    const auto found = json.find(key.name);
    if (found == json.end() || found->is_null()) {
      if (key.required) return bad_key(where, key.name, "missing");
      continue;
    }
    if (!found->is_number_integer()) return bad_key(where, key.name, "not an integer");
    // Unsigned numbers above 2^63 turn negative here, and are out of range all the same.
    const auto value = found->get<std::int64_t>();
    if (value <= 0) return bad_key(where, key.name, fmt::format("{} is not positive", base::to_line(*found)));
    config.*key.field = value;
  }
  return {};
}

Result<void> read_positive(const base::Json& json, const char* key, std::string_view where, double& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_number() || found->get<double>() <= 0) return bad_key(where, key, "not a positive number");
  value = found->get<double>();
  return {};
}

// What changes the arithmetic and is not implemented: computing on would be wrong.
Result<void> refuse_variants(const base::Json& json, std::string_view where) {
  if (const auto scaling = json.find("rope_scaling"); scaling != json.end() && !scaling->is_null()) {
    return unsupported_error("{}: rope_scaling is not implemented", where);
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_boolean() && found->get<bool>()) {
      return unsupported_error("{}: {} is not implemented", where, key);
    }
  }
  return {};
}

constexpr ModelConfig llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                            std::int64_t intermediate, std::int64_t vocab) {
  return {.family = Family::kLlama,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = hidden / heads,
          .intermediate = intermediate,
          .vocab = vocab,
          .positions = 4096};
}

constexpr ModelConfig tied(ModelConfig config) {
  config.tied_embeddings = true;
  return config;
}

constexpr std::array kPresets{
    // 8 x 11.27 M + 2 x 16.78 M = 123.7 M parameters, 495 MB. A decode step reads all but the embedding table: 428 MB.
    Preset{"demo", "Llama, 124 M parameters, 495 MB: decode reads memory, prefill computes",
           llama(8, 1024, 16, 4, 2816, 16384), 1, 256, 64},
    // 16 x 60.8 M + 262.7 M = 1,236 M parameters: the shape of Llama 3.2 1B. So many tokens that decode takes a
    // second on an H200: power is read ten times a second.
    Preset{"demo-gpu", "Llama, 1.24 G parameters, 2.5 GB in bfloat16: the demo on a GPU",
           tied(llama(16, 2048, 32, 8, 8192, 128256)), 1, 512, 768},
    Preset{"tiny-llama", "Llama, 0.5 M parameters: for tests", llama(2, 128, 4, 2, 344, 512), 2, 16, 8},
    Preset{"tiny-gpt2", "GPT-2, 0.5 M parameters: for tests", gpt2_config(2, 128, 4, 512, 128), 2, 16, 8},
    Preset{"gpt2", "GPT-2 small as published: 124 M parameters, 498 MB", gpt2_config(12, 768, 12, 50257, 1024), 1, 128,
           32},
    Preset{"gpt2-medium", "GPT-2 medium as published: 355 M parameters, 1.4 GB", gpt2_config(24, 1024, 16, 50257, 1024),
           1, 128, 32},
    Preset{"tinyllama-1.1b", "TinyLlama 1.1B as published: 1.1 G parameters, 4.4 GB",
           llama(22, 2048, 32, 4, 5632, 32000), 1, 128, 32},
};

constexpr std::array kTrainPresets{
    // 4 x 0.79 M in layers, 0.07 M + 0.03 M in tables: 3.26 M parameters. A step computes 10 GFLOP.
    TrainPreset{"demo", "GPT-2 shape, 3.3 M parameters, bytes: some seconds", gpt2_config(4, 256, 8, 256, 128), 8, 64,
                40, 3e-4},
    TrainPreset{"demo-gpu", "GPT-2 small: 124 M parameters, batch 4 x 512 tokens, 40 steps, 5 GB: the demo on a GPU",
                gpt2_config(12, 768, 12, 50257, 1024), 4, 512, 40, 3e-4},
    TrainPreset{"tiny", "GPT-2 shape, 0.1 M parameters, bytes: for tests", gpt2_config(2, 64, 4, 256, 64), 4, 32, 20,
                1e-3},
    TrainPreset{"gpt2", "GPT-2 small: 124 M parameters, batch 4 x 64 tokens, 40 steps, 2 GB",
                gpt2_config(12, 768, 12, 50257, 1024), 4, 64, 40, 3e-4},
};

template <class Table>
auto find(const Table& table, std::string_view name) -> Result<typename Table::value_type> {
  for (const auto& preset : table) {
    if (preset.name == name) return preset;
  }
  return Error{ErrorCode::kUsage, fmt::format("unknown preset '{}'", name), "--list-presets shows them"};
}

}  // namespace

std::string_view family_name(Family family) { return family == Family::kGpt2 ? "gpt2" : "llama"; }

Result<Family> parse_family(std::string_view name) {
  if (name == "gpt2") return Family::kGpt2;
  if (name == "llama") return Family::kLlama;
  return Error{ErrorCode::kUsage, fmt::format("unknown model family '{}'", name), "known: gpt2, llama"};
}

Result<ModelConfig> complete(ModelConfig config) {
  const bool gpt2 = config.family == Family::kGpt2;
  if (gpt2 || config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.head_dim == 0 && config.heads > 0) config.head_dim = config.hidden / config.heads;
  if (config.intermediate == 0) config.intermediate = 4 * config.hidden;
  if (config.positions == 0) config.positions = 4096;
  if (gpt2) config.tied_embeddings = true;
  for (const Range& range : kRanges) {
    const std::int64_t value = config.*range.field;
    if (value < 1 || value > range.max) {
      return usage_error("{} is {}, allowed are 1 to {}", range.name, value, range.max);
    }
  }
  if (config.heads % config.kv_heads != 0) {
    return usage_error("{} heads do not divide into {} key-value heads", config.heads, config.kv_heads);
  }
  if (gpt2 && config.heads * config.head_dim != config.hidden) {
    return usage_error("hidden size {} is not a multiple of {} heads", config.hidden, config.heads);
  }
  if (!gpt2 && config.head_dim % 2 != 0) {
    return usage_error("head size {} is odd, rotary positions need pairs", config.head_dim);
  }
  return config;
}

Result<ModelConfig> parse_config(std::string_view json_text, std::string_view where) {
  LLMPROF_LET(const base::Json json, base::parse_json(json_text, where));
  if (!json.is_object()) return bad_key(where, "top level", "not an object");
  const auto type = json.find("model_type");
  if (type == json.end() || !type->is_string()) return bad_key(where, "model_type", "missing");
  LLMPROF_LET(const Family family, parse_family(type->get<std::string>()));
  ModelConfig config{.family = family};
  if (family == Family::kGpt2) {
    LLMPROF_TRY(read_sizes(json, kGpt2Keys, where, config));
    LLMPROF_TRY(read_positive(json, "layer_norm_epsilon", where, config.norm_epsilon));
  } else {
    LLMPROF_TRY(refuse_variants(json, where));
    LLMPROF_TRY(read_sizes(json, kLlamaKeys, where, config));
    LLMPROF_TRY(read_positive(json, "rms_norm_eps", where, config.norm_epsilon));
    LLMPROF_TRY(read_positive(json, "rope_theta", where, config.rope_theta));
    const auto tied = json.find("tie_word_embeddings");
    config.tied_embeddings = tied != json.end() && tied->is_boolean() && tied->get<bool>();
  }
  return complete(config);
}

std::string config_json(const ModelConfig& config, ElementType type) {
  base::Json json;
  json["model_type"] = family_name(config.family);
  if (config.family == Family::kGpt2) {
    for (const Key& key : kGpt2Keys) json[key.name] = config.*key.field;
    json["layer_norm_epsilon"] = config.norm_epsilon;
  } else {
    for (const Key& key : kLlamaKeys) json[key.name] = config.*key.field;
    json["rms_norm_eps"] = config.norm_epsilon;
    json["rope_theta"] = config.rope_theta;
  }
  json["tie_word_embeddings"] = config.tied_embeddings;
  json["torch_dtype"] = name_of(type);
  return base::to_line(json);
}

std::span<const Preset> presets() { return kPresets; }
std::span<const TrainPreset> train_presets() { return kTrainPresets; }

Result<Preset> find_preset(std::string_view name) { return find(kPresets, name); }
Result<TrainPreset> find_train_preset(std::string_view name) { return find(kTrainPresets, name); }

}  // namespace llmprof::workload
