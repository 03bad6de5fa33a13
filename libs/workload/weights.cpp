#include "workload/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/errors.h"
#include "workload/kernels.h"

namespace llmprof::workload {

namespace {

using Kind = TensorSpec::Kind;

class SpecList {
 public:
  void matrix(const std::string& path, std::int64_t out, std::int64_t in) {
    specs.push_back({.name = path + ".weight", .rows = out, .columns = in});
  }
  void conv1d(const std::string& path, std::int64_t out, std::int64_t in) {
    specs.push_back({.name = path + ".weight", .rows = out, .columns = in, .stored_in_out = true});
    specs.push_back({.name = path + ".bias", .columns = out, .kind = Kind::kBias});
  }
  void rms_norm(const std::string& path, std::int64_t n) {
    specs.push_back({.name = path + ".weight", .columns = n, .kind = Kind::kNormWeight});
  }
  void layer_norm(const std::string& path, std::int64_t n) {
    rms_norm(path, n);
    specs.push_back({.name = path + ".bias", .columns = n, .kind = Kind::kBias});
  }
  std::vector<TensorSpec> specs;
};

std::vector<TensorSpec> gpt2_specs(const ModelConfig& c) {
  SpecList list;
  list.matrix("wte", c.vocab, c.hidden);
  list.matrix("wpe", c.positions, c.hidden);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string path = "h." + std::to_string(layer);
    list.layer_norm(path + ".ln_1", c.hidden);
    list.conv1d(path + ".attn.c_attn", 3 * c.hidden, c.hidden);
    list.conv1d(path + ".attn.c_proj", c.hidden, c.hidden);
    list.layer_norm(path + ".ln_2", c.hidden);
    list.conv1d(path + ".mlp.c_fc", c.intermediate, c.hidden);
    list.conv1d(path + ".mlp.c_proj", c.hidden, c.intermediate);
  }
  list.layer_norm("ln_f", c.hidden);
  return list.specs;
}

std::vector<TensorSpec> llama_specs(const ModelConfig& c) {
  SpecList list;
  list.matrix("embed_tokens", c.vocab, c.hidden);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string path = "layers." + std::to_string(layer);
    list.rms_norm(path + ".input_layernorm", c.hidden);
    list.matrix(path + ".self_attn.q_proj", c.heads * c.head_dim, c.hidden);
    list.matrix(path + ".self_attn.k_proj", c.kv_heads * c.head_dim, c.hidden);
    list.matrix(path + ".self_attn.v_proj", c.kv_heads * c.head_dim, c.hidden);
    list.matrix(path + ".self_attn.o_proj", c.hidden, c.heads * c.head_dim);
    list.rms_norm(path + ".post_attention_layernorm", c.hidden);
    list.matrix(path + ".mlp.gate_proj", c.intermediate, c.hidden);
    list.matrix(path + ".mlp.up_proj", c.intermediate, c.hidden);
    list.matrix(path + ".mlp.down_proj", c.hidden, c.intermediate);
  }
  list.rms_norm("norm", c.hidden);
  if (!c.tied_embeddings) list.matrix("lm_head", c.vocab, c.hidden);
  return list.specs;
}

// A different stream of numbers for each tensor: 64 bits of seed and tensor number mixed down to 32.
std::uint32_t stream_key(std::uint64_t seed, std::size_t tensor) {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15ULL * (tensor + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>((x ^ (x >> 31)) >> 16);
}

// Uniform in [center - width, center + width): the deviation is width / sqrt(3).
struct Spread {
  float center, width;
};

Spread random_spread(const TensorSpec& spec) {
  const float center = spec.kind == Kind::kNormWeight ? 1.0F : 0.0F;
  return {center, spec.kind == Kind::kMatrix ? std::sqrt(3.0F / static_cast<float>(spec.columns)) : 0.1F};
}

Spread untrained_spread(const TensorSpec& spec, const ModelConfig& config) {
  if (spec.kind != Kind::kMatrix) return {spec.kind == Kind::kNormWeight ? 1.0F : 0.0F, 0.0F};
  const bool ends_half = spec.name.ends_with(".c_proj.weight");
  return {0.0F, 0.02F * std::sqrt(3.0F / (ends_half ? 2.0F * static_cast<float>(config.layers) : 1.0F))};
}

Weights filled(const ModelConfig& config, Start start, std::uint64_t seed, ThreadPool& pool) {
  Weights weights(config);
  for (std::size_t i = 0; i < weights.specs().size(); ++i) {
    const TensorSpec& spec = weights.specs()[i];
    const RandomTensor random = random_tensor(start, config, spec, i, seed);
    float* const data = weights.tensor(spec.name);
    pool.parallel_for(spec.count(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      kernels().fill_random(data + begin, begin, end - begin, random.key, random.center, random.width);
    });
  }
  return weights;
}

const SafetensorsEntry* find_entry(const SafetensorsFile& file, const std::string& name) {
  for (const char* prefix : {"", "model.", "transformer."}) {
    if (const SafetensorsEntry* entry = file.find(prefix + name)) return entry;
  }
  return nullptr;
}

std::vector<std::int64_t> stored_shape(const TensorSpec& spec) {
  if (spec.kind != TensorSpec::Kind::kMatrix) return {spec.columns};
  if (spec.stored_in_out) return {spec.columns, spec.rows};
  return {spec.rows, spec.columns};
}

// in (columns, rows) to out (rows, columns)
void transpose(const std::vector<float>& in, const TensorSpec& spec, float* out) {
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    for (std::int64_t column = 0; column < spec.columns; ++column) {
      out[row * spec.columns + column] = in[static_cast<std::size_t>(column * spec.rows + row)];
    }
  }
}

Result<void> load_tensor(const SafetensorsFile& file, const std::string& path, const TensorSpec& spec, float* out) {
  const SafetensorsEntry* const entry = find_entry(file, spec.name);
  if (entry == nullptr) return corrupt_error("{}: no tensor {}", path, spec.name);
  const std::vector<std::int64_t> expected = stored_shape(spec);
  if (entry->shape != expected) {
    return corrupt_error("{}: {}: shape is [{}], the configuration says [{}]", path, entry->name,
                         fmt::join(entry->shape, ", "), fmt::join(expected, ", "));
  }
  if (!spec.stored_in_out) return file.read(*entry, out);
  std::vector<float> stored(static_cast<std::size_t>(spec.count()));
  LLMPROF_TRY(file.read(*entry, stored.data()));
  transpose(stored, spec, out);
  return {};
}

}  // namespace

std::vector<TensorSpec> tensor_specs(const ModelConfig& config) {
  return config.family == Family::kGpt2 ? gpt2_specs(config) : llama_specs(config);
}

RandomTensor random_tensor(Start start, const ModelConfig& config, const TensorSpec& spec, std::size_t number,
                           std::uint64_t seed) {
  const Spread spread = start == Start::kRandom ? random_spread(spec) : untrained_spread(spec, config);
  return {stream_key(seed, number), spread.center, spread.width};
}

Weights::Weights(const ModelConfig& config) : specs_(tensor_specs(config)) {
  std::int64_t total = 0;
  for (const TensorSpec& spec : specs_) {
    places_.emplace(spec.name, Place{total, &spec});
    total += spec.count();
  }
  buffer_.reserve(total);
}

Weights Weights::random(const ModelConfig& config, std::uint64_t seed, ThreadPool& pool) {
  return filled(config, Start::kRandom, seed, pool);
}

Weights Weights::untrained(const ModelConfig& config, std::uint64_t seed, ThreadPool& pool) {
  return filled(config, Start::kUntrained, seed, pool);
}

const Weights::Place& Weights::place(const std::string& name) const {
  const auto found = places_.find(name);
  LLMPROF_ASSERT(found != places_.end());
  return found->second;
}

float* Weights::tensor(const std::string& name) { return buffer_.data() + place(name).offset; }
const float* Weights::tensor(const std::string& name) const { return buffer_.data() + place(name).offset; }

Linear Weights::linear(const std::string& path) const {
  const TensorSpec& spec = *place(path + ".weight").spec;
  const bool biased = places_.contains(path + ".bias");
  return {.weight = tensor(path + ".weight"),
          .bias = biased ? tensor(path + ".bias") : nullptr,
          .in = spec.columns,
          .out = spec.rows};
}

Norm Weights::norm(const std::string& path) const {
  const bool biased = places_.contains(path + ".bias");
  return {.weight = tensor(path + ".weight"), .bias = biased ? tensor(path + ".bias") : nullptr};
}

Result<Weights> load_weights(const ModelConfig& config, const std::string& path) {
  LLMPROF_LET(const SafetensorsFile file, SafetensorsFile::open(path));
  Weights weights(config);
  for (const TensorSpec& spec : weights.specs()) {
    LLMPROF_TRY(load_tensor(file, path, spec, weights.tensor(spec.name)));
  }
  return weights;
}

}  // namespace llmprof::workload
