#pragma once
// The parameters of a model in one block of memory, found by their Hugging Face names without the leading "model." or
// "transformer.". Matrices are (out, in) for both families.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/safetensors.h"
#include "workload/buffer.h"
#include "workload/config.h"
#include "workload/linear.h"
#include "workload/thread_pool.h"

namespace llmprof::workload {

struct TensorSpec {
  enum class Kind : std::uint8_t { kMatrix, kNormWeight, kBias };
  std::string name;          // "layers.0.self_attn.q_proj.weight"
  std::int64_t rows = 1;     // out
  std::int64_t columns = 0;  // in; vectors: their length
  Kind kind = Kind::kMatrix;
  bool stored_in_out = false;  // files hold the transpose (GPT-2's Conv1D)
  std::int64_t count() const { return rows * columns; }
};

// Every parameter tensor, in execution order. A tied head has none.
std::vector<TensorSpec> tensor_specs(const ModelConfig& config);

// Random numbers of a tensor: uniform in [center - width, center + width), by the key of its stream
// (RowKernels::fill_random).
struct RandomTensor {
  std::uint32_t key;
  float center, width;
};
enum class Start : std::uint8_t {
  kRandom,  // uniform with variance 1/in around 0 (norm weights: close to 1)
  // To begin training with, as GPT-2 did: deviation 0.02 around 0, that of the two projections that end a layer's
  // halves divided by sqrt(2 layers); biases 0, norm weights 1. Uniform where GPT-2's were normal.
  kUntrained,
};
RandomTensor random_tensor(Start start, const ModelConfig& config, const TensorSpec& spec, std::size_t number,
                           std::uint64_t seed);

struct Norm {
  const float* weight = nullptr;  // (C)
  const float* bias = nullptr;    // (C), or none
};

class Weights {
 public:
  using LinearType = Linear;
  using NormType = Norm;

  // Allocates; the values are not set.
  explicit Weights(const ModelConfig& config);

  // Start::kRandom and kUntrained. They depend on the seed only, not on the threads.
  static Weights random(const ModelConfig& config, std::uint64_t seed, ThreadPool& pool);
  static Weights untrained(const ModelConfig& config, std::uint64_t seed, ThreadPool& pool);

  const std::vector<TensorSpec>& specs() const { return specs_; }
  float* tensor(const std::string& name);              // must exist
  const float* tensor(const std::string& name) const;  // must exist
  Linear linear(const std::string& path) const;        // path + ".weight" and, if it exists, ".bias"
  Norm norm(const std::string& path) const;
  float* data() { return buffer_.data(); }  // the whole block, tensors in the order of specs()
  const float* data() const { return buffer_.data(); }
  std::int64_t parameters() const { return buffer_.count(); }
  std::int64_t bytes() const { return parameters() * static_cast<std::int64_t>(sizeof(float)); }

 private:
  struct Place {
    std::int64_t offset;
    const TensorSpec* spec;
  };
  const Place& place(const std::string& name) const;

  std::vector<TensorSpec> specs_;
  std::unordered_map<std::string, Place> places_;
  FloatBuffer buffer_;
};

// Weights from a .safetensors file with Hugging Face tensor names.

// Names may begin with "model." or "transformer."; tensors that the model does not have (attention masks) are ignored.
Result<Weights> load_weights(const ModelConfig& config, const std::string& path);

// Values out of .safetensors files (base/safetensors.h reads the headers).

using base::SafetensorsEntry;

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const SafetensorsEntry* find(std::string_view name) const;
  // Values as float: F32 as they are, F16 and BF16 widened. out: entry.count() floats.
  Result<void> read(const SafetensorsEntry& entry, float* out) const;

 private:
  SafetensorsFile(base::RegularFile file, base::SafetensorsHeader header);
  base::RegularFile file_;
  base::SafetensorsHeader header_;
};

}  // namespace llmprof::workload
