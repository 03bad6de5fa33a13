#pragma once
// What a report says about GPUs beyond what it says about every device.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct KernelTime {  // all executions of a kernel in a stage
  std::string name, stage;
  std::int64_t executions = 0, time_ns = 0;
  std::int64_t estimated_ns = 0;  // of time_ns, in graph launches that were not recorded node by node
  double share = 0;               // time_ns of Coverage::gpu_ns
  std::string ops;                // operators it belongs to, most time first
  double flops = 0;               // of the BLAS calls that it stands for; 0 unknown
  std::optional<double> flops_per_s;
  std::optional<std::int64_t> mean_ns;  // of one execution
};

struct GapTime {      // time that was not recorded
  std::string stage;  // "": of the whole run
  std::string why;
  std::int64_t gaps = 0, time_ns = 0;
};

struct Note {
  std::string subject, text;
  std::int64_t notes = 0;  // processes that noted the same
};

struct SourceTime {  // GPU time that a line, function or call stack launched
  std::string stage, kind, function, file;
  std::optional<std::int64_t> line;
  std::int64_t executions = 0, time_ns = 0, estimated_ns = 0;
  std::optional<std::int64_t> self_ns;  // of a function: it was the innermost Python function
  double share = 0;                     // time_ns of Coverage::gpu_ns
  std::string label;                    // "train.py:12 step"
};

struct Gpu {
  std::vector<KernelTime> kernels;  // most time first
  std::string by;                   // "line", "function", "stack": what `sources` are; "" nobody asked
  std::vector<SourceTime> sources;  // most time first; without a function: launches without a stack
  std::vector<GapTime> gaps;
  std::vector<Note> notes;
};

}  // namespace llmprof::analyze
