// cublasLtMatmul: its sizes and types stand in descriptors, which the library that made them is asked about. Layouts
// and algorithms are plain data of a fixed size: what was asked once about the same bytes is kept. (The descriptor of
// the operation is not: its size differs between versions, and it holds pointers that differ between calls.)

#include <string.h>

#include "collect/blas/cublas_call.h"
#include "collect/blas/cublas_names.h"

namespace llmprof::collect::blas {
namespace {

using GetAttribute = int (*)(const void* object, std::int32_t attribute, void* value, std::size_t size,
                             std::size_t* written);

// `otherwise` if the library does not know the attribute.
template <class T>
T ask(void* function, const void* object, std::int32_t attribute, T otherwise) {
  T value{};
  std::size_t written = 0;
  const auto get = reinterpret_cast<GetAttribute>(function);
  return get(object, attribute, &value, sizeof(value), &written) == 0 ? value : otherwise;
}

// What layouts and algorithm say.
struct Matrices {
  std::uint64_t m, n, rows_a, columns_a;
  std::int32_t type_a, type_b, type_d, batch;
  wire::StringId algorithm;
  wire::Layout layout;
};

const void* pointer(Word word) { return reinterpret_cast<const void*>(word); }

wire::StringId ask_algorithm(const llmprof_collector_table* table, void* get, const void* algorithm) {
  if (algorithm == nullptr) return table->intern("heuristic");
  if (get == nullptr) return 0;
  return algorithm_id(table, {ask(get, algorithm, kLtAlgorithmId, -1), ask(get, algorithm, kLtTile, -1),
                              ask(get, algorithm, kLtStages, -1), ask(get, algorithm, kLtSplitK, -1),
                              ask(get, algorithm, kLtCluster, -1)});
}

Matrices ask_matrices(const llmprof_collector_table* table, const GpuCall& call) {
  void* const get = call.site->helpers[0];
  const void* const a = pointer(call.words[kLtLayoutA]);
  const void* const b = pointer(call.words[kLtLayoutB]);
  const void* const d = pointer(call.words[kLtLayoutD]);
  Matrices result{};
  result.m = ask<std::uint64_t>(get, d, kLtRows, 0);
  result.n = ask<std::uint64_t>(get, d, kLtColumns, 0);
  result.rows_a = ask<std::uint64_t>(get, a, kLtRows, 0);
  result.columns_a = ask<std::uint64_t>(get, a, kLtColumns, 0);
  result.type_a = ask(get, a, kLtType, -1);
  result.type_b = ask(get, b, kLtType, -1);
  result.type_d = ask(get, d, kLtType, -1);
  result.batch = ask(get, d, kLtBatch, 1);
  result.layout = ask(get, d, kLtOrder, 0) == kLtRowMajor ? wire::Layout::kRowMajor : wire::Layout::kColumnMajor;
  result.algorithm = ask_algorithm(table, call.site->helpers[2], pointer(call.words[kLtAlgorithm]));
  return result;
}

// 128 bits that stand for the bytes asked about: two different sets of bytes have the same with a chance of 2^-128.
struct Key {
  std::uint64_t first, second;
};

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

void add(Key* key, const void* bytes) {
  std::uint64_t words[kLtOpaqueBytes / 8] = {};
  if (bytes != nullptr) memcpy(words, bytes, sizeof(words));
  for (std::size_t i = 0; i < kLtOpaqueBytes / 8; i += 2) {
    key->first = mix(key->first ^ words[i] ^ 0x9E3779B97F4A7C15u, words[i + 1] ^ 0xD1B54A32D192ED03u);
    key->second = mix(key->second ^ words[i + 1] ^ 0xA24BAED4963EE407u, words[i] ^ 0x8CB92BA72F3D8DD7u);
  }
}

Key key_of(const GpuCall& call) {
  Key key{reinterpret_cast<std::uintptr_t>(call.site->helpers[0]), 1};  // another library may store otherwise
  for (const std::size_t at : {kLtLayoutA, kLtLayoutB, kLtLayoutD, kLtAlgorithm}) add(&key, pointer(call.words[at]));
  return key;
}

// Never emptied, never waits: a slot that a thread is filling is passed over, and so is a full table.
enum SlotState : std::uint32_t { kFree, kFilling, kReady };
struct Slot {
  std::atomic<std::uint32_t> state{kFree};
  Key key{};
  Matrices matrices{};
};
constexpr std::uint32_t kSlots = 4096, kProbes = 8;
constinit Slot slots[kSlots];

Matrices matrices_of(const llmprof_collector_table* table, const GpuCall& call) {
  const Key key = key_of(call);
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    Slot& slot = slots[(key.first + probe) % kSlots];
    std::uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kReady && slot.key.first == key.first && slot.key.second == key.second) return slot.matrices;
    if (state != kFree || !slot.state.compare_exchange_strong(state, kFilling, std::memory_order_acq_rel)) continue;
    slot.key = key;
    slot.matrices = ask_matrices(table, call);
    slot.state.store(kReady, std::memory_order_release);
    return slot.matrices;
  }
  return ask_matrices(table, call);
}

// Types of 8 bits and less have scales of their own.
bool has_scales(std::int32_t type) { return type >= 28 && type < kCudaTypes; }

std::int32_t scale_of(void* get, const void* descriptor, std::int32_t pointer_attribute, std::int32_t mode_attribute) {
  if (ask<const void*>(get, descriptor, pointer_attribute, nullptr) == nullptr) return -1;
  return ask(get, descriptor, mode_attribute, 0);
}

}  // namespace

void record_cublas_lt(const llmprof_collector_table* table, const GpuCall& call) {
  void* const get = call.site->helpers[1];
  if (call.site->helpers[0] == nullptr || get == nullptr) {  // whoever this library is, it does not say
    return table->count_loss(static_cast<std::uint16_t>(wire::LossKind::kBlasUnresolved), 1);
  }
  const Matrices matrices = matrices_of(table, call);
  const void* const descriptor = pointer(call.words[kLtDescriptor]);
  GpuShape shape;
  shape.type_a = matrices.type_a;
  shape.type_b = matrices.type_b;
  shape.type_c = matrices.type_d;
  shape.compute = ask(get, descriptor, kLtCompute, -1);
  shape.algorithm = matrices.algorithm;
  shape.epilogue = epilogue_id(table, ask(get, descriptor, kLtEpilogue, 1));
  if (has_scales(matrices.type_a) || has_scales(matrices.type_b)) {
    shape.scaling = scaling_id(table, scale_of(get, descriptor, kLtScalePointerA, kLtScaleModeA),
                               scale_of(get, descriptor, kLtScalePointerB, kLtScaleModeB));
  }
  shape.layout = matrices.layout;
  shape.trans_a = cublas_transpose(ask(get, descriptor, kLtTransA, 0));
  shape.trans_b = cublas_transpose(ask(get, descriptor, kLtTransB, 0));
  const std::uint64_t k = shape.trans_a == wire::Transpose::kNo ? matrices.columns_a : matrices.rows_a;
  record_gemm(table, call, shape,
              {static_cast<std::int64_t>(matrices.m), static_cast<std::int64_t>(matrices.n),
               static_cast<std::int64_t>(k), matrices.batch});
}

}  // namespace llmprof::collect::blas
