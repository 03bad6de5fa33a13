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
  std::vector<SampledStage> sampled_stages;
};

}  // namespace llmprof::analyze
