#include "hw/cpu/peak_kernels.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Stores that go past the caches: clang has one for all vectors, gcc the instructions of each set.
#if defined(__clang__)
#define LLMPROF_STREAM_512(to, value) __builtin_nontemporal_store(value, to)
#define LLMPROF_STREAM_256 LLMPROF_STREAM_512
#define LLMPROF_STREAM_128 LLMPROF_STREAM_512
#elif defined(__x86_64__)
#define LLMPROF_STREAM_512(to, value) _mm512_stream_ps(reinterpret_cast<float*>(to), value)
#define LLMPROF_STREAM_256(to, value) _mm256_stream_ps(reinterpret_cast<float*>(to), value)
#define LLMPROF_STREAM_128(to, value) _mm_stream_ps(reinterpret_cast<float*>(to), value)
#else
#define LLMPROF_STREAM_128(to, value) *(to) = value
#endif

// Accumulators hide the latency of a multiply-add (4 or 5 cycles at 2 a cycle: 10 chains) and must fit the registers
// beside the two constants: 32 registers with AVX-512 and NEON, 16 before.

namespace llmprof::hw {
namespace {

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
#define LLMPROF_STREAM_STORE LLMPROF_STREAM_512
#define LLMPROF_VECTOR_BYTES 64
#define LLMPROF_ACCUMULATORS 24
#include "hw/cpu/peak_kernels.inl"
#undef LLMPROF_STREAM_STORE
#undef LLMPROF_VECTOR_BYTES
#undef LLMPROF_ACCUMULATORS
}  // namespace avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#define LLMPROF_STREAM_STORE LLMPROF_STREAM_256
#define LLMPROF_VECTOR_BYTES 32
#define LLMPROF_ACCUMULATORS 12
#include "hw/cpu/peak_kernels.inl"
#undef LLMPROF_STREAM_STORE
#undef LLMPROF_VECTOR_BYTES
#undef LLMPROF_ACCUMULATORS
}  // namespace avx2
#pragma GCC pop_options

bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
bool has_avx2_fma() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
constexpr std::string_view kBaseline = "SSE2";
#else
constexpr std::string_view kBaseline = "128-bit vectors";
#endif

namespace baseline {
#define LLMPROF_STREAM_STORE LLMPROF_STREAM_128
#define LLMPROF_VECTOR_BYTES 16
#define LLMPROF_ACCUMULATORS 12
#include "hw/cpu/peak_kernels.inl"
#undef LLMPROF_STREAM_STORE
#undef LLMPROF_VECTOR_BYTES
#undef LLMPROF_ACCUMULATORS
}  // namespace baseline

bool always() { return true; }

}  // namespace

std::span<const PeakKernels> peak_kernels() {
  static constexpr std::array kKernels {
#if defined(__x86_64__)
    PeakKernels{
        "AVX-512",      has_avx512,        avx512::multiply_add_float32, avx512::multiply_add_float64, avx512::sum,
        avx512::kPlain, avx512::kStreaming},
        PeakKernels{"AVX2+FMA",   has_avx2_fma,    avx2::multiply_add_float32, avx2::multiply_add_float64, avx2::sum,
                    avx2::kPlain, avx2::kStreaming},
#endif
        PeakKernels{kBaseline,
                    always,
                    baseline::multiply_add_float32,
                    baseline::multiply_add_float64,
                    baseline::sum,
                    baseline::kPlain,
                    baseline::kStreaming},
  };
  return kKernels;
}

const PeakKernels& best_kernels() {
  for (const PeakKernels& kernels : peak_kernels()) {
    if (kernels.supported()) return kernels;
  }
  return peak_kernels().back();
}

}  // namespace llmprof::hw
