#pragma once
// Memory of a problem's tensors on a CPU: some sets of them, filled with random data.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"
#include "bench/measure.h"
#include "bench/operator.h"
#include "hw/cpu/measure.h"
#include "hw/system_files.h"

namespace llmprof::bench {

inline constexpr std::int64_t kCpuAlignment = 64;  // a cache line: no two tensors share one
inline constexpr std::int64_t kPageBytes = 4096;   // sets begin on pages: a prefetcher does not cross into the next

// Zeros, in large pages where the system gives them, so that page walks are not measured.
Result<hw::PeakBuffer> map_memory(std::int64_t bytes);

class CpuBuffers {
 public:
  // All sets hold the same values. Outputs are zero: touched, so that no page fault is measured.
  static Result<CpuBuffers> create(std::span<const TensorSpec> specs, std::int64_t sets, const Team& team,
                                   std::uint64_t seed);
  std::span<std::byte* const> set(std::size_t index) const { return sets_[index]; }
  std::size_t sets() const { return sets_.size(); }

 private:
  hw::PeakBuffer mapping_;
  std::vector<std::vector<std::byte*>> sets_;
};

// Bytes of one set in a CpuBuffers.
double cpu_set_bytes(std::span<const TensorSpec> specs);

// Random values of a tensor, as bytes. Beyond a million values they repeat: drawing billions would take longer than the
// measurement, and no operator sees the difference. A permutation does not repeat.
void fill_tensor(const TensorSpec& spec, std::uint64_t seed, const Team& team, std::byte* out);

// Memory that a program may still take here, control group considered; 0: unknown.
double available_memory_bytes(const hw::SystemFiles& files);

// Samples of a call on a CPU, by the monotonic clock.

// What a CPU sampler times: call(set) with one of `sets` sets of buffers.
struct CpuCalls {
  std::function<void(std::size_t set)> call;
  std::size_t sets = 1;
  // Cold only: called before a round through the sets begins, not timed. Empty: a round is long enough to empty the
  // cache.
  std::function<void()> flush;
};

class CpuSampler : public Sampler {
 public:
  CpuSampler(CpuCalls calls, Cache cache) : calls_(std::move(calls)), cache_(cache) {}
  Result<std::vector<Sample>> next(std::size_t wanted) override;

  std::string timer() const;  // "clock", "clock, 12 calls at a time"
  // Of the time it sampled, that the system gave this thread a CPU: under 1 when other programs had it.
  double cpu_share() const { return wall_seconds_ > 0 ? cpu_seconds_ / wall_seconds_ : 1; }

 private:
  double cold_sample();
  double hot_sample();
  void choose_calls_per_sample();

  CpuCalls calls_;
  Cache cache_;
  std::size_t next_set_ = 0;
  std::optional<std::size_t> calls_per_sample_;  // hot: known after the first
  double cpu_seconds_ = 0, wall_seconds_ = 0;
};

// Pure: how many calls of this length make one sample.
std::size_t calls_per_sample(double call_seconds);

}  // namespace llmprof::bench
