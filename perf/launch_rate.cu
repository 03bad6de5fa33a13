// Kernels as fast as the driver takes them: `launch_rate [kernels] [threads] [pause_ns]`. What a profiler drops, and what
// it costs per launch. Prints one line of JSON. nvcc -O2 -cudart shared launch_rate.cu -o launch_rate

#include <cuda_runtime.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

__global__ void nothing() {}

static long now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1000000000l + now.tv_nsec;
}

static void launch(long kernels, long pause_ns) {
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) std::exit(1);
  long next_ns = now_ns();
  for (long i = 0; i < kernels; ++i) {
    nothing<<<1, 32, 0, stream>>>();
    if (pause_ns == 0) continue;
    for (next_ns += pause_ns; now_ns() < next_ns;) {
    }
  }
  if (cudaStreamSynchronize(stream) != cudaSuccess) std::exit(1);
}

int main(int argc, char** argv) {
  const long kernels = argc > 1 ? std::atol(argv[1]) : 1000000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const long pause_ns = argc > 3 ? std::atol(argv[3]) : 0;
  launch(1000, 0);
  const long begin_ns = now_ns();
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back(launch, kernels / threads, pause_ns);
  for (std::thread& thread : all) thread.join();
  const long end_ns = now_ns();
  const long made = kernels / threads * threads;
  std::printf("{\"kernels\":%ld,\"seconds\":%.6f,\"kernels_per_s\":%.0f,\"ns_per_launch\":%.1f,\"end_ns\":%ld}\n", made + 1000,
              (end_ns - begin_ns) / 1e9, made / ((end_ns - begin_ns) / 1e9),
              static_cast<double>(end_ns - begin_ns) * threads / made, now_ns());
  return 0;
}
