// How large data must be to lie in a level of the memory hierarchy, and nowhere nearer.

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "hw/cpu_peaks.h"
#include "hw/peak_kernels.h"

namespace llmprof::hw {
namespace {

std::size_t whole_blocks(std::int64_t bytes) {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, bytes)) / kReadBlockBytes * kReadBlockBytes;
}

// What one of `threads` threads has of a cache, when they spread over its instances.
std::int64_t share_of(const CpuCache& cache, std::int64_t threads) {
  const std::int64_t sharers =
      (threads + std::max<std::int64_t>(1, cache.instances) - 1) / std::max<std::int64_t>(1, cache.instances);
  return cache.bytes / sharers;
}

StreamLevel cache_level(const CpuCache& cache, const CpuCache* nearer, std::int64_t threads) {
  StreamLevel level{.name = fmt::format("L{}", cache.level), .bytes_per_thread = 0, .why = ""};
  std::int64_t bytes = share_of(cache, threads) / 2;
  if (nearer != nullptr) {
    // Half of a large cache that many cores share may fit their own caches: then more than half, if it helps.
    const std::int64_t beyond = 2 * share_of(*nearer, threads);
    bytes = std::max(bytes, beyond);
    if (beyond > share_of(cache, threads) * 3 / 4) {
      level.why = fmt::format("the {} of L{} are hardly more than the L{} caches of the threads that share them",
                              base::human_bytes(static_cast<double>(cache.bytes)), cache.level, nearer->level);
      return level;
    }
  }
  level.bytes_per_thread = whole_blocks(bytes);
  return level;
}

StreamLevel memory_level(const Device& device, std::int64_t threads) {
  constexpr std::int64_t kLeast = 512ll << 20, kMost = 8ll << 30, kMostOfOne = 1ll << 30;
  std::int64_t total = std::clamp(4 * device.cache_bytes, kLeast, kMost);
  if (threads == 1 && device.units > 1) total = std::min(total, std::max(kMostOfOne, 2 * device.cache_bytes));
  if (device.memory_bytes > 0) total = std::min(total, device.memory_bytes / 4);
  return {.name = "", .bytes_per_thread = std::max(whole_blocks(total / threads), kReadBlockBytes), .why = ""};
}

}  // namespace

std::vector<StreamLevel> stream_levels(const Cpu& cpu, const Device& device, std::int64_t threads) {
  std::vector<StreamLevel> levels;
  const CpuCache* nearer = nullptr;
  for (const CpuCache& cache : cpu.caches) {
    if (cache.type == "Instruction" || cache.bytes <= 0) continue;
    levels.push_back(cache_level(cache, nearer, threads));
    nearer = &cache;
  }
  levels.push_back(memory_level(device, threads));
  return levels;
}

}  // namespace llmprof::hw
