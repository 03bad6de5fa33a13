#pragma once
// Runs one block of the emulated GPU; blockIdx, blockDim and gridDim are set by the caller.

#include <functional>

namespace llmprof::workload::cuda {

// `threads` in all, a multiple of 32, at most 1024.
void run_block(unsigned threads, const std::function<void()>& body);

}  // namespace llmprof::workload::cuda
