#pragma once
// How a program spends the time before the model is ready.

#include <cstdint>
#include <optional>
#include <string>

#include "trace/run.h"

namespace llmprof::analyze {

struct LoadFacts {
  bool declared = false;  // a stage `load`; else from the begin of the process to its first step
  std::int64_t process_id = 0, thread_id = 0, begin_ns = 0, end_ns = 0;  // 0: there are no steps
  std::optional<std::int64_t> thread_cpu_ns;   // of the loading thread, by samples of its stack
  std::optional<std::int64_t> process_cpu_ns;  // of all threads of the process
  std::optional<std::int64_t> read_bytes;      // from storage
  std::optional<std::int64_t> major_faults;
  std::optional<std::int64_t> involuntary_switches;  // of all threads: somebody else got the core
  std::int64_t copies = 0, copied_bytes = 0, pageable_bytes = 0, copy_ns = 0;  // host to device
  std::optional<double> best_copy_rate;                                        // B/s, of one copy of 1 MB or more
  std::string function;       // that most of the loading thread's samples are in, a Python one where known
  double function_share = 0;  // of the thread's samples

  std::int64_t time_ns() const { return end_ns - begin_ns; }
};

Result<LoadFacts> load_facts(const trace::Run& run);

}  // namespace llmprof::analyze
