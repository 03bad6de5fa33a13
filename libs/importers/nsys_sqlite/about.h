#pragma once
// What an export says about itself, the machine and the recording.

#include <optional>
#include <string>

#include "importers/nsys_sqlite/identities.h"

namespace llmprof::importers::nsys {

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

}  // namespace llmprof::importers::nsys
