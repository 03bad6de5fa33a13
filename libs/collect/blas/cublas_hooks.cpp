// The hooked functions of cuBLAS and cuBLASLt. Each call is passed on unchanged, its status returned as it is, and each
// call that succeeded becomes one kGpuGemm record with its times on the host. Every function stands here twice: under
// its own name for callers that were linked with it, and hidden for those that asked for its address
// (hook_for).

#include <string.h>

#include "collect/blas/call.h"
#include "collect/blas/cublas_call.h"

namespace llmprof::collect::blas {

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
