#pragma once
// The loops that reach a CPU's limits, one set per instruction set; best_kernels() picks the widest this CPU has.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace llmprof::hw {

// Writes `to` from `a` and `b`, `passes` times.
using StoreLoop = void (*)(std::byte* to, const std::byte* a, const std::byte* b, std::size_t bytes,
                           std::int64_t passes);
struct StoreKernels {
  StoreLoop write;  // a constant
  StoreLoop copy;   // a
  StoreLoop triad;  // a + 0.5 * b, of float32
};

struct PeakKernels {
  std::string_view isa;  // "AVX-512"
  bool (*supported)();
  // Multiply-adds on registers only; returns how many FLOPs were done. `sink` keeps the result alive.
  std::int64_t (*multiply_add_float32)(std::int64_t rounds, double* sink);
  std::int64_t (*multiply_add_float64)(std::int64_t rounds, double* sink);
  // Buffers are aligned to 64 bytes, sizes multiples of kReadBlockBytes. Passes go over the same bytes again: a pass
  // over a first-level cache takes less time than a call.
  std::uint64_t (*sum)(const std::byte* buffer, std::size_t bytes, std::int64_t passes);
  StoreKernels plain;
  StoreKernels streaming;  // past the caches, where there are such stores: what is overwritten is not read before
};

inline constexpr std::size_t kReadBlockBytes = 1024;

std::span<const PeakKernels> peak_kernels();  // widest first
const PeakKernels& best_kernels();

}  // namespace llmprof::hw
