#include "bench/cpu_bench_buffers.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/human.h"
#include "bench/bench_plan.h"
#include "bench/check.h"
#include "hw/cgroup.h"

namespace llmprof::bench {
namespace {

constexpr std::int64_t kMostDrawn = 1 << 20;
constexpr std::int64_t kTouchGrain = 1 << 20;  // bytes

std::int64_t rounded_up(std::int64_t bytes, std::int64_t step) {
  return (std::max<std::int64_t>(bytes, 1) + step - 1) / step * step;
}

// dst[i] = src[i % period], by all threads: each touches first what it will probably compute on.
void tile(std::byte* to, std::int64_t bytes, const std::byte* from, std::int64_t period, const Team& team) {
  team.each(bytes, kTouchGrain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t at = begin % period, length = std::min(period - at, end - begin);
      std::memcpy(to + begin, from + at, static_cast<std::size_t>(length));
      begin += length;
    }
  });
}

void zero(std::byte* to, std::int64_t bytes, const Team& team) {
  team.each(bytes, kTouchGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

Result<Mapping> Mapping::create(std::int64_t bytes) {
  void* address =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the system gives no {} of memory", base::human_bytes(static_cast<double>(bytes))), ""};
  }
  ::madvise(address, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  Mapping mapping;
  mapping.data_ = static_cast<std::byte*>(address);
  mapping.bytes_ = bytes;
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(bytes_));
}

void fill_tensor(const TensorSpec& spec, std::uint64_t seed, const Team& team, std::byte* out) {
  TensorSpec drawn = spec;
  if (spec.fill.kind != Fill::Kind::kPermutation) drawn.elements = std::min(spec.elements, kMostDrawn);
  std::vector<std::byte> bytes(static_cast<std::size_t>(drawn.bytes()));
  encode(random_values(drawn, seed), spec.type, bytes.data());
  if (!bytes.empty()) tile(out, spec.bytes(), bytes.data(), drawn.bytes(), team);
}

double cpu_set_bytes(std::span<const TensorSpec> specs) {
  return std::ceil(set_bytes(specs, kCpuAlignment) / kPageBytes) * kPageBytes;
}

Result<CpuBuffers> CpuBuffers::create(std::span<const TensorSpec> specs, std::int64_t sets, const Team& team,
                                      std::uint64_t seed) {
  const auto stride = static_cast<std::int64_t>(cpu_set_bytes(specs));
  CpuBuffers buffers;
  LLMPROF_LET(buffers.mapping_, Mapping::create(stride * sets));
  for (std::int64_t set = 0; set < sets; ++set) {
    std::byte* at = buffers.mapping_.data() + set * stride;
    auto& tensors = buffers.sets_.emplace_back();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      tensors.push_back(at);
      if (specs[i].role == Role::kOut) {
        zero(at, specs[i].bytes(), team);
      } else if (set == 0) {
        fill_tensor(specs[i], seed * 131 + i, team, at);
      } else if (specs[i].bytes() > 0) {
        tile(at, specs[i].bytes(), buffers.sets_[0][i], specs[i].bytes(), team);
      }
      at += rounded_up(specs[i].bytes(), kCpuAlignment);
    }
  }
  return buffers;
}

double available_memory_bytes(const hw::SystemFiles& files) {
  const std::string text = files.value("proc/meminfo", "MemAvailable");  // "23131056 kB"
  const auto kilobytes = hw::to_number(hw::trim(std::string_view(text).substr(0, text.find(' '))));
  double bytes = kilobytes ? static_cast<double>(*kilobytes) * 1024 : 0;
  if (const auto limit = hw::cgroup_limits(files).memory_bytes) {
    bytes = bytes > 0 ? std::min(bytes, static_cast<double>(*limit)) : static_cast<double>(*limit);
  }
  return bytes;
}

}  // namespace llmprof::bench
