#pragma once
// Measures operators on an NVIDIA GPU.

#include <memory>

#include "bench/bench.h"

namespace llmprof::bench {

Result<std::unique_ptr<Bench>> open_cuda_bench(int index, const BenchOptions& options);

}  // namespace llmprof::bench
