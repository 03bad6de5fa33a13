#pragma once
// Tables that are read by one function each: what an export says about itself, GPU metrics, samples, ranges.

#include <optional>
#include <string>

#include "importers/nsys_sqlite/host_calls.h"
#include "importers/nsys_sqlite/identities.h"

namespace llmprof::importers::nsys {

// What an export says about itself, the machine and the recording.
struct About {
  std::string schema;   // "3.20.3"; "" if it does not say
  std::string product;  // "2025.3.2.0"
  std::string command, host, driver;
  trace::OptionalInt rank;
  std::optional<std::int64_t> sample_period_ns;  // where stacks were sampled by CPU time
  std::string machine;                           // in words
  FileClock clock;
};

// Another major version of the schema is refused.
Result<About> read_about(Database& database);
void write_about(Sink& sink, const About& about);
// DIAGNOSTIC_EVENT and PROFILER_OVERHEAD: what Nsight says it lost, warned of, and took itself.
Result<void> read_diagnostics(Database& database);
Result<void> read_overhead(Database& database);

// What was read at intervals: GPU metrics, and samples of the threads' call stacks.
Result<void> read_gpu_metrics(Export& from);
Result<void> read_samples(Export& from, const About& about);
// NVTX_EVENTS: ranges and marks, nested by time on their threads. Nsight records library calls (cuBLAS, cuDNN) as
// ranges of a domain of that name; those are calls, not annotations, and go to the table api.
Result<void> read_ranges(Export& from);

}  // namespace llmprof::importers::nsys
