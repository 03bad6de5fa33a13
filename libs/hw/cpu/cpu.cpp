#include "hw/cpu/cpu.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "base/human.h"
#include "hw/cpu/measure.h"
#include "hw/cpu/peak_kernels.h"
#include "hw/device.h"
#include "hw/system_files.h"

namespace llmprof::hw {

namespace {

using WordSet = std::set<std::string_view>;

WordSet words_of(std::string_view text) {
  const auto words = split(text, ' ');
  return WordSet(words.begin(), words.end());
}

bool has_all(const WordSet& flags, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view flag) { return flags.contains(flag); });
}

// The levels of the x86-64 psABI, in the kernel's names of the flags (abm is LZCNT, pni is SSE3).
std::string isa_level(const SystemFiles& files) {
  const std::string text = files.value("proc/cpuinfo", "flags");
  if (text.empty()) return files.value("proc/cpuinfo", "Features").empty() ? "" : "aarch64";
  const WordSet flags = words_of(text);
  if (!has_all(flags, {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})) return "x86-64";
  if (!has_all(flags, {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})) return "x86-64-v2";
  if (!has_all(flags, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) return "x86-64-v3";
  return "x86-64-v4";
}

std::string cpu_folder(int cpu) { return fmt::format("sys/devices/system/cpu/cpu{}", cpu); }

void read_topology(const SystemFiles& files, Cpu& cpu) {
  std::set<std::string> cores, sockets;
  for (const int number : cpu.online) {
    const std::string folder = cpu_folder(number) + "/topology";
    const std::string siblings = files.line(folder + "/thread_siblings_list");
    if (siblings.empty()) return;
    cores.insert(siblings);
    sockets.insert(files.line(folder + "/physical_package_id"));
    cpu.threads_per_core = std::max(cpu.threads_per_core, static_cast<std::int64_t>(parse_cpu_list(siblings).size()));
  }
  cpu.cores = static_cast<std::int64_t>(cores.size());
  cpu.sockets = static_cast<std::int64_t>(sockets.size());
}

std::optional<double> to_mhz(std::string_view text) {
  const auto whole = to_number(split(text, '.').front());  // "2596.130"
  return whole ? std::optional<double>(static_cast<double>(*whole)) : std::nullopt;
}

void read_clocks(const SystemFiles& files, Cpu& cpu) {
  const auto raise = [](std::optional<double>& highest, double mhz) { highest = std::max(highest.value_or(0), mhz); };
  const std::string cpuinfo = files.text("proc/cpuinfo");
  for (const std::string_view line : split(cpuinfo, '\n')) {
    if (!line.starts_with("cpu MHz")) continue;
    if (const auto mhz = to_mhz(trim(line.substr(std::min(line.size(), line.find(':') + 1))))) raise(cpu.now_mhz, *mhz);
  }
  for (const int number : cpu.online) {
    const std::string folder = cpu_folder(number) + "/cpufreq";
    if (const auto khz = files.number(folder + "/cpuinfo_max_freq"))
      raise(cpu.max_mhz, static_cast<double>(*khz) / 1000);
    if (cpu.governor.empty()) cpu.governor = files.line(folder + "/scaling_governor");
  }
}

std::int64_t parse_cache_bytes(std::string_view text) {  // "32K", "8M"
  if (text.empty()) return 0;
  const std::int64_t unit = text.back() == 'K' ? 1024 : text.back() == 'M' ? 1024 * 1024 : 1;
  if (unit != 1) text.remove_suffix(1);
  const auto number = to_number(text);
  return number && *number > 0 && *number < (std::int64_t{1} << 40) ? *number * unit : 0;
}

void read_caches(const SystemFiles& files, Cpu& cpu) {
  std::map<std::pair<std::int64_t, std::string>, std::pair<std::int64_t, std::set<std::string>>> found;
  for (const int number : cpu.allowed) {
    const std::string folder = cpu_folder(number) + "/cache";
    for (const std::string& index : files.list(folder)) {
      const std::string entry = folder + "/" + index;
      const auto level = files.number(entry + "/level");
      const std::int64_t bytes = parse_cache_bytes(files.line(entry + "/size"));
      if (!level || bytes == 0) continue;
      auto& [size, sharers] = found[{*level, files.line(entry + "/type")}];
      size = std::max(size, bytes);
      const std::string shared = files.line(entry + "/shared_cpu_list");
      sharers.insert(shared.empty() ? std::to_string(number) : shared);
    }
  }
  for (const auto& [kind, cache] : found) {
    cpu.caches.push_back({kind.first, kind.second, cache.first, static_cast<std::int64_t>(cache.second.size())});
  }
}

std::int64_t count_processors(const SystemFiles& files) {
  const std::string cpuinfo = files.text("proc/cpuinfo");
  const auto lines = split(cpuinfo, '\n');
  return std::count_if(lines.begin(), lines.end(), [](std::string_view line) { return line.starts_with("processor"); });
}

void read_cpu_sets(const SystemFiles& files, Cpu& cpu) {
  cpu.online = parse_cpu_list(files.line("sys/devices/system/cpu/online"));
  if (cpu.online.empty()) {  // no /sys, as in some containers
    cpu.online.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, count_processors(files))));
    std::iota(cpu.online.begin(), cpu.online.end(), 0);
  }
  // The mask may name CPUs that are not there; the kernel never runs us on those.
  const auto mask = parse_cpu_list(files.value("proc/self/status", "Cpus_allowed_list"));
  std::set_intersection(cpu.online.begin(), cpu.online.end(), mask.begin(), mask.end(),
                        std::back_inserter(cpu.allowed));
  if (cpu.allowed.empty()) cpu.allowed = cpu.online;
}

void read_memory(const SystemFiles& files, const CgroupLimits& limits, Cpu& cpu) {
  const std::string total = files.value("proc/meminfo", "MemTotal");  // "24575 kB"
  const auto kib = to_number(split(total, ' ').front());
  cpu.memory_bytes = kib.value_or(0) * 1024;
  if (limits.memory_bytes && (*limits.memory_bytes < cpu.memory_bytes || cpu.memory_bytes == 0)) {
    cpu.memory_limit_bytes = limits.memory_bytes;
  }
}

std::string read_name(const SystemFiles& files) {
  for (const char* key : {"model name", "Model", "Hardware"}) {
    const std::string name = files.value("proc/cpuinfo", key);
    if (!name.empty()) return name;
  }
  return "CPU";
}

// How large data must be to lie in a level of the memory hierarchy, and nowhere nearer.

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

struct CpuTimes {
  std::int64_t all = 0, idle = 0;
};

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are already part of user and nice.
std::optional<CpuTimes> parse(std::string_view stat) {
  constexpr std::size_t kIdleField = 3, kWaitField = 4, kFields = 8;
  const std::string_view line = stat.substr(0, stat.find('\n'));
  if (!line.starts_with("cpu ")) return std::nullopt;
  CpuTimes times;
  std::size_t field = 0;
  for (const std::string_view word : split(line.substr(4), ' ')) {
    if (word.empty() || field == kFields) continue;
    const std::optional<std::int64_t> ticks = to_number(word);
    if (!ticks) return std::nullopt;
    times.all += *ticks;
    if (field == kIdleField || field == kWaitField) times.idle += *ticks;
    ++field;
  }
  return field >= kWaitField ? std::optional(times) : std::nullopt;
}

}  // namespace

std::int64_t Cpu::usable_cpus() const {
  const auto by_affinity = static_cast<std::int64_t>(allowed.size());
  const std::int64_t by_quota = quota_cpus ? static_cast<std::int64_t>(std::ceil(*quota_cpus)) : by_affinity;
  return std::max<std::int64_t>(1, std::min(by_affinity, by_quota));
}

std::int64_t Cpu::last_level_cache_bytes() const {
  return caches.empty() ? 0 : caches.back().bytes * caches.back().instances;
}

Cpu read_cpu(const SystemFiles& files) {
  Cpu cpu;
  cpu.name = read_name(files);
  cpu.isa = isa_level(files);
  read_cpu_sets(files, cpu);
  const CgroupLimits limits = cgroup_limits(files);
  cpu.quota_cpus = limits.cpus;
  read_topology(files, cpu);
  read_clocks(files, cpu);
  read_caches(files, cpu);
  read_memory(files, limits, cpu);
  return cpu;
}

Device probe_cpu(const std::string& root) {
  const Cpu cpu = read_cpu(SystemFiles(root));
  std::int64_t cache_bytes = cpu.last_level_cache_bytes();
  if (cache_bytes == 0 && root == "/")
    cache_bytes = std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE));  // asks the CPU itself
  return {.kind = "cpu",
          .name = cpu.name,
          .chip = cpu.isa,
          .units = cpu.usable_cpus(),
          .memory_bytes = cpu.memory_limit_bytes.value_or(cpu.memory_bytes),
          .cache_bytes = cache_bytes,
          .clock_mhz = cpu.max_mhz ? cpu.max_mhz : cpu.now_mhz,
          .driver = ""};
}

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

std::optional<double> busy_share(std::string_view stat_before, std::string_view stat_after) {
  const std::optional<CpuTimes> before = parse(stat_before), after = parse(stat_after);
  if (!before || !after || after->all <= before->all) return std::nullopt;
  return 1 - static_cast<double>(after->idle - before->idle) / static_cast<double>(after->all - before->all);
}

std::optional<double> busy_share(const SystemFiles& files, std::chrono::milliseconds time) {
  const std::string before = files.text("proc/stat");
  std::this_thread::sleep_for(time);
  return busy_share(before, files.text("proc/stat"));
}

}  // namespace llmprof::hw
