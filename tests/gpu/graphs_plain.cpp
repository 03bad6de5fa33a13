// CUDA graphs of every origin, by the driver's own calls and counted by hand, for tests of GPU capture: `graphs_plain
// [PART…]`. Prints one line of JSON: what it made. Needs CUDA's headers to build and nothing but the driver to run:
// g++ -std=c++17 -O2 -I"$CUDA/include" graphs_plain.cpp -ldl -lpthread. Its kernels are PTX, each takes the time that
// it is given.

#include <cuda.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

void* library = nullptr;

// A function of the driver by its name in the header: the macros of cuda.h say which version that is.
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name
#define CU(name, ...)                                                                        \
  do {                                                                                       \
    static const auto call_ = reinterpret_cast<decltype(&name)>(dlsym(library, TEXT(name))); \
    const int result = call_ != nullptr ? static_cast<int>(call_(__VA_ARGS__)) : -1;         \
    if (result != 0) {                                                                       \
      std::fprintf(stderr, "line %d: %s: %d\n", __LINE__, TEXT(name), result);               \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)

constexpr const char* kNames[] = {"eager_a",      "hand_function", "hand_kernel",  "hand_cast",    "hand_any",
                                  "outer_before", "outer_after",   "child_a",      "child_b",      "branch_body",
                                  "update_one",   "update_two",    "update_other", "update_third", "thread_a",
                                  "thread_b",     "captured",      "beside_short", "beside_long"};

std::string ptx() {
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
  for (const char* name : kNames) {
    text += std::string(".visible .entry ") + name +
            "(.param .u32 ns)\n{\n.reg .u64 %t<4>;\n.reg .u32 %n;\n.reg .pred %p;\nld.param.u32 %n, [ns];\n"
            "cvt.u64.u32 %t3, %n;\nmov.u64 %t1, %globaltimer;\nAGAIN:\nmov.u64 %t2, %globaltimer;\n"
            "sub.u64 %t2, %t2, %t1;\nsetp.lt.u64 %p, %t2, %t3;\n@%p bra AGAIN;\nret;\n}\n";
  }
  return text;
}

CUmodule module_ = nullptr;
CUlibrary library_ = nullptr;
CUcontext context = nullptr;

CUfunction function_of(const char* name) {
  CUfunction function = nullptr;
  CU(cuModuleGetFunction, &function, module_, name);
  return function;
}

CUkernel kernel_of(const char* name) {
  CUkernel kernel = nullptr;
  CU(cuLibraryGetKernel, &kernel, library_, name);
  return kernel;
}

struct Argument {
  unsigned ns;
  void* list[1] = {&ns};
};

CUDA_KERNEL_NODE_PARAMS parameters(CUfunction function, CUkernel kernel, Argument& argument) {
  CUDA_KERNEL_NODE_PARAMS out{};
  out.func = function;
  out.kern = kernel;
  out.gridDimX = out.gridDimY = out.gridDimZ = out.blockDimY = out.blockDimZ = 1;
  out.blockDimX = 32;
  out.kernelParams = argument.list;
  return out;
}

// A graph whose nodes follow each other.
struct Chain {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> nodes;

  Chain() { CU(cuGraphCreate, &graph, 0); }
  explicit Chain(CUgraph body) : graph(body) {}
  const CUgraphNode* last() const { return nodes.empty() ? nullptr : &nodes.back(); }
  std::size_t count() const { return nodes.empty() ? 0 : 1; }
  void add(CUfunction function, CUkernel kernel, unsigned ns) {
    Argument argument{ns};
    const CUDA_KERNEL_NODE_PARAMS node = parameters(function, kernel, argument);
    CUgraphNode made = nullptr;
    CU(cuGraphAddKernelNode, &made, graph, last(), count(), &node);
    nodes.push_back(made);
  }
  void add_any(CUgraphNodeParams& node) {
    CUgraphNode made = nullptr;
    CU(cuGraphAddNode, &made, graph, last(), nullptr, count(), &node);
    nodes.push_back(made);
  }
  CUgraphExec instantiate() const {
    CUgraphExec executable = nullptr;
    CU(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
  }
};

CUstream make_stream() {
  CUstream stream = nullptr;
  CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

long launches = 0, kernels_in_graphs = 0;
void launch(CUgraphExec executable, CUstream stream, long kernels) {
  CU(cuGraphLaunch, executable, stream);
  __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&kernels_in_graphs, kernels, __ATOMIC_RELAXED);
}

void eager() {
  CUstream stream = make_stream();
  Argument argument{5000};
  for (int i = 0; i < 50; ++i)
    CU(cuLaunchKernel, function_of("eager_a"), 1, 1, 1, 32, 1, 1, 0, stream, argument.list, nullptr);
  CU(cuStreamSynchronize, stream);
}

// Added with every kind of handle; launched in bursts of 16 that nobody waits for by a call: the event is polled.
void by_hand() {
  Chain chain;
  chain.add(function_of("hand_function"), nullptr, 4000);
  chain.add(nullptr, kernel_of("hand_kernel"), 8000);
  CUfunction function = nullptr;
  CU(cuKernelGetFunction, &function, kernel_of("hand_cast"));
  chain.add(function, nullptr, 12000);
  Argument argument{16000};
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_KERNEL;
  const CUDA_KERNEL_NODE_PARAMS node = parameters(nullptr, kernel_of("hand_any"), argument);
  static_assert(sizeof(any.kernel) == sizeof(node));
  std::memcpy(&any.kernel, &node, sizeof(node));
  chain.add_any(any);
  CUgraphExec executable = chain.instantiate();
  CUstream stream = make_stream();
  CUevent event = nullptr;
  CU(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  static const auto query = reinterpret_cast<decltype(&cuEventQuery)>(dlsym(library, "cuEventQuery"));
  for (int step = 0; step < 400; ++step) {
    nvtxRangePushA("hand step");
    for (int i = 0; i < 16; ++i) launch(executable, stream, 4);
    CU(cuEventRecord, event, stream);
    while (query(event) == CUDA_ERROR_NOT_READY) usleep(20);
    nvtxRangePop();
  }
}

// A child graph, and a branch whose body runs at every launch, between two kernels.
void nested() {
  Chain child;
  child.add(function_of("child_a"), nullptr, 6000);
  child.add(function_of("child_b"), nullptr, 9000);
  Chain outer;
  outer.add(function_of("outer_before"), nullptr, 3000);
  CUgraphNode inside = nullptr;
  CU(cuGraphAddChildGraphNode, &inside, outer.graph, outer.last(), outer.count(), child.graph);
  outer.nodes.push_back(inside);
  CUgraphNodeParams branch{};
  branch.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CU(cuGraphConditionalHandleCreate, &branch.conditional.handle, outer.graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  branch.conditional.type = CU_GRAPH_COND_TYPE_IF;
  branch.conditional.size = 1;
  branch.conditional.ctx = context;
  outer.add_any(branch);
  Chain body(branch.conditional.phGraph_out[0]);
  body.add(function_of("branch_body"), nullptr, 7000);
  outer.add(function_of("outer_after"), nullptr, 3000);
  CUgraphExec executable = outer.instantiate();
  CUstream stream = make_stream();
  for (int step = 0; step < 300; ++step) {
    nvtxRangePushA("nested step");
    launch(executable, stream, 5);
    CU(cuStreamSynchronize, stream);
    nvtxRangePop();
  }
}

// Arguments set before every launch, as XLA does; then another kernel; then the kernels of another graph.
void updated() {
  Chain chain, other;
  chain.add(function_of("update_one"), nullptr, 5000);
  chain.add(function_of("update_two"), nullptr, 5000);
  other.add(function_of("update_third"), nullptr, 20000);
  other.add(function_of("update_two"), nullptr, 5000);
  CUgraphExec executable = chain.instantiate();
  CUstream stream = make_stream();
  for (int step = 0; step < 450; ++step) {
    nvtxRangePushA("updated step");
    if (step < 300) {
      Argument argument{step < 150 ? 5000u : 10000u};
      const CUDA_KERNEL_NODE_PARAMS node =
          parameters(function_of(step < 150 ? "update_one" : "update_other"), nullptr, argument);
      CU(cuGraphExecKernelNodeSetParams, executable, chain.nodes[0], &node);
    } else if (step == 300) {
      CUgraphExecUpdateResultInfo info{};
      CU(cuGraphExecUpdate, executable, other.graph, &info);
    }
    launch(executable, stream, 2);
    CU(cuStreamSynchronize, stream);
    nvtxRangePop();
  }
}

// Threads with streams of their own launch in bursts and make graphs by capture while the others launch.
void thread_main(int number) {
  CU(cuCtxSetCurrent, context);
  CUstream stream = make_stream();
  Chain chain;
  chain.add(function_of("thread_a"), nullptr, 5000);
  chain.add(function_of("thread_b"), nullptr, 10000);
  CUgraphExec executable = chain.instantiate();
  for (int step = 0; step < 150; ++step) {
    nvtxRangePushA("thread step");
    for (int i = 0; i < 4; ++i) launch(executable, stream, 2);
    CU(cuStreamSynchronize, stream);
    nvtxRangePop();
    usleep(static_cast<useconds_t>(300 + 100 * number));
    if (step % 40 != 39) continue;
    CUgraph captured = nullptr;
    Argument argument{6000};
    CU(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CU(cuLaunchKernel, function_of("captured"), 1, 1, 1, 32, 1, 1, 0, stream, argument.list, nullptr);
    CU(cuLaunchKernel, function_of("captured"), 1, 1, 1, 32, 1, 1, 0, stream, argument.list, nullptr);
    CU(cuStreamEndCapture, stream, &captured);
    CU(cuGraphInstantiateWithFlags, &executable, captured, 0);
  }
  CU(cuStreamDestroy, stream);
}

void threads() {
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i) all.emplace_back(thread_main, i);
  for (std::thread& thread : all) thread.join();
}

// A graph of `ns` in another context of the device is in flight while graphs are launched and made in the first: on a
// stream that is destroyed under it, on the default stream, and with the context destroyed at the end.
void beside(CUgraphExec short_one, CUstream stream, unsigned ns, int before) {
  const auto create = reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(dlsym(library, "cuCtxCreate_v2"));
  CUcontext second = nullptr;
  CUmodule there = nullptr;
  CUfunction function = nullptr;
  if (create == nullptr || create(&second, 0, 0) != CUDA_SUCCESS) return;
  const std::string text = ptx();
  CU(cuModuleLoadData, &there, text.c_str());
  CU(cuModuleGetFunction, &function, there, "beside_long");
  Chain chain;
  chain.add(function, nullptr, ns);
  CUgraphExec long_one = chain.instantiate();
  CUstream other = make_stream();
  CU(cuCtxSetCurrent, context);
  const auto steps = [&](int times) {
    for (int i = 0; i < times; ++i) {
      nvtxRangePushA("beside step");
      launch(short_one, stream, 1);
      CU(cuStreamSynchronize, stream);
      nvtxRangePop();
    }
  };
  steps(before);
  for (const bool destroy : {before > 6, false}) {  // seen under a sample, or all samples end there
    CU(cuCtxSetCurrent, second);
    launch(long_one, destroy ? other : nullptr, 1);
    if (destroy) CU(cuStreamDestroy, other);
    CU(cuCtxSetCurrent, context);
    steps(before);
    Chain made;
    made.add(function_of("beside_short"), nullptr, 4000);
    short_one = made.instantiate();
    steps(before + 8);
  }
  CU(cuCtxSetCurrent, second);
  CU(cuCtxSynchronize);
  CU(cuCtxDestroy, second);
  CU(cuCtxSetCurrent, context);
  steps(8);
}

void contexts() {
  Chain chain;
  chain.add(function_of("beside_short"), nullptr, 4000);
  CUgraphExec executable = chain.instantiate();
  CUstream stream = make_stream();
  for (int before = 3; before < 9; ++before) beside(executable, stream, before == 8 ? 400000000 : 30000000, before);
}

}  // namespace

int main(int count, char** words) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return 2;
  CU(cuInit, 0);
  CU(cuDevicePrimaryCtxRetain, &context, 0);
  CU(cuCtxSetCurrent, context);
  const std::string text = ptx();
  CU(cuModuleLoadData, &module_, text.c_str());
  CU(cuLibraryLoadData, &library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"eager", eager},     {"hand", by_hand},    {"nested", nested},
               {"updated", updated}, {"threads", threads}, {"contexts", contexts}};
  for (const auto& part : parts) {
    bool wanted = count < 2;
    for (int i = 1; i < count; ++i) wanted = wanted || std::strcmp(words[i], part.name) == 0;
    if (wanted) part.run();
  }
  CU(cuCtxSynchronize);
  std::printf("{\"graph_launches\": %ld, \"kernels_in_graphs\": %ld}\n", launches, kernels_in_graphs);
  return 0;
}
