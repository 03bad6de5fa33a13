// Kernels of the measurement itself. Their names begin with llmprof_timing_: that is how activity.cpp tells them from what
// is measured.

#include <cstdint>

namespace llmprof {

__device__ inline std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ inline unsigned multiprocessor() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

struct Stamp {
  unsigned long long cycles, nanoseconds;
};

extern "C" {

// Holds back what is queued behind it until the host says go, or, so that nothing can hang, until the time is up: then it
// says so. Both flags lie in the host's memory.
__global__ void llmprof_timing_wait(const volatile unsigned* go, volatile unsigned* gave_up, std::uint64_t limit_ns) {
  const std::uint64_t begin = nanoseconds();
  while (*go == 0) {
    if (nanoseconds() - begin > limit_ns) {
      *gave_up = 1;
      return;
    }
  }
}

__global__ void llmprof_timing_marker() {}
__global__ void llmprof_timing_empty() {}

// Both clocks of each multiprocessor that a block comes to. With `since`, not before 50 us have passed there.
__global__ void llmprof_timing_stamp(Stamp* stamps, const Stamp* since, unsigned count) {
  const unsigned id = multiprocessor();
  if (id >= count) return;
  if (since != nullptr) {
    const std::uint64_t until = since[id].nanoseconds + 50'000;
    while (since[id].nanoseconds != 0 && nanoseconds() < until) {
    }
  }
  // One store of 16 bytes: two blocks on one multiprocessor leave the stamp of one of them, not a mixture.
  *reinterpret_cast<ulonglong2*>(stamps + id) =
      make_ulonglong2(static_cast<unsigned long long>(clock64()), nanoseconds());
}

// Replaces what the L2 cache holds by a buffer of zeros that nobody wants. `__ldcg`: not by way of L1.
__global__ void llmprof_timing_flush(uint4* zeros, std::int64_t packs) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned any = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += step) {
    const uint4 pack = __ldcg(zeros + i);
    any |= pack.x | pack.y | pack.z | pack.w;
  }
  if (any != 0) zeros[0] = make_uint4(0, 0, 0, 0);  // never, but the compiler cannot know: it keeps the reads
}

// Of known length: what timers are tested with. Not a service kernel, so that it can be what is measured.
__global__ void llmprof_spin_ns(std::uint64_t length_ns) {
  const std::uint64_t until = nanoseconds() + length_ns;
  while (nanoseconds() < until) {
  }
}
// Its own length by the device's two clocks, and how the nanoseconds tick.
__global__ void llmprof_spin_report(long long cycles, std::uint64_t* out) {
  const std::uint64_t t0 = nanoseconds();
  std::uint64_t first = t0;
  while ((first = nanoseconds()) == t0) {
  }
  std::uint64_t second = first;
  while ((second = nanoseconds()) == first) {
  }
  const std::uint64_t begin = nanoseconds();
  const long long c0 = clock64();
  while (clock64() - c0 < cycles) {
  }
  out[0] = nanoseconds() - begin;
  out[1] = second - first;
}
}

}  // namespace llmprof
