// Kernels that use the memory in ways that are known by construction, for the counters of the set `access`. Built and run
// by access.sh. Argument: how often each is launched (24).
//   loads_narrow     4 bytes a thread, neighbours:            4 sectors a load
//   loads_wide       16 bytes a thread, neighbours:          16
//   loads_scattered  4 bytes a thread, 128 bytes apart:      32
//   shared_clean     each lane in a bank of its own:          0 % conflicts
//   shared_one_bank  all lanes in one bank: 32 wavefronts, 31 of them for conflicts: 96.9 %
//   local_array      an array of each thread that is indexed at run time: most sectors are local memory

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t status = (call);                                                                \
    if (status != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (0)

constexpr int kThreads = 256, kBlocks = 1024, kLoads = 32;

extern "C" __global__ void loads_narrow(const float* data, float* out) {
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < kLoads; ++i) sum += data[i * kBlocks * kThreads + thread];
  out[thread] = sum;
}

extern "C" __global__ void loads_wide(const float4* data, float* out) {
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < kLoads / 4; ++i) {
    const float4 value = data[i * kBlocks * kThreads + thread];
    sum += value.x + value.y + value.z + value.w;
  }
  out[thread] = sum;
}

// Lane l reads 128 bytes behind lane l - 1.
extern "C" __global__ void loads_scattered(const float* data, float* out) {
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < kLoads; ++i) sum += data[thread * 32 + i];
  out[thread] = sum;
}

// Lane l reads word l * stride + i: with a stride of 33 each lane has a bank of its own, with 32 all have the same.
template <int kStride>
__device__ void read_shared(float* out) {
  __shared__ float tile[32 * kStride];
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < 32 * kStride; i += kThreads) tile[i] = static_cast<float>(i);
  __syncthreads();
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 32; ++i) sum += *const_cast<volatile float*>(tile + lane * kStride + i);
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}
extern "C" __global__ void shared_clean(float* out) { read_shared<33>(out); }
extern "C" __global__ void shared_one_bank(float* out) { read_shared<32>(out); }

extern "C" __global__ void local_array(const int* order, float* out) {
  float values[64];
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  for (int i = 0; i < 64; ++i) values[i] = static_cast<float>(i + thread);
  float sum = 0;
  for (int i = 0; i < 512; ++i) {
    const int at = order[i & 63] & 63;
    values[at] += sum;
    sum += values[(at + 7) & 63];
  }
  out[thread] = sum;
}

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 24;
  constexpr std::size_t kBytes = std::size_t{kLoads} * kBlocks * kThreads * sizeof(float);
  float *data, *out;
  int* order;
  CHECK(cudaMalloc(&data, kBytes));
  CHECK(cudaMalloc(&out, kBlocks * kThreads * sizeof(float)));
  CHECK(cudaMalloc(&order, 64 * sizeof(int)));
  CHECK(cudaMemset(data, 0, kBytes));
  CHECK(cudaMemset(order, 0, 64 * sizeof(int)));
  for (int i = 0; i < times; ++i) {
    loads_narrow<<<kBlocks, kThreads>>>(data, out);
    loads_wide<<<kBlocks, kThreads>>>(reinterpret_cast<const float4*>(data), out);
    loads_scattered<<<kBlocks, kThreads>>>(data, out);
    shared_clean<<<kBlocks, kThreads>>>(out);
    shared_one_bank<<<kBlocks, kThreads>>>(out);
    local_array<<<kBlocks, kThreads>>>(order, out);
    CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaGetLastError());
  std::printf("%d times\n", times);
  return 0;
}
