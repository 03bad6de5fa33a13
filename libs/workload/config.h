#pragma once
// The shape of a transformer: one of two families, and its sizes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::workload {

// What weights and activations are stored in. Sums are float32 either way.

enum class ElementType : std::uint8_t { kFloat32, kBfloat16 };

constexpr std::int64_t bytes_of(ElementType type) { return type == ElementType::kFloat32 ? 4 : 2; }
constexpr std::string_view name_of(ElementType type) { return type == ElementType::kFloat32 ? "float32" : "bfloat16"; }

inline Result<ElementType> parse_element_type(std::string_view name) {
  if (name == "float32") return ElementType::kFloat32;
  if (name == "bf16" || name == "bfloat16") return ElementType::kBfloat16;
  return Error{ErrorCode::kUsage, "unknown type '" + std::string(name) + "'", "known: float32, bf16"};
}

enum class Family : std::uint8_t {
  kGpt2,   // learned positions, LayerNorm, fused QKV with biases, GELU, tied head
  kLlama,  // rotary positions, RMSNorm, grouped key-value heads, SwiGLU, no biases
};

struct ModelConfig {
  Family family = Family::kLlama;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;        // C
  std::int64_t heads = 0;         // H
  std::int64_t kv_heads = 0;      // G; GPT-2: = heads
  std::int64_t head_dim = 0;      // D
  std::int64_t intermediate = 0;  // F
  std::int64_t vocab = 0;         // V
  std::int64_t positions = 0;     // longest sequence
  bool tied_embeddings = false;   // the head is the embedding table
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;  // Llama only
};

std::string_view family_name(Family family);  // "gpt2", "llama"
Result<Family> parse_family(std::string_view name);

// Fills what follows from the rest (kv_heads, head_dim, intermediate), then checks every size against its range.
Result<ModelConfig> complete(ModelConfig config);

// A Hugging Face config.json of model_type gpt2 or llama. `where` stands in errors.
Result<ModelConfig> parse_config(std::string_view json_text, std::string_view where);

// The same keys, on one line: what a profiler is told about the model and what it is stored in.
std::string config_json(const ModelConfig& config, ElementType type = ElementType::kFloat32);

// Named model shapes with a run that suits them.

// A complete GPT-2 of these sizes.
constexpr ModelConfig gpt2_config(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                  std::int64_t positions) {
  return {.family = Family::kGpt2,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = hidden / heads,
          .intermediate = 4 * hidden,
          .vocab = vocab,
          .positions = positions,
          .tied_embeddings = true};
}

struct Preset {
  std::string_view name;
  std::string_view summary;
  ModelConfig config;
  std::int64_t batch;
  std::int64_t prompt_tokens;
  std::int64_t new_tokens;
};

std::span<const Preset> presets();
Result<Preset> find_preset(std::string_view name);

// Named training runs.

struct TrainPreset {
  std::string_view name;
  std::string_view summary;
  ModelConfig config;
  std::int64_t batch;
  std::int64_t tokens;
  std::int64_t steps;
  double learning_rate;
};

std::span<const TrainPreset> train_presets();
Result<TrainPreset> find_train_preset(std::string_view name);

}  // namespace llmprof::workload
