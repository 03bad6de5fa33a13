// A CUDA program whose every launch is counted by hand, for tests of GPU capture. Prints one line of JSON: what it made.
// Built by capture.sh: nvcc -cudart shared capture_plain.cu -lcublas. Argument: how many rounds of everything (1).

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#define CHECK(call)                                                                            \
  do {                                                                                         \
    const auto status = (call);                                                                \
    if (static_cast<int>(status) != 0) {                                                       \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(status)); \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (0)

__device__ void spin(unsigned ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

// Kernels of different names take at least the time they are given.
__global__ void spin_a(unsigned ns) { spin(ns); }
__global__ void spin_b(unsigned ns) { spin(ns); }
__global__ void node_a(unsigned ns) { spin(ns); }
__global__ void node_inner(unsigned ns) { spin(ns); }
__global__ void node_outer(unsigned ns) { spin(ns); }
__global__ void node_before(unsigned ns) { spin(ns); }
__global__ void node_after(unsigned ns) { spin(ns); }
__global__ void long_one(unsigned ns) { spin(ns); }

constexpr std::size_t kSmall = 32u << 10, kLarge = 1u << 20;

void two_streams() {
  std::thread first([] {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 200; ++i) spin_a<<<2, 64, 0, stream>>>(10000);
    CHECK(cudaStreamSynchronize(stream));
  });
  std::thread second([] {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 100; ++i) spin_b<<<dim3(3, 2, 1), 32, 0, stream>>>(20000);
    CHECK(cudaStreamSynchronize(stream));
  });
  first.join();
  second.join();
}

struct Memory {
  char *device, *other, *pinned, *pageable;
};

void copies(const Memory& memory, cudaStream_t stream) {
  nvtxRangePushA("copies");
  for (int i = 0; i < 8; ++i) CHECK(cudaMemcpyAsync(memory.device, memory.pageable, kSmall, cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < 8; ++i) CHECK(cudaMemcpyAsync(memory.device, memory.pinned, kLarge, cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < 6; ++i) CHECK(cudaMemcpyAsync(memory.pinned, memory.device, kLarge, cudaMemcpyDeviceToHost, stream));
  for (int i = 0; i < 4; ++i) CHECK(cudaMemcpyAsync(memory.other, memory.device, kLarge, cudaMemcpyDeviceToDevice, stream));
  for (int i = 0; i < 5; ++i) CHECK(cudaMemsetAsync(memory.device, i, kLarge, stream));
  CHECK(cudaStreamSynchronize(stream));
  nvtxRangePop();
}

void replay(cudaGraphExec_t exec, cudaStream_t stream, int times) {
  for (int i = 0; i < times; ++i) {
    nvtxRangePushA("decode_step");
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    nvtxRangePop();
  }
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

template <class Body>
cudaGraph_t capture(cudaStream_t stream, Body body) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  body();
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

void graphs(const Memory& memory, cudaStream_t stream) {
  // 10 kernels, a copy and a memset: 40 launches.
  cudaGraph_t captured = capture(stream, [&] {
    for (int i = 0; i < 10; ++i) {
      nvtxRangePushA("layer");
      node_a<<<4, 64, 0, stream>>>(3000 + 200 * i);
      nvtxRangePop();
    }
    CHECK(cudaMemcpyAsync(memory.other, memory.device, kLarge, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemsetAsync(memory.device, 0, kSmall, stream));
  });
  cudaGraphExec_t first = instantiate(captured);
  replay(first, stream, 5);
  usleep(700000);  // a sampler may want to know first who else uses graphs
  replay(first, stream, 35);

  // A graph of 4 kernels inside one that has 2 of its own: 20 launches.
  cudaGraph_t inner = capture(stream, [&] {
    for (int i = 0; i < 4; ++i) node_inner<<<1, 32, 0, stream>>>(4000);
  });
  cudaGraph_t outer = capture(stream, [&] {
    for (int i = 0; i < 2; ++i) node_outer<<<1, 32, 0, stream>>>(4000);
  });
  cudaGraphNode_t child;
  CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
  replay(instantiate(outer), stream, 20);

  // 3 kernels, 10 launches; then other kernels in their place, 10 more.
  cudaGraph_t before = capture(stream, [&] {
    for (int i = 0; i < 3; ++i) node_before<<<1, 32, 0, stream>>>(4000);
  });
  cudaGraph_t after = capture(stream, [&] {
    for (int i = 0; i < 3; ++i) node_after<<<1, 32, 0, stream>>>(4000);
  });
  cudaGraphExec_t exec = instantiate(before);
  replay(exec, stream, 10);
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, after, &info));
  replay(exec, stream, 10);
  CHECK(cudaGraphExecDestroy(exec));
}

// 12 products called one by one; 2 captured, launched 10 times.
void products(cublasHandle_t blas, float* a, float* b, float* c, cudaStream_t stream) {
  const float one = 1, zero = 0;
  const auto product = [&] {
    CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 256, 512, 128, &one, a, 256, b, 128, &zero, c, 256));
  };
  nvtxRangePushA("products");
  for (int i = 0; i < 12; ++i) product();
  CHECK(cudaStreamSynchronize(stream));
  nvtxRangePop();
  cudaGraph_t captured = capture(stream, [&] {
    for (int i = 0; i < 2; ++i) {
      CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 128, 64, 256, &one, a, CUDA_R_16BF, 256, b, CUDA_R_16BF, 256, &zero,
                         c, CUDA_R_16BF, 128, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    }
  });
  replay(instantiate(captured), stream, 10);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  Memory memory;
  CHECK(cudaMalloc(&memory.device, kLarge));
  CHECK(cudaMalloc(&memory.other, kLarge));
  CHECK(cudaMallocHost(&memory.pinned, kLarge));
  memory.pageable = static_cast<char*>(std::calloc(1, kLarge));
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, kLarge));
  CHECK(cudaMalloc(&b, kLarge));
  CHECK(cudaMalloc(&c, kLarge));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cublasHandle_t blas;
  CHECK(cublasCreate(&blas));
  CHECK(cublasSetStream(blas, stream));
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    two_streams();
    copies(memory, stream);
    graphs(memory, stream);
    products(blas, a, b, c, stream);
  }
  long_one<<<1, 32, 0, stream>>>(1000000);  // 1 ms, still running when the program ends its own work
  CHECK(cudaStreamSynchronize(stream));
  std::printf(
      "{\"rounds\":%d,\"spin_a\":%d,\"spin_b\":%d,\"host_to_device\":%d,\"device_to_host\":%d,\"device_to_device\":%d,"
      "\"memsets\":%d,\"copied_bytes\":%zu,\"graph_launches\":%d,\"node_a\":%d,\"node_inner\":%d,\"node_outer\":%d,"
      "\"node_before\":%d,\"node_after\":%d,\"products\":%d,\"captured_products\":%d}\n",
      rounds, 200 * rounds, 100 * rounds, 16 * rounds, 6 * rounds, 4 * rounds, 5 * rounds,
      (8 * kSmall + 18 * kLarge) * rounds, 90 * rounds, 400 * rounds, 80 * rounds, 40 * rounds, 30 * rounds, 30 * rounds,
      12 * rounds, 2 * rounds);
  return 0;
}
