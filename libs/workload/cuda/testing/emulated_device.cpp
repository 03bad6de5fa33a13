// A device that runs the real kernels on the CPU, and says when a launch does not fit its kernel.

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#include "workload/cuda/testing/run_block.h"
#include "workload/cuda/testing/test_device.h"
// The kernels themselves:
#include "workload/cuda/attention_kernels.cu"  // NOLINT
#include "workload/cuda/infer_kernels.cu"      // NOLINT
#include "workload/cuda/paged_kernels.cu"      // NOLINT
#include "workload/cuda/train_kernels.cu"      // NOLINT

namespace llmprof::workload::cuda {
namespace {

using Bytes = std::vector<std::vector<std::byte>>;  // of each argument

template <class T>
T value_of(const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct Entry {
  std::vector<std::size_t> sizes;  // of the arguments
  std::function<void(const Bytes&)> call;
};

template <class... T, std::size_t... kIndex>
Entry entry_of(void (*kernel)(T...), std::index_sequence<kIndex...>) {
  return {{sizeof(T)...}, [kernel](const Bytes& bytes) { kernel(value_of<T>(bytes[kIndex])...); }};
}
template <class... T>
Entry entry(void (*kernel)(T...)) {
  return entry_of(kernel, std::index_sequence_for<T...>());
}

#define LLMPROF_ENTRY(name) \
  { #name, entry(name) }
#define LLMPROF_BOTH(name) LLMPROF_ENTRY(name##_f32), LLMPROF_ENTRY(name##_bf16)
const std::map<std::string, Entry>& kernels_by_name() {
  static const std::map<std::string, Entry> all{LLMPROF_BOTH(embed),
                                                LLMPROF_BOTH(rms_norm),
                                                LLMPROF_BOTH(layer_norm),
                                                LLMPROF_BOTH(rotate_and_cache),
                                                LLMPROF_BOTH(cache),
                                                LLMPROF_BOTH(silu_multiply),
                                                LLMPROF_BOTH(gelu),
                                                LLMPROF_BOTH(fill_random),
                                                LLMPROF_BOTH(convert),
                                                LLMPROF_BOTH(attention_prefill),
                                                LLMPROF_BOTH(attention_decode),
                                                LLMPROF_BOTH(attention_join),
                                                LLMPROF_BOTH(paged_embed),
                                                LLMPROF_BOTH(paged_rotate_and_cache),
                                                LLMPROF_BOTH(paged_cache),
                                                LLMPROF_BOTH(paged_attention),
                                                LLMPROF_BOTH(gather_rows),
                                                LLMPROF_ENTRY(argmax),
                                                LLMPROF_ENTRY(causal_softmax),
                                                LLMPROF_ENTRY(causal_softmax_backward),
                                                LLMPROF_ENTRY(cross_entropy),
                                                LLMPROF_ENTRY(cross_entropy_backward),
                                                LLMPROF_ENTRY(layer_norm_backward),
                                                LLMPROF_ENTRY(layer_norm_gradients),
                                                LLMPROF_ENTRY(column_sums),
                                                LLMPROF_ENTRY(gelu_backward),
                                                LLMPROF_ENTRY(embedding_backward),
                                                LLMPROF_ENTRY(position_backward),
                                                LLMPROF_ENTRY(adamw)};
  return all;
}

void run_grid(const Launch& l, const std::function<void()>& body) {
  const auto size = [](std::int64_t value) { return static_cast<unsigned>(value); };
  gridDim = {size(l.grid_x), size(l.grid_y), size(l.grid_z)};
  blockDim = {size(l.block_x), size(l.block_y), 1};
  for (unsigned z = 0; z < gridDim.z; ++z) {
    for (unsigned y = 0; y < gridDim.y; ++y) {
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, y, z};
        run_block(blockDim.x * blockDim.y, body);
      }
    }
  }
}

float element(const Matrix& m, std::int64_t batch, std::int64_t row, std::int64_t column) {
  const std::int64_t place =
      batch * m.batch_stride + (m.transposed ? column * m.stride + row : row * m.stride + column);
  if (m.type == ElementType::kFloat32) return reinterpret_cast<const float*>(m.data)[place];
  return to_float(reinterpret_cast<const Bf16*>(m.data)[place]);
}

void multiply_now(const Product& p) {
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      for (std::int64_t column = 0; column < p.n; ++column) {
        double sum = p.accumulate ? element(p.out, batch, row, column) : 0.0F;
        if (p.bias != 0) sum += element({.data = p.bias, .type = p.out.type}, 0, 0, column);
        for (std::int64_t i = 0; i < p.k; ++i) sum += element(p.a, batch, row, i) * element(p.b, batch, i, column);
        const std::int64_t place = batch * p.out.batch_stride + row * p.out.stride + column;
        if (p.out.type == ElementType::kFloat32) {
          reinterpret_cast<float*>(p.out.data)[place] = static_cast<float>(sum);
        } else {
          store(reinterpret_cast<Bf16*>(p.out.data) + place, static_cast<float>(sum));
        }
      }
    }
  }
}

class EmulatedDevice final : public Device {
 public:
  std::string name() const override { return "emulated"; }
  bool has_bfloat16() const override { return true; }
  Pointer allocate(std::int64_t bytes) override {
    constexpr std::size_t kAlignment = 256;
    const std::size_t size = (static_cast<std::size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
    return reinterpret_cast<Pointer>(std::aligned_alloc(kAlignment, size));
  }
  void release(Pointer pointer) override { std::free(reinterpret_cast<void*>(pointer)); }
  void copy_in(Pointer to, const void* from, std::int64_t bytes) override {
    EXPECT_EQ(captured_, nullptr) << "a copy from the host cannot be captured";
    std::memcpy(reinterpret_cast<void*>(to), from, static_cast<std::size_t>(bytes));
  }
  void copy_out(void* to, Pointer from, std::int64_t bytes) override {
    EXPECT_EQ(captured_, nullptr) << "a copy to the host cannot be captured";
    std::memcpy(to, reinterpret_cast<const void*>(from), static_cast<std::size_t>(bytes));
  }
  void copy(Pointer to, Pointer from, std::int64_t bytes) override {
    enqueue([=] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), static_cast<std::size_t>(bytes));
    });
  }
  void clear(Pointer to, std::int64_t bytes) override {
    enqueue([=] { std::memset(reinterpret_cast<void*>(to), 0, static_cast<std::size_t>(bytes)); });
  }
  void launch(const std::string& kernel, const Launch& l, std::initializer_list<Argument> arguments) override {
    const auto found = kernels_by_name().find(kernel);
    ASSERT_NE(found, kernels_by_name().end()) << kernel;
    Bytes bytes;
    for (const Argument& argument : arguments) {
      const auto* const data = static_cast<const std::byte*>(argument.data);
      bytes.emplace_back(data, data + argument.bytes);
    }
    ASSERT_EQ(bytes.size(), found->second.sizes.size()) << kernel;
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i].size(), found->second.sizes[i]) << kernel << i;
    ASSERT_EQ(l.block_x * l.block_y % 32, 0) << kernel;
    ASSERT_LE(l.block_x * l.block_y, 1024) << kernel;
    enqueue([entry = &found->second, bytes, l] { run_grid(l, [&] { entry->call(bytes); }); });
  }
  void multiply(const Product& product) override {
    enqueue([product] { multiply_now(product); });
  }
  std::unique_ptr<Graph> capture(const std::function<void()>& body) override {
    auto graph = std::make_unique<Captured>();
    captured_ = graph.get();
    body();
    captured_ = nullptr;
    return graph;
  }
  Result<void> status() const override { return {}; }
  Result<void> finish() override { return {}; }

 private:
  struct Captured final : Graph {
    std::vector<std::function<void()>> work;
    void launch() override {
      for (const auto& piece : work) piece();
    }
  };
  void enqueue(std::function<void()> piece) {
    if (captured_ != nullptr) return captured_->work.push_back(std::move(piece));
    piece();
  }
  Captured* captured_ = nullptr;
};

}  // namespace

std::shared_ptr<Device> test_device() { return std::make_shared<EmulatedDevice>(); }

}  // namespace llmprof::workload::cuda
