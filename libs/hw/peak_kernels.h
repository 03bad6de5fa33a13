#pragma once
// The loops that reach a CPU's limits, one set per instruction set; best_kernels() picks the widest this CPU has.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace llmprof::hw {

struct PeakKernels {
  std::string_view isa;  // "AVX-512"
  bool (*supported)();
  // Multiply-adds on registers only; returns how many FLOPs were done. `sink` keeps the result alive.
  std::int64_t (*multiply_add_float32)(std::int64_t rounds, double* sink);
  std::int64_t (*multiply_add_float64)(std::int64_t rounds, double* sink);
  // Sum of a buffer whose size is a multiple of kReadBlockBytes and which is aligned to 64 bytes.
  std::uint64_t (*sum)(const std::byte* buffer, std::size_t bytes);
};

inline constexpr std::size_t kReadBlockBytes = 1024;

std::span<const PeakKernels> peak_kernels();  // widest first
const PeakKernels& best_kernels();

}  // namespace llmprof::hw
