#pragma once
// What the programs of the fakes are made of: the driver that FAKE_CUDA names, kernels, streams, graphs, and a main
// that runs one of several scenarios: `program SCENARIO LABEL [NUMBER…]`. Any call that fails ends the program.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "collect/testing/nvtx_client.h"

namespace victim {

inline void* library = nullptr;

template <typename... Arguments>
int cuda(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) std::_Exit(94);
  return function(arguments...);
}

struct Numbers {
  std::vector<long> given;
  long at(std::size_t index, long fallback) const { return index < given.size() ? given[index] : fallback; }
};

inline void* kernel(const char* name) {
  void *module = nullptr, *function = nullptr;
  cuda("cuModuleLoadData", &module, static_cast<const void*>(nullptr));
  cuda("cuModuleGetFunction", &function, module, name);
  return function;
}

inline void launch(void* function, void* stream, unsigned grid = 4) {
  if (cuda("cuLaunchKernel", function, grid, 1u, 1u, 128u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr),
           static_cast<void**>(nullptr)) != 0) {
    std::_Exit(93);
  }
}

// Time for a profiler that begins by and by: VICTIM_PAUSE_MS after the first context.
inline void pause_at_start() {
  if (const char* pause_ms = std::getenv("VICTIM_PAUSE_MS"))
    usleep(static_cast<useconds_t>(std::atol(pause_ms) * 1000));
}

inline void* start() {
  void* context = nullptr;
  if (cuda("cuInit", 0u) != 0 || cuda("cuDevicePrimaryCtxRetain", &context, 0) != 0) std::_Exit(92);
  cuda("cuCtxSetCurrent", context);
  pause_at_start();
  return context;
}

inline void* make_stream() {
  void* stream = nullptr;
  cuda("cuStreamCreate", &stream, 1u);
  return stream;
}

inline void wait(void* stream) { cuda("cuStreamSynchronize", stream); }

// A captured graph of kernels with a copy and a memset at its end.
inline void* capture(void* stream, long nodes, const char* name) {
  void *graph = nullptr, *function = kernel(name), *last = kernel("sample:900");
  cuda("cuStreamBeginCapture_v2", stream, 0);
  for (long i = 0; i < nodes; ++i) launch(i + 1 == nodes ? last : function, stream);
  cuda("cuMemcpyDtoDAsync_v2", std::uint64_t{0x1000}, std::uint64_t{0x2000}, std::size_t{512}, stream);
  cuda("cuMemsetD8Async", std::uint64_t{0x1000}, static_cast<unsigned char>(1), std::size_t{512}, stream);
  if (cuda("cuStreamEndCapture", stream, &graph) != 0) std::_Exit(89);
  return graph;
}

inline void* instantiate(void* graph) {
  void* exec = nullptr;
  cuda("cuGraphInstantiateWithFlags", &exec, graph, std::uint64_t{0});
  return exec;
}

struct Scenario {
  const char* name;
  int (*run)(const Numbers&);
};

inline int run_scenario(int argc, char** argv, std::span<const Scenario> scenarios) {
  if (argc < 3) return 99;
  const char* path = std::getenv("FAKE_CUDA");
  library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return 98;
  if (const char* tool = std::getenv("FAKE_CUDA_LOADS")) dlopen(tool, RTLD_NOW | RTLD_LOCAL);  // a CUPTI of its own
  Numbers numbers;
  for (int i = 3; i < argc; ++i) numbers.given.push_back(std::atol(argv[i]));
  for (const Scenario& scenario : scenarios) {
    if (std::strcmp(scenario.name, argv[1]) != 0) continue;
    std::printf("%s begins\n", argv[2]);
    std::fflush(stdout);
    const int status = scenario.run(numbers);
    std::printf("%s ends\n", argv[2]);
    return status;
  }
  return 99;
}

}  // namespace victim
