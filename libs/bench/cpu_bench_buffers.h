#pragma once
// Memory of a problem's tensors on a CPU: some sets of them, filled with random data.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/operator.h"
#include "hw/system_files.h"

namespace llmprof::bench {

inline constexpr std::int64_t kCpuAlignment = 64;  // a cache line: no two tensors share one
inline constexpr std::int64_t kPageBytes = 4096;   // sets begin on pages: a prefetcher does not cross into the next

// A mapping of zeros, with large pages where the system gives them, so that page walks are not measured.
class Mapping {
 public:
  static Result<Mapping> create(std::int64_t bytes);
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class CpuBuffers {
 public:
  // All sets hold the same values. Outputs are zero: touched, so that no page fault is measured.
  static Result<CpuBuffers> create(std::span<const TensorSpec> specs, std::int64_t sets, const Team& team,
                                   std::uint64_t seed);
  std::span<std::byte* const> set(std::size_t index) const { return sets_[index]; }
  std::size_t sets() const { return sets_.size(); }

 private:
  Mapping mapping_;
  std::vector<std::vector<std::byte*>> sets_;
};

// Bytes of one set in a CpuBuffers.
double cpu_set_bytes(std::span<const TensorSpec> specs);

// Random values of a tensor, as bytes. Beyond a million values they repeat: drawing billions would take longer than the
// measurement, and no operator sees the difference. A permutation does not repeat.
void fill_tensor(const TensorSpec& spec, std::uint64_t seed, const Team& team, std::byte* out);

// Memory that a program may still take here, control group considered; 0: unknown.
double available_memory_bytes(const hw::SystemFiles& files);

}  // namespace llmprof::bench
