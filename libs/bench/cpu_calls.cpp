#include "bench/cpu_calls.h"

#include <fmt/format.h>

#include <sys/mman.h>
#include <time.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/human.h"
#include "bench/bench_plan.h"
#include "bench/check.h"
#include "hw/system_files.h"

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

namespace {

// Reading the clock takes some 20 to 50 ns: a hundredth of 20 us is 200 ns.
constexpr double kShortCall = 20e-6, kSampleSeconds = 100e-6;
constexpr double kMostCalls = 10'000;
constexpr double kLeastSeconds = 1e-9;  // the clock's step: a call that seems to take none took less than one

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double now() { return seconds_of(CLOCK_MONOTONIC); }

}  // namespace

std::size_t calls_per_sample(double call_seconds) {
  if (call_seconds >= kShortCall) return 1;
  return static_cast<std::size_t>(
      std::min(kMostCalls, std::ceil(kSampleSeconds / std::max(call_seconds, kLeastSeconds))));
}

Result<std::vector<Sample>> CpuSampler::next(std::size_t wanted) {
  const double cpu_before = seconds_of(CLOCK_THREAD_CPUTIME_ID), wall_before = now();
  if (cache_ == Cache::kHot && !calls_per_sample_) choose_calls_per_sample();
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < wanted; ++i) {
    samples.push_back({.seconds = cache_ == Cache::kHot ? hot_sample() : cold_sample()});
  }
  cpu_seconds_ += seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
  wall_seconds_ += now() - wall_before;
  return samples;
}

double CpuSampler::cold_sample() {
  if (next_set_ == 0 && calls_.flush) calls_.flush();
  const double begin = now();
  calls_.call(next_set_);
  const double end = now();
  next_set_ = (next_set_ + 1) % std::max<std::size_t>(calls_.sets, 1);
  return std::max(end - begin, kLeastSeconds);
}

double CpuSampler::hot_sample() {
  const double begin = now();
  for (std::size_t i = 0; i < *calls_per_sample_; ++i) calls_.call(0);
  return std::max(now() - begin, kLeastSeconds) / static_cast<double>(*calls_per_sample_);
}

// The best of three: the first one warms the cache, and others may be disturbed.
void CpuSampler::choose_calls_per_sample() {
  double best = kShortCall;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    calls_.call(0);
    best = std::min(best, now() - begin);
  }
  calls_per_sample_ = calls_per_sample(best);
}

std::string CpuSampler::timer() const {
  if (calls_per_sample_.value_or(1) == 1) return "clock";
  return fmt::format("clock, {} calls at a time", *calls_per_sample_);
}

}  // namespace llmprof::bench
