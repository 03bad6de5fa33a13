#pragma once
// The host side of a run: processes, memory, functions. Filled by analyze, laid out by report.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmprof::analyze {

struct ProcessUsage {
  std::string name;       // executable
  std::string arguments;  // as one line
  std::int64_t pid = 0;
  std::int64_t begin_ns = 0, wall_ns = 0;
  std::int64_t user_ns = 0, system_ns = 0;
  std::int64_t peak_rss_bytes = 0;
  std::int64_t minor_faults = 0, major_faults = 0, most_threads = 0;
  std::optional<std::int64_t> read_bytes, written_bytes, voluntary_switches, involuntary_switches, switches;
  std::int64_t cpu_ns = 0, readings = 0;
  std::optional<double> system_share;  // of cpu_ns
  double core_share = 0;               // cpu_ns, of one core over wall_ns
  std::string label;                   // "python 4711"
};

// Resident memory of all processes together over time, thinned for display.
struct MemoryPoint {
  std::int64_t ts_ns = 0, rss_bytes = 0;
};
struct OpenRanges {
  std::int64_t pid = 0;
  std::vector<std::string> names;  // outermost first, of the thread with the deepest nesting
};
struct MemoryMoment {
  std::int64_t ts_ns = 0, rss_bytes = 0;
  std::vector<OpenRanges> open_ranges;  // per process
};
struct MemoryPeak {
  MemoryMoment highest;
  MemoryMoment nearly;  // first with 95 % of it: a plateau creeps up for long after it was reached
};
struct MemoryGain {  // memory gained between begin and end of the ranges of one name, less that of ranges inside them
  std::string range, stage;
  std::int64_t ranges = 0;         // long enough to have been read at both ends
  std::int64_t gained_bytes = 0;   // their gains added up; negative when given back
  std::int64_t largest_bytes = 0;  // most by one of them
};

struct Function {  // by stage
  std::string name, file, kind, stage;
  std::optional<std::int64_t> calls;  // where known: from BLAS calls or ranges of the same name
  std::int64_t samples = 0;
  std::int64_t self_ns = 0, total_ns = 0;
  std::int64_t sampled_ns = 0;  // CPU time sampled in the stage
  double self_share = 0;        // of this
};

struct TopFunction {  // of the whole run
  std::string name, file, kind;
  std::int64_t samples = 0, self_ns = 0, total_ns = 0;
  double self_share = 0, total_share = 0;  // of all CPU time sampled
};

struct PythonFunction {  // with the native functions that it calls
  std::string name, file;
  std::optional<std::int64_t> line;  // with most of its self time
  std::int64_t samples = 0, self_ns = 0, native_ns = 0, total_ns = 0;
  std::string native;                      // the native function with most of native_ns; "" none
  double self_share = 0, total_share = 0;  // of all CPU time sampled
};

struct ProcessWait {  // time of the threads of a process in one state
  std::string name, label;
  std::int64_t pid = 0;
  std::string state;
  std::int64_t time_ns = 0, threads = 0, main_ns = 0;  // of all threads; how many were in it; of the main thread
  std::int64_t thread_ns = 0, main_thread_ns = 0;      // the same in all states
  double share = 0;                                    // of thread_ns
  std::optional<double> main_share;                    // of main_thread_ns
};

struct ThreadWait {                          // one thread
  std::string thread, name, label, process;  // thread: its name; name: of its program; both with their ids for display
  std::int64_t pid = 0, tid = 0;
  bool main = false;
  std::int64_t time_ns = 0, cpu_ns = 0, system_ns = 0, queue_ns = 0, blocked_ns = 0, lock_ns = 0;
  double cpu_share = 0, queue_share = 0, blocked_share = 0;  // of time_ns
  std::string waits_for;                                     // the state with most of blocked_ns; "" none
};

// The CPU limit of the program's control group, and what it took away.
struct CpuLimit {
  std::int64_t periods = 0, throttled = 0, throttled_ns = 0;
  std::optional<double> quota_cpus, throttled_share;  // throttled of periods
};

struct StackCoverage {
  std::int64_t samples = 0, truncated = 0, without_stack = 0, lost = 0;
  std::int64_t sampled_ns = 0;            // CPU time the samples stand for
  std::optional<double> truncated_share;  // of samples
  std::string why;                        // why there are none
};

// A training loop told by the names of functions and by when stack samples show them.
struct SampledPart {  // what a function of the loop calls
  std::string name;
  std::int64_t samples = 0, time_ns = 0;  // CPU time, all threads
  double share = 0;                       // of the CPU time of all samples
};
struct SampledStage {
  std::string function, caller, stage;
  std::int64_t samples = 0, time_ns = 0;  // CPU time of the thread with the loop
  double share = 0;                       // of the CPU time of all samples
  std::optional<std::int64_t> pass_ns;    // CPU time of one pass
  std::optional<std::int64_t> passes;     // none: samples are too far apart to tell
  std::int64_t changes = 0;               // from forward to backward
  std::vector<SampledPart> parts;         // of the stage; stands with its first function
};

struct Host {
  std::vector<ProcessUsage> processes;
  std::optional<double> readings_per_s;  // of a process, as it was
  std::vector<MemoryPoint> memory;
  std::optional<MemoryPeak> peak;
  std::vector<MemoryGain> gains;
  StackCoverage stacks;
  std::vector<Function> functions;
  std::vector<TopFunction> top_functions;
  std::vector<PythonFunction> python_functions;
  std::vector<ProcessWait> waits;
  std::vector<ThreadWait> threads;
  CpuLimit cpu_limit;
  std::vector<SampledStage> sampled_stages;
};

// Memory of devices over time: by the allocations of the run, and by what the driver says. Filled by analyze, laid out
// by report.

// Allocations that were there at the peak, made in the same ranges by the same function.
struct AllocationGroup {
  std::string ranges;    // "decode › layers.3.mlp", outermost first; "" none
  std::string function;  // innermost Python function of the stack, else the innermost function; "" no stack
  std::string kind;      // "device", "managed", "pool", "mapped"
  std::int64_t allocations = 0, bytes = 0, largest_bytes = 0;
  std::int64_t all_allocations = 0;  // that were there, of all groups
  double share = 0;                  // of the peak
};

struct ProcessDeviceMemory {
  std::string name;
  std::int64_t pid = 0, peak_bytes = 0, peak_ns = 0;
  std::string source;  // "allocations", "driver"
};

struct DeviceMemory {
  std::int64_t device_id = 0;
  std::string name;
  std::int64_t total_bytes = 0;    // of the device; 0 unknown
  bool caching_allocator = false;  // as DeviceMemories says
  // By allocations that were recorded.
  std::int64_t allocations = 0, never_freed = 0, never_freed_bytes = 0;
  std::int64_t peak_bytes = 0, peak_ns = 0;
  std::vector<MemoryPoint> over_time;    // thinned; rss_bytes is memory of the device
  std::vector<OpenRanges> open_ranges;   // at the peak
  std::vector<AllocationGroup> at_peak;  // most bytes first; of the largest allocations
  std::int64_t at_peak_allocations = 0;  // all that were there
  // By the driver: all programs and its own.
  std::optional<std::int64_t> driver_peak_bytes, driver_peak_ns, driver_first_bytes;
  std::vector<MemoryPoint> driver_over_time;  // thinned
  std::vector<OpenRanges> driver_open_ranges;
  std::vector<ProcessDeviceMemory> processes;  // most first
};

struct DeviceMemories {
  std::vector<DeviceMemory> devices;
  bool caching_allocator = false;  // PyTorch: allocations are segments that it divides among tensors by itself
};

// What a framework's allocator did with a device's memory: what it held, what it gave out, by which stacks. Filled by
// analyze, laid out by report.

struct AllocatingStack {
  std::string stack;  // "kv_block (mem.py:12) < churn (mem.py:16)", innermost first; "" no stack
  std::int64_t allocations = 0, bytes = 0, largest_bytes = 0;
  double share = 0;  // of the bytes in use at the peak, or never freed
};

// Segments of one kind, as a snapshot shows them.
struct AllocatorPool {
  std::string kind;  // "small", "large", "large, private pool 0:3"
  std::int64_t segments = 0, bytes = 0, allocated_bytes = 0, active_bytes = 0;
  std::optional<std::int64_t> requested_bytes;
  std::int64_t free_bytes = 0;          // in none of its tensors
  std::int64_t largest_free_bytes = 0;  // one piece
  double free_share = 0;                // of bytes
  std::int64_t device_id = 0;
  std::int64_t between_bytes = 0;  // of free_bytes, in segments that hold tensors: cannot be given back
};

struct DeviceAllocator {
  std::int64_t device_id = 0;
  std::string name;  // of the device; "" unknown
  std::optional<std::int64_t> ordinal;
  // By events: what was given to the program, and what the allocator held of the device.
  std::int64_t allocations = 0, begin_ns = 0, peak_bytes = 0, peak_ns = 0;
  std::optional<std::int64_t> held_at_peak_bytes, held_peak_bytes, held_peak_ns;
  std::vector<MemoryPoint> held_over_time;  // thinned; rss_bytes is what it held
  std::vector<AllocatingStack> at_peak;     // most bytes first
  std::int64_t at_peak_allocations = 0;
  std::vector<AllocatingStack> never_freed;  // of those allocated after the first event
  std::int64_t never_freed_allocations = 0, never_freed_bytes = 0;
  // By the snapshot.
  std::vector<AllocatorPool> pools;
};

struct Allocators {
  std::vector<DeviceAllocator> devices;  // those with a snapshot, or with allocations that have stacks
  std::vector<std::string> out_of_memory;
};

}  // namespace llmprof::analyze
