#pragma once
// What /proc and /sys say about the CPU, in more detail than a Device holds.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/system_files.h"

namespace llmprof::hw {

struct CpuCache {
  std::int64_t level = 0;
  std::string type;            // "Data", "Instruction", "Unified"
  std::int64_t bytes = 0;      // of one instance
  std::int64_t instances = 0;  // distinct ones among the CPUs this process may use
};

struct Cpu {
  std::string name;
  std::string isa;                    // "x86-64-v3", "aarch64"
  std::vector<int> online;            // CPU numbers
  std::vector<int> allowed;           // of those, by affinity
  std::optional<double> quota_cpus;   // of the control group
  std::int64_t cores = 0;             // physical cores of the machine, 0 unknown
  std::int64_t sockets = 0;           // 0 unknown
  std::int64_t threads_per_core = 0;  // 0 unknown
  std::optional<double> max_mhz, now_mhz;
  std::string governor;                            // "" unknown
  std::vector<CpuCache> caches;                    // by level
  std::int64_t memory_bytes = 0;                   // of the machine
  std::optional<std::int64_t> memory_limit_bytes;  // of the control group, when below memory_bytes

  std::int64_t usable_cpus() const;             // affinity and quota considered
  std::int64_t last_level_cache_bytes() const;  // all instances this process can use
};

Cpu read_cpu(const SystemFiles& files);

// How busy the machine is right now, all programs together: peaks measured beside others would be too low.

// Share of the CPU time between two readings of /proc/stat that was not idle. Nothing if they do not tell.
std::optional<double> busy_share(std::string_view stat_before, std::string_view stat_after);

// Looks at /proc/stat for this long.
std::optional<double> busy_share(const SystemFiles& files, std::chrono::milliseconds time);

inline constexpr double kIdle = 0.1;  // less than this much of the machine is busy: peaks may be measured

}  // namespace llmprof::hw
