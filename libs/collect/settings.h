#pragma once
// What the environment tells the collector. Read once, when the collector is first asked whether it is on.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect {

inline constexpr std::size_t kMaxFolderBytes = 3072;  // leaves room for the file name within PATH_MAX

inline constexpr std::size_t kMaxPatternBytes = 2048;

struct Settings {
  char folder[kMaxFolderBytes];          // LLMPROF_CAPTURE_DIR: absolute; empty means off
  char window_range[kMaxPatternBytes];   // LLMPROF_WINDOW_RANGE: the range that opens the window; "": none
  char step_patterns[kMaxPatternBytes];  // LLMPROF_STEP_PATTERNS: names of steps, one a line; "": not counted
  std::uint64_t max_bytes;
  std::uint64_t flush_ms;
  std::uint64_t pool_chunks;
  std::uint64_t window_from_ns, window_until_ns, window_lasts_ns;
  std::uint64_t first_step, end_step;
  std::uint64_t keep_ms, segment_ms;
  std::uint64_t gpu;     // GpuActivity bits
  std::uint64_t graphs;  // GraphMode
  std::uint64_t graphs_after_ms;
  std::uint64_t kernels;  // KernelMode
  std::uint64_t kernels_after_ms;
  std::uint64_t rest_from_ns, rest_every_ms, rest_ms;
  std::uint64_t stacks;  // StackBits
  std::uint64_t gpu_pool_bytes;
  std::uint64_t profiler_api;
  std::uint64_t control;
  std::uint64_t counters;
};

// What of the GPU is recorded. Kernels bring copies, memsets and graphs.
enum GpuActivity : std::uint64_t { kGpuKernels = 1, kGpuMemory = 2, kGpuWaits = 4, kGpuApi = 8, kGpuOverhead = 16 };
// Graph launches as a whole; the nodes of a few launches of each graph too; the nodes of all.
enum GraphMode : std::uint64_t { kGraphsLaunch = 0, kGraphsSampled = 1, kGraphsAll = 2 };
// All are timed; of programs that launch very many, those of some stretches of time.
enum KernelMode : std::uint64_t { kKernelsAll = 0, kKernelsSampled = 1 };
// Stacks of launches (and of allocations, if these are recorded).
enum StackBits : std::uint64_t { kStacksPython = 1, kStacksNative = 2 };

// One row is the whole definition of a number: a value outside is moved to the nearest end, nonsense to `fallback`.
struct SettingRow {
  const char* variable;
  std::uint64_t Settings::*value;
  std::uint64_t least, most, fallback;
  const char* meaning;
};

inline constexpr SettingRow kSettings[] = {
    {"LLMPROF_MAX_BYTES", &Settings::max_bytes, 4096, ~0ull, ~0ull, "size at which a process stops its log, bytes"},
    {"LLMPROF_FLUSH_MS", &Settings::flush_ms, 1, 60000, 200, "longest time a record waits in memory, ms"},
    {"LLMPROF_POOL_CHUNKS", &Settings::pool_chunks, 4, 16384, 16384, "record buffers of 2 KiB each"},
    {"LLMPROF_WINDOW_FROM_NS", &Settings::window_from_ns, 0, ~0ull, 0, "begin of the window on CLOCK_MONOTONIC_RAW"},
    {"LLMPROF_WINDOW_UNTIL_NS", &Settings::window_until_ns, 0, ~0ull, ~0ull, "end of the window"},
    {"LLMPROF_WINDOW_LASTS_NS", &Settings::window_lasts_ns, 0, ~0ull, ~0ull, "length of the window, from its range"},
    {"LLMPROF_FIRST_STEP", &Settings::first_step, 0, ~0ull, ~0ull, "step that opens the window"},
    {"LLMPROF_END_STEP", &Settings::end_step, 0, ~0ull, ~0ull, "first step behind the window"},
    {"LLMPROF_KEEP_MS", &Settings::keep_ms, 0, 1ull << 42, 0, "keep only this much of the end; 0: everything"},
    {"LLMPROF_GPU", &Settings::gpu, 0, 31, kGpuKernels,
     "GPU activity: 1 kernels, 2 memory, 4 waits, 8 API, 16 overhead"},
    {"LLMPROF_GRAPHS", &Settings::graphs, 0, 2, kGraphsSampled,
     "CUDA graphs: 0 launches, 1 some with nodes, 2 all nodes"},
    {"LLMPROF_GRAPHS_AFTER_MS", &Settings::graphs_after_ms, 0, 3600000, 50,
     "time after the first graph launch from which on some are recorded with nodes, ms"},
    {"LLMPROF_KERNELS", &Settings::kernels, 0, 1, kKernelsSampled, "kernels outside of graphs: 0 all, 1 sampled"},
    {"LLMPROF_KERNELS_AFTER_MS", &Settings::kernels_after_ms, 0, 3600000, 1000,
     "time with many launches after which kernels are sampled, ms; 0: from the first launch on, however few"},
    {"LLMPROF_REST_FROM_NS", &Settings::rest_from_ns, 0, ~0ull, 0,
     "when nothing of the GPU is recorded first; 0: never"},
    {"LLMPROF_REST_EVERY_MS", &Settings::rest_every_ms, 1, 1ull << 42, 1000, "and again after so long, ms"},
    {"LLMPROF_REST_MS", &Settings::rest_ms, 1, 1ull << 42, 200, "for so long, ms"},
    {"LLMPROF_STACKS", &Settings::stacks, 0, 3, 0, "stacks of launches: 1 Python, 2 native"},
    {"LLMPROF_GPU_POOL_BYTES", &Settings::gpu_pool_bytes, 1u << 20, 1u << 30, 128u << 20, "buffers lent to CUPTI"},
    {"LLMPROF_PROFILER_API", &Settings::profiler_api, 0, 1, 0, "1: recording between cudaProfilerStart and Stop only"},
    {"LLMPROF_CONTROL", &Settings::control, 0, 1, 0, "1: the file `control` beside the logs switches recording"},
    {"LLMPROF_COUNTERS", &Settings::counters, 0, 1, 0,
     "1: the file `counters.plan` beside the logs says what is counted"},
    {"LLMPROF_SEGMENT_MS", &Settings::segment_ms, 10, 1ull << 42, 1000, "length of a log, when only the end is kept"},
};

// Fills `settings`. False: recording is off (no folder, not absolute, too long, or a setuid program).
bool read_settings(Settings* settings);

// Parses a decimal number by the rule of SettingRow; null text is the fallback.
std::uint64_t parse_setting(const SettingRow& row, const char* text);

}  // namespace llmprof::collect
