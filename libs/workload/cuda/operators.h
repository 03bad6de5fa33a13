#pragma once
// The parameters of a model on a device, and the operators of a forward pass, enqueued: which kernel, how many blocks.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "workload/cuda/device.h"
#include "workload/linear.h"
#include "workload/weights.h"

namespace llmprof::workload::cuda {

// The parameters of a model in the memory of a device: one block, tensors by name in the order of Weights, each aligned
// to 256 bytes.

struct DeviceLinear {
  Pointer weight = 0;  // (out, in)
  Pointer bias = 0;    // (out), or none
  std::int64_t in = 0, out = 0;
};

struct DeviceNorm {
  Pointer weight = 0;  // (C)
  Pointer bias = 0;    // (C), or none
};

class DeviceWeights {
 public:
  using LinearType = DeviceLinear;
  using NormType = DeviceNorm;

  // All 0.
  DeviceWeights(Device& device, const ModelConfig& config, ElementType type);

  // The numbers that Weights has for this seed, made on the device.
  void fill(Start start, std::uint64_t seed);
  void upload(const Weights& weights);
  void download(Weights& weights) const;  // float32 only

  ElementType type() const { return type_; }
  const std::vector<TensorSpec>& specs() const { return specs_; }
  Pointer data() const { return memory_.pointer(); }  // the whole block
  Pointer tensor(const std::string& name) const;      // must exist
  DeviceLinear linear(const std::string& path) const;
  DeviceNorm norm(const std::string& path) const;
  std::int64_t parameters() const { return parameters_; }
  std::int64_t bytes() const { return parameters_ * bytes_of(type_); }  // without what aligns them

 private:
  struct Place {
    std::int64_t offset;  // in bytes
    const TensorSpec* spec;
  };
  Pointer optional_tensor(const std::string& name) const;

  Device& device_;
  ModelConfig config_;
  ElementType type_;
  std::vector<TensorSpec> specs_;
  std::unordered_map<std::string, Place> places_;
  std::int64_t parameters_ = 0;
  Buffer memory_;
};

// Rows of new tokens. `inputs` on the device: int32, the position of the first new token, then the tokens (B, T).
struct DevicePass {
  std::int64_t batch, tokens;
  Pointer inputs;
  std::int64_t rows() const { return batch * tokens; }
};

// Keys and values of one layer, (B, G, capacity, D) each.
struct LayerCache {
  Pointer keys, values;
  std::int64_t capacity;
};

struct DeviceQueries {
  Pointer data;  // (B, T, H, D), a row of all heads every row_stride values
  std::int64_t row_stride;
};

// The same for sequences of different lengths, whose keys and values are in blocks. `inputs` on the device: int32, for
// each row its token, its position, and the place in `inputs` of its sequence's blocks; behind the rows, these blocks.
struct PagedPass {
  std::int64_t count;
  Pointer inputs;
  std::int64_t rows() const { return count; }
};

// Keys and values of one layer, (blocks, G, block_tokens, D) each.
struct PagedLayer {
  Pointer keys, values;
  std::int64_t block_tokens;
};

// What attention can do on a device: heads of up to 128 values, a multiple of 8.
Result<void> check_heads(const ModelConfig& config);

class Operators {
 public:
  Operators(Device& device, ElementType type)
      : device_(device), type_(type), suffix_(type == ElementType::kFloat32 ? "_f32" : "_bf16") {}

  Device& device() const { return device_; }
  ElementType type() const { return type_; }
  std::int64_t bytes(std::int64_t values) const { return values * bytes_of(type_); }
  Pointer at(Pointer base, std::int64_t value) const { return base + static_cast<Pointer>(bytes(value)); }

  void embed(const DevicePass& pass, Pointer table, Pointer positions, std::int64_t columns, Pointer out) const;
  // RMSNorm, or LayerNorm when there is a bias. x: a row every `stride` values.
  void normalise(const DeviceNorm& norm, const ModelConfig& config, Pointer x, std::int64_t stride, std::int64_t rows,
                 Pointer out) const;
  // y (rows, out) of type y_type.
  void project(const DeviceLinear& linear, Pointer x, std::int64_t rows, Store store, Pointer y,
               ElementType y_type) const;
  void project(const DeviceLinear& linear, Pointer x, std::int64_t rows, Store store, Pointer y) const {
    project(linear, x, rows, store, y, type_);
  }
  void rotate_and_cache(const DevicePass& pass, const ModelConfig& config, Pointer q, Pointer k, Pointer v,
                        Pointer cosine, Pointer sine, const LayerCache& cache) const;
  void cache(const DevicePass& pass, const ModelConfig& config, Pointer qkv, const LayerCache& cache) const;
  // Values that attend() needs at `partial`, float32.
  static std::int64_t partial_values(const ModelConfig& config, std::int64_t batch, std::int64_t capacity);
  void attend(const DevicePass& pass, const ModelConfig& config, const DeviceQueries& queries, const LayerCache& cache,
              Pointer partial, Pointer out) const;
  void embed(const PagedPass& pass, Pointer table, Pointer positions, std::int64_t columns, Pointer out) const;
  void rotate_and_cache(const PagedPass& pass, const ModelConfig& config, Pointer q, Pointer k, Pointer v,
                        Pointer cosine, Pointer sine, const PagedLayer& cache) const;
  void cache(const PagedPass& pass, const ModelConfig& config, Pointer qkv, const PagedLayer& cache) const;
  void attend(const PagedPass& pass, const ModelConfig& config, const DeviceQueries& queries, const PagedLayer& cache,
              Pointer out) const;
  // out (rows, columns) = the rows of x whose numbers, int32, are at `which`.
  void gather(Pointer x, Pointer which, std::int64_t rows, std::int64_t columns, Pointer out) const;
  void silu_multiply(Pointer gate, Pointer up, std::int64_t count) const;
  void gelu(Pointer x, std::int64_t count, Pointer out) const;
  // The likeliest tokens of logits (B, V), float32, become the next inputs.
  void argmax(const DevicePass& pass, Pointer logits, std::int64_t vocab) const;
  void fill_random(const RandomTensor& random, std::int64_t count, Pointer out) const;
  void convert(Pointer from_float32, std::int64_t count, Pointer out) const;

 private:
  Device& device_;
  ElementType type_;
  std::string suffix_;
};

// Blocks of 256 threads for `count` elements, each thread some of them.
Launch over_elements(std::int64_t count);
// A block for each row of `columns` values.
Launch over_rows(std::int64_t rows, std::int64_t columns);

}  // namespace llmprof::workload::cuda
