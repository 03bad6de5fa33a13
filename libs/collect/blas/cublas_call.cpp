#include "collect/blas/cublas_call.h"

#include <string.h>

#include "collect/blas/call.h"

namespace llmprof::collect::blas {

namespace {

struct GpuSize {
  std::int64_t m, n, k, batch;
};

// Of a cublasOperation_t.
wire::Transpose cublas_transpose(std::int64_t operation) {
  if (operation == 1) return wire::Transpose::kYes;
  return operation == 2 ? wire::Transpose::kConjugate : wire::Transpose::kNo;
}

// The shape of a call, as the log defines it: so far only who was called.
wire::Record shape_of(const GpuCall& call) {
  wire::Record record = wire::blank(wire::RecordKind::kGemmShape);
  record.gemm_shape.function = call.site->function_id.load(std::memory_order_relaxed);
  record.gemm_shape.library = call.site->library_id.load(std::memory_order_relaxed);
  return record;
}

void record_gemm(const llmprof_collector_table* table, const GpuCall& call, const wire::Record& shape, GpuSize size) {
  const std::int64_t batch = size.batch < 0 ? 0 : size.batch > ~0u ? ~0u : size.batch;
  wire::Record record = wire::blank(wire::RecordKind::kGpuGemm);
  record.gpu_gemm = {call.begin_ns,        call.end_ns, size.m, size.n, size.k, static_cast<std::uint32_t>(batch),
                     table->define(&shape)};
  table->record(&record);
}

std::int64_t as_number(Word word, int bits) { return bits == 32 ? static_cast<std::int32_t>(word) : word; }

std::int64_t element(Word array, std::int64_t index, int bits) {
  std::int64_t value = 0;
  const std::int64_t bytes = bits / 8;
  memcpy(&value, reinterpret_cast<const unsigned char*>(array) + index * bytes, static_cast<std::size_t>(bytes));
  return as_number(value, bits);
}

// An argument of the call: itself, or what it holds for a group.
std::int64_t argument(const GpuCall& call, std::uint8_t position, std::int64_t group, int bits) {
  const Word word = call.words[position];
  return call.signature->groups != 0 ? element(word, group, bits) : as_number(word, bits);
}

// The types' numbers and the transposes have 32 bits in all functions; group arrays hold no types.
std::int32_t number_at(const GpuCall& call, std::uint8_t position, std::int32_t otherwise) {
  return position != 0 ? static_cast<std::int32_t>(call.words[position]) : otherwise;
}

// Single precision may be computed in less: the handle says.
std::int32_t with_math_mode(const GpuCall& call, std::int32_t type, std::int32_t compute) {
  using GetMathMode = int (*)(Word handle, std::int32_t * mode);
  const auto ask = reinterpret_cast<GetMathMode>(call.site->helpers[0]);
  const bool single = type == kReal32 || type == kComplex32;
  std::int32_t mode = 0;
  if (!single || compute != kCompute32 || ask == nullptr || ask(call.words[0], &mode) != 0) return compute;
  return (mode & kMathModeMask) == kMathModeTf32 ? kComputeTf32 : compute;
}

void record_one(const llmprof_collector_table* table, const GpuCall& call, wire::Record record, std::int64_t group) {
  wire::GemmShapeRecord& shape = record.gemm_shape;
  const Signature& at = *call.signature;
  const std::int64_t m = argument(call, at.m, group, call.bits), n = argument(call, at.n, group, call.bits);
  shape.trans_a = cublas_transpose(argument(call, at.trans_a, group, 32));
  GpuSize size{m, n, 0, 1};
  if (at.trans_b != 0) {
    shape.trans_b = cublas_transpose(argument(call, at.trans_b, group, 32));
    size.k = argument(call, at.k, group, call.bits);
  } else {  // the matrix is m x n as stored; the record has the shape of op(A)
    const bool flipped = shape.trans_a != wire::Transpose::kNo;
    size = {flipped ? n : m, 1, flipped ? m : n, 1};
  }
  if (at.batch != 0) size.batch = as_number(call.words[at.batch], call.bits);
  if (at.group_sizes != 0) size.batch = element(call.words[at.group_sizes], group, call.bits);
  record_gemm(table, call, record, size);
}

}  // namespace

void record_cublas(const llmprof_collector_table* table, const GpuCall& call) {
  const Signature& at = *call.signature;
  const std::int32_t type_a = number_at(call, at.type_a, call.types.a);
  wire::Record shape = shape_of(call);
  shape.gemm_shape.type_a = type_id(table, type_a);
  shape.gemm_shape.type_b = type_id(table, number_at(call, at.type_b, call.types.a));
  shape.gemm_shape.type_c = type_id(table, number_at(call, at.type_c, call.types.c));
  const std::int32_t compute = number_at(call, at.compute, call.types.compute);
  shape.gemm_shape.compute_type = compute_id(table, with_math_mode(call, type_a, compute));
  const std::int64_t count = at.groups != 0 ? as_number(call.words[at.groups], call.bits) : 1;
  for (std::int64_t group = 0; group < count; ++group) record_one(table, call, shape, group);
}

// cublasLtMatmul: its sizes and types stand in descriptors, which the library that made them is asked about. Layouts
// and algorithms are plain data of a fixed size: what was asked once about the same bytes is kept. (The descriptor of
// the operation is not: its size differs between versions, and it holds pointers that differ between calls.)

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
  wire::Record record = shape_of(call);
  wire::GemmShapeRecord& shape = record.gemm_shape;
  shape.type_a = type_id(table, matrices.type_a);
  shape.type_b = type_id(table, matrices.type_b);
  shape.type_c = type_id(table, matrices.type_d);
  shape.compute_type = compute_id(table, ask(get, descriptor, kLtCompute, -1));
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
  record_gemm(table, call, record,
              {static_cast<std::int64_t>(matrices.m), static_cast<std::int64_t>(matrices.n),
               static_cast<std::int64_t>(k), matrices.batch});
}

// The hooked functions of cuBLAS and cuBLASLt. Each call is passed on unchanged, its status returned as it is, and each
// call that succeeded becomes one kGpuGemm record with its times on the host. Every function stands here twice: under
// its own name for callers that were linked with it, and hidden for those that asked for its address
// (hook_for).

namespace {

constexpr Word kNotInitialized = 1;  // a status of cuBLAS

[[gnu::noinline]] void record_call(const llmprof_collector_table* table, const GpuCall& call) {
  if (call.signature == &kLtMatmul) return record_cublas_lt(table, call);
  record_cublas(table, call);
}

template <class Forward>
[[gnu::always_inline]] inline Word pass_on_gpu(Site* site, const Call& from, GpuCall call, Forward forward) {
  const std::uintptr_t frame = from.frame;
  const llmprof_collector_table* table = is_nested(*site, frame) ? nullptr : collector();
  if (table == nullptr || site->target == nullptr) [[unlikely]] {
    if (site->target != nullptr) return forward(site->target);
    if (!refers_weakly(from.function, from.return_address)) end_unresolved(from.function);
    return kNotInitialized;
  }
  before_recording(table, site);
  outer_frame = frame;
  call.site = site;
  call.begin_ns = table->now();
  const Word status = forward(site->target);
  call.end_ns = table->now();
  if (static_cast<std::int32_t>(status) == 0) record_call(table, call);
  outer_frame = 0;
  return status;
}

Site* site_of(const Call& call) { return const_cast<Site*>(find_site(call.function, call.return_address)); }

}  // namespace
}  // namespace llmprof::collect::blas

using namespace llmprof::collect::blas;  // the hooks themselves stand outside: their names are C's

#define LLMPROF_GPU_HOOK(entry, site, name, signature, types, bits)                                                \
  extern "C" Word entry(LLMPROF_PER_SIGNATURE(PARAMETERS, signature)) {                                            \
    const Call call = LLMPROF_CALL(name);                                                                          \
    const Word words[] = {LLMPROF_PER_SIGNATURE(WORDS, signature)};                                                \
    return pass_on_gpu(site, call, {nullptr, words, 0, 0, &k##signature, kTypes##types, bits}, [&](void* target) { \
      return reinterpret_cast<decltype(&entry)>(target)(LLMPROF_PER_SIGNATURE(WORDS, signature));                  \
    });                                                                                                            \
  }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-declarations"
#pragma GCC visibility push(default)
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) \
  LLMPROF_GPU_HOOK(name, site_of(call), name, signature, types, bits)
#include "collect/blas/functions.def"
#pragma GCC visibility pop

#define LLMPROF_BLAS_CUDA(name, signature, types, bits) \
  LLMPROF_GPU_HOOK(llmprof_by_handle_##name, handle_site(call.function), name, signature, types, bits)
#include "collect/blas/functions.def"
#pragma GCC diagnostic pop

namespace llmprof::collect::blas {

void* handle_hook(Function function) {
  switch (function) {
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) \
  case k_##name:                                        \
    return reinterpret_cast<void*>(&llmprof_by_handle_##name);
#include "collect/blas/functions.def"
    default:
      return nullptr;
  }
}

namespace {

constinit std::atomic<Site*> handle_sites[kFunctions]{};

}  // namespace

Site* handle_site(Function function) { return handle_sites[function].load(std::memory_order_acquire); }

// One library for each function: the first that was asked. The same name in another library keeps its own address, so
// that no call ever ends in a library it was not meant for; the search for libraries that are not hooked tells of it.
void* hook_for(const char* name, void* found) {
  const Function function = function_of(name, kFirstGpu);
  void* const hook = function != kFunctions ? handle_hook(function) : nullptr;
  const llmprof_collector_table* table = hook != nullptr ? collector() : nullptr;
  if (table == nullptr) return found;
  Site* site = handle_sites[function].load(std::memory_order_acquire);
  // A library that was closed gives its place to what is asked now.
  if (site == nullptr || (site->target != found && !is_loaded(site->target))) {
    Site* const mine = make_handle_site(function, found);
    if (mine == nullptr) return found;
    if (handle_sites[function].compare_exchange_strong(site, mine, std::memory_order_acq_rel)) site = mine;
  }
  if (site->target != found) return found;
  table->note_library(site->library, 1);
  return hook;
}

}  // namespace llmprof::collect::blas
