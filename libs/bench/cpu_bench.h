#pragma once
// Measures operators on this machine's CPU.

#include <memory>

#include "bench/bench.h"

namespace llmprof::bench {

// Peaks that are not in the cache are measured now (3 s) and stored there.
Result<std::unique_ptr<Bench>> open_cpu_bench(const BenchOptions& options);
// With peaks from elsewhere: tests do not measure any.
std::unique_ptr<Bench> make_cpu_bench(const BenchOptions& options, std::vector<hw::Peak> peaks);

}  // namespace llmprof::bench
