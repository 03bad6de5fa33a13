#pragma once
// GPU capture from cuInit to exit: finds CUPTI, subscribes, keeps the records coming.

#include <cstdint>

namespace llmprof::collect {

// Inside cuInit, once. Whatever fails is counted and said; the program goes on.
void start_gpu();

// Everything that CUPTI holds, into our buffers, within `limit_ms`. After it CUPTI is not called any more.
void finish_gpu(std::uint64_t limit_ms);

// Stops and resumes GPU recording. Any thread; takes effect within moments.
void set_gpu_recording(bool on);

// cudaProfilerStart, cudaProfilerStop.
void profiler_called(bool started);

}  // namespace llmprof::collect
