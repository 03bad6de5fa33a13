#include "workload/cuda/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace llmprof::workload::cuda {

namespace {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kAttentionThreads = 128;  // of attention_kernels.cu and paged_kernels.cu; also the keys of a decode block
constexpr std::int64_t kTile = 32;               // queries and keys of a prefill tile

float scale(const ModelConfig& config) { return 1.0F / std::sqrt(static_cast<float>(config.head_dim)); }

std::int64_t decode_blocks(std::int64_t capacity) { return (capacity + kAttentionThreads - 1) / kAttentionThreads; }

constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t kMostStaged = std::int64_t{1} << 24;  // values on their way to another type

}  // namespace

Launch over_elements(std::int64_t count) {
  constexpr std::int64_t kMostBlocks = 4096;
  return {.grid_x = std::clamp<std::int64_t>((count + 255) / 256, 1, kMostBlocks), .block_x = 256};
}

Launch over_rows(std::int64_t rows, std::int64_t columns) {
  const std::int64_t warps = std::clamp<std::int64_t>((columns + 4 * kLanes - 1) / (4 * kLanes), 1, 16);
  return {.grid_x = rows, .block_x = warps * kLanes};
}

Result<void> check_heads(const ModelConfig& config) {
  if (config.head_dim <= 128 && config.head_dim % 8 == 0) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("heads of {} values: attention on the GPU takes multiples of 8 up to 128", config.head_dim),
               "--device cpu takes any"};
}

void Operators::embed(const DevicePass& pass, Pointer table, Pointer positions, std::int64_t columns,
                      Pointer out) const {
  device_.launch("embed" + suffix_, over_rows(pass.rows(), columns),
                 {pass.inputs, table, positions, pass.tokens, columns, out});
}

void Operators::normalise(const DeviceNorm& norm, const ModelConfig& config, Pointer x, std::int64_t stride,
                          std::int64_t rows, Pointer out) const {
  const std::int64_t n = config.hidden;
  const auto epsilon = static_cast<float>(config.norm_epsilon);
  if (norm.bias == 0) {
    device_.launch("rms_norm" + suffix_, over_rows(rows, n), {x, stride, norm.weight, epsilon, n, out});
  } else {
    device_.launch("layer_norm" + suffix_, over_rows(rows, n), {x, stride, norm.weight, norm.bias, epsilon, n, out});
  }
}

void Operators::project(const DeviceLinear& linear, Pointer x, std::int64_t rows, Store store, Pointer y,
                        ElementType y_type) const {
  device_.multiply({.m = rows,
                    .n = linear.out,
                    .k = linear.in,
                    .a = {.data = x, .stride = linear.in, .type = type_},
                    .b = {.data = linear.weight, .stride = linear.in, .type = type_, .transposed = true},
                    .out = {.data = y, .stride = linear.out, .type = y_type},
                    .bias = linear.bias,
                    .accumulate = store == Store::kAccumulate});
}

void Operators::rotate_and_cache(const DevicePass& pass, const ModelConfig& c, Pointer q, Pointer k, Pointer v,
                                 Pointer cosine, Pointer sine, const LayerCache& cache) const {
  device_.launch("rotate_and_cache" + suffix_, over_rows(pass.rows(), c.heads * c.head_dim),
                 {q, k, v, cosine, sine, pass.inputs, pass.tokens, c.heads, c.kv_heads, c.head_dim, cache.capacity,
                  cache.keys, cache.values});
}

void Operators::cache(const DevicePass& pass, const ModelConfig& c, Pointer qkv, const LayerCache& cache) const {
  device_.launch("cache" + suffix_, over_rows(pass.rows(), c.hidden),
                 {qkv, pass.inputs, pass.tokens, c.heads, c.head_dim, cache.capacity, cache.keys, cache.values});
}

std::int64_t Operators::partial_values(const ModelConfig& c, std::int64_t batch, std::int64_t capacity) {
  return batch * c.heads * decode_blocks(capacity) * (c.head_dim + 2);
}

void Operators::attend(const DevicePass& pass, const ModelConfig& c, const DeviceQueries& q, const LayerCache& cache,
                       Pointer partial, Pointer out) const {
  if (pass.tokens > 1) {
    const std::int64_t floats = kTile * (3 * c.head_dim + 1 + kTile);
    device_.launch("attention_prefill" + suffix_,
                   {.grid_x = (pass.tokens + kTile - 1) / kTile,
                    .grid_y = c.heads,
                    .grid_z = pass.batch,
                    .block_x = kAttentionThreads,
                    .shared_bytes = floats * 4},
                   {q.data, q.row_stride, cache.keys, cache.values, pass.inputs, pass.tokens, c.kv_heads, c.head_dim,
                    cache.capacity, scale(c), out});
    return;
  }
  const std::int64_t blocks = decode_blocks(cache.capacity);
  device_.launch("attention_decode" + suffix_,
                 {.grid_x = blocks, .grid_y = c.heads, .grid_z = pass.batch, .block_x = kAttentionThreads},
                 {q.data, q.row_stride, cache.keys, cache.values, pass.inputs, c.kv_heads, c.head_dim, cache.capacity,
                  scale(c), partial});
  device_.launch("attention_join" + suffix_, {.grid_x = pass.batch * c.heads, .block_x = kAttentionThreads},
                 {partial, pass.inputs, blocks, c.head_dim, out});
}

void Operators::embed(const PagedPass& pass, Pointer table, Pointer positions, std::int64_t columns,
                      Pointer out) const {
  device_.launch("paged_embed" + suffix_, over_rows(pass.rows(), columns),
                 {pass.inputs, table, positions, columns, out});
}

void Operators::rotate_and_cache(const PagedPass& pass, const ModelConfig& c, Pointer q, Pointer k, Pointer v,
                                 Pointer cosine, Pointer sine, const PagedLayer& cache) const {
  device_.launch("paged_rotate_and_cache" + suffix_, over_rows(pass.rows(), c.heads * c.head_dim),
                 {q, k, v, cosine, sine, pass.inputs, c.heads, c.kv_heads, c.head_dim, cache.block_tokens, cache.keys,
                  cache.values});
}

void Operators::cache(const PagedPass& pass, const ModelConfig& c, Pointer qkv, const PagedLayer& cache) const {
  device_.launch("paged_cache" + suffix_, over_rows(pass.rows(), c.hidden),
                 {qkv, pass.inputs, c.heads, c.head_dim, cache.block_tokens, cache.keys, cache.values});
}

void Operators::attend(const PagedPass& pass, const ModelConfig& c, const DeviceQueries& q, const PagedLayer& cache,
                       Pointer out) const {
  device_.launch("paged_attention" + suffix_,
                 {.grid_x = pass.rows(), .grid_y = c.heads, .block_x = kAttentionThreads},
                 {q.data, q.row_stride, cache.keys, cache.values, pass.inputs, c.kv_heads, c.head_dim,
                  cache.block_tokens, scale(c), out});
}

void Operators::gather(Pointer x, Pointer which, std::int64_t rows, std::int64_t columns, Pointer out) const {
  device_.launch("gather_rows" + suffix_, over_rows(rows, columns), {x, which, columns, out});
}

void Operators::silu_multiply(Pointer gate, Pointer up, std::int64_t count) const {
  device_.launch("silu_multiply" + suffix_, over_elements(count), {gate, up, count});
}

void Operators::gelu(Pointer x, std::int64_t count, Pointer out) const {
  device_.launch("gelu" + suffix_, over_elements(count), {x, count, out});
}

void Operators::argmax(const DevicePass& pass, Pointer logits, std::int64_t vocab) const {
  const std::int64_t warps = std::clamp<std::int64_t>(vocab / 128, 1, 32);
  device_.launch("argmax", {.grid_x = pass.batch, .block_x = warps * kLanes},
                 {logits, vocab, pass.tokens, pass.inputs});
}

void Operators::fill_random(const RandomTensor& random, std::int64_t count, Pointer out) const {
  device_.launch("fill_random" + suffix_, over_elements(count), {random.key, random.center, random.width, count, out});
}

void Operators::convert(Pointer from_float32, std::int64_t count, Pointer out) const {
  device_.launch("convert" + suffix_, over_elements(count), {from_float32, count, out});
}

DeviceWeights::DeviceWeights(Device& device, const ModelConfig& config, ElementType type)
    : device_(device), config_(config), type_(type), specs_(tensor_specs(config)) {
  std::int64_t total = 0;
  for (const TensorSpec& spec : specs_) {
    places_.emplace(spec.name, Place{total, &spec});
    parameters_ += spec.count();
    total += (spec.count() * bytes_of(type) + kAlignment - 1) / kAlignment * kAlignment;
  }
  memory_ = Buffer(device, total);
  device.clear(memory_.pointer(), total);
}

void DeviceWeights::fill(Start start, std::uint64_t seed) {
  const Operators run(device_, type_);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    run.fill_random(random_tensor(start, config_, specs_[i], i, seed), specs_[i].count(), tensor(specs_[i].name));
  }
}

void DeviceWeights::upload(const Weights& weights) {
  const Operators run(device_, type_);
  std::int64_t largest = 0;
  for (const TensorSpec& spec : specs_) largest = std::max(largest, spec.count());
  const bool same = type_ == ElementType::kFloat32;
  const std::int64_t most = std::min(largest, kMostStaged);
  const Buffer staged(device_, same ? 0 : most * bytes_of(ElementType::kFloat32));
  for (const TensorSpec& spec : specs_) {
    const float* const from = weights.tensor(spec.name);
    const Pointer to = tensor(spec.name);
    for (std::int64_t begin = 0; begin < spec.count(); begin += most) {
      const std::int64_t count = std::min(most, spec.count() - begin);
      const Pointer target = to + static_cast<Pointer>(begin * bytes_of(type_));
      device_.copy_in(same ? target : staged.pointer(), from + begin, count * bytes_of(ElementType::kFloat32));
      if (!same) run.convert(staged.pointer(), count, target);
    }
  }
}

void DeviceWeights::download(Weights& weights) const {
  LLMPROF_ASSERT(type_ == ElementType::kFloat32);
  for (const TensorSpec& spec : specs_) {
    device_.copy_out(weights.tensor(spec.name), tensor(spec.name), spec.count() * bytes_of(type_));
  }
}

Pointer DeviceWeights::tensor(const std::string& name) const {
  const auto found = places_.find(name);
  LLMPROF_ASSERT(found != places_.end());
  return data() + static_cast<Pointer>(found->second.offset);
}

Pointer DeviceWeights::optional_tensor(const std::string& name) const {
  return places_.contains(name) ? tensor(name) : 0;
}

DeviceLinear DeviceWeights::linear(const std::string& path) const {
  const auto found = places_.find(path + ".weight");
  LLMPROF_ASSERT(found != places_.end());
  const TensorSpec& spec = *found->second.spec;
  return {.weight = tensor(spec.name), .bias = optional_tensor(path + ".bias"), .in = spec.columns, .out = spec.rows};
}

DeviceNorm DeviceWeights::norm(const std::string& path) const {
  return {.weight = tensor(path + ".weight"), .bias = optional_tensor(path + ".bias")};
}

}  // namespace llmprof::workload::cuda
