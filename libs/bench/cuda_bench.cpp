#include "bench/cuda_bench.h"

namespace llmprof::bench {

Result<std::unique_ptr<Bench>> open_cuda_bench(int, const BenchOptions&) {
  return Error{ErrorCode::kUnsupported, "no GPU bench yet", ""};
}

}  // namespace llmprof::bench
