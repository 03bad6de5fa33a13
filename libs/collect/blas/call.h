#pragma once
// What the hooks of CPU and GPU libraries have in common: who called, whether it counts, and what is told before.

#include "collect/blas/connect.h"
#include "collect/blas/opened.h"
#include "collect/blas/resolve.h"

namespace llmprof::collect::blas {

// Integers are passed on as whole registers and stack slots: whatever the width they were meant in, they arrive as sent
// (MKL's ILP64 interface has the same names as its LP64 one).
using Word = std::int64_t;

struct Call {
  Function function;
  std::uintptr_t return_address;
  std::uintptr_t frame;
};

#define LLMPROF_CALL(name)                                                   \
  Call {                                                                     \
    k_##name, reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), \
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))         \
  }

// The frame of the outermost hooked call of this thread. Libraries call their own hooked functions (cblas to Fortran,
// cuBLAS to cuBLASLt): a frame below it is such a call. It stays behind when the outer call is left by an exception or
// longjmp; a frame above it shows that, and a caller that is no such library.
extern __thread std::uintptr_t outer_frame;

inline bool is_nested(const Site& site, std::uintptr_t frame) {
  constexpr std::uintptr_t kFarthest = 64u << 20;  // farther away it is another stack
  return outer_frame != 0 && frame < outer_frame && outer_frame - frame < kFarthest && site.from_library;
}

void name_site(const llmprof_collector_table* table, Site* site);

inline void before_recording(const llmprof_collector_table* table, Site* site) {
  if (site->library_id.load(std::memory_order_acquire) == 0) [[unlikely]]
    name_site(table, site);
  if (opened_waiting.load(std::memory_order_relaxed) != 0) [[unlikely]]
    hand_over_opened(table);
  if (!site->told) [[unlikely]]
    table->count_loss(static_cast<std::uint16_t>(wire::LossKind::kBlasUnresolved), 1);
}

}  // namespace llmprof::collect::blas
