// The fake driver: kernels, copies, memsets and graphs.
#include "cuda_driver.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "profiler_abi.h"

namespace fake {

std::uint64_t copy_duration_ns(std::uint64_t bytes) { return 500 + bytes / 32; }

void run_on(Stream* stream, Work work, std::uint64_t duration_ns) {
  {
    const std::lock_guard hold(driver().lock);
    work.begin_ns = std::max(now_ns() + 200, stream->busy_until_ns);
    work.end_ns = stream->busy_until_ns = work.begin_ns + duration_ns;
    driver().idle_at_ns = std::max(driver().idle_at_ns, work.end_ns);
    stream->context->idle_at_ns = std::max(stream->context->idle_at_ns, work.end_ns);
  }
  work.stream = stream->id;
  work.context = stream->context->id;
  work.device = stream->context->device;
  if (const Tool* tool = driver().tool.load()) tool->work(work);
}

Node* add_node(Graph* graph, NodeType type, Function* function, const unsigned* grid, const unsigned* block,
               std::uint64_t bytes) {
  auto* node = new Node{static_cast<std::uint64_t>(graph->id) << 32 | (graph->nodes.size() + 1),
                        type,
                        function,
                        {},
                        {},
                        bytes,
                        nullptr,
                        1};
  if (grid != nullptr) std::copy_n(grid, 3, node->grid);
  if (block != nullptr) std::copy_n(block, 3, node->block);
  GraphData data{graph, nullptr, node, nullptr, type, nullptr, nullptr};
  resource(kNodeCreateStarting, nullptr, &data);
  graph->nodes.push_back(node);
  resource(kNodeCreated, nullptr, &data);
  count(driver().ledger, k_nodes_created);
  return node;
}

namespace {

// A CUkernel is a handle of its own, which the driver takes wherever a CUfunction is declared. Here: with its lowest
// bit set.
bool is_kernel(const void* handle) { return (reinterpret_cast<std::uintptr_t>(handle) & 1) != 0; }
Function* function_of(void* handle) {
  return reinterpret_cast<Function*>(reinterpret_cast<std::uintptr_t>(handle) & ~std::uintptr_t{1});
}
Function* function_of(const KernelNodeParams& parameters) {
  return function_of(parameters.function != nullptr ? parameters.function : parameters.kernel);
}

// A thread that launches or instantiates a graph.
class AtGraphs {
 public:
  AtGraphs() { driver().at_graphs.fetch_add(1); }
  ~AtGraphs() { driver().at_graphs.fetch_sub(1); }
};

Graph* make_graph() {
  auto* graph = new Graph{driver().next_id.fetch_add(1), {}};
  GraphData data{graph, nullptr, nullptr, nullptr, 0, nullptr, nullptr};
  resource(kGraphCreated, nullptr, &data);
  return graph;
}

// A clone of a graph and all graphs in it. `exec`: the executable it is made for.
Graph* clone(const Graph* original, Exec* exec) {
  auto* graph = new Graph{driver().next_id.fetch_add(1), {}};
  auto* source = const_cast<Graph*>(original);
  GraphData data{graph, source, nullptr, nullptr, 0, nullptr, exec};
  resource(kGraphCloned, nullptr, &data);
  for (Node* node : original->nodes) {
    auto* copy = new Node(*node);
    copy->cloned_from = node;
    copy->id = static_cast<std::uint64_t>(graph->id) << 32 | (graph->nodes.size() + 1);
    data.node = copy;
    data.original_node = node;
    data.node_type = node->type;
    resource(kNodeCreateStarting, nullptr, &data);
    graph->nodes.push_back(copy);
    GraphData created{graph, nullptr, copy, nullptr, node->type, nullptr, exec};
    resource(kNodeCreated, nullptr, &created);  // as the real one: created first, then told to be a clone
    resource(kNodeCloned, nullptr, &data);
    count(driver().ledger, k_nodes_cloned);
    if (node->child != nullptr) copy->child = clone(node->child, exec);
  }
  return graph;
}

struct Totals {
  std::uint64_t kernels = 0, kernel_ns = 0, copies = 0, duration_ns = 0;
};

void run_nodes(const Graph* graph, const Exec* exec, Stream* stream, std::uint32_t correlation, bool as_a_whole,
               Totals* totals) {
  for (const Node* node : graph->nodes) {
    for (unsigned i = 0; node->child != nullptr && i < node->times; ++i) {
      run_nodes(node->child, exec, stream, correlation, as_a_whole, totals);
    }
    const bool kernel = node->type == kKernelNode;
    if (!kernel && node->type != kCopyNode && node->type != kMemsetNode) continue;
    const std::uint64_t duration_ns = kernel ? node->function->duration_ns : copy_duration_ns(node->bytes);
    (kernel ? totals->kernels : totals->copies) += 1;
    totals->duration_ns += duration_ns;
    if (kernel) totals->kernel_ns += duration_ns;
    if (as_a_whole) continue;
    Work work{};
    work.kind = kernel ? kConcurrentKernel : node->type == kCopyNode ? kMemcpy : kMemset;
    work.name = kernel ? node->function->name.c_str() : nullptr;
    std::copy_n(node->grid, 3, work.grid);
    std::copy_n(node->block, 3, work.block);
    work.bytes = node->bytes;
    work.copy_kind = 8, work.from_kind = work.to_kind = 3;
    work.correlation = correlation;
    work.graph = exec->id;
    work.node = node->id;
    run_on(stream, work, duration_ns);
  }
}

int refused(const Stream* stream) { return stream->capture_broken ? kCudaCaptureInvalidated : unusable(stream); }

int launch(Call& call, void* function_handle, const unsigned* grid, const unsigned* block, unsigned shared_bytes,
           void* stream_handle) {
  auto* function = static_cast<Function*>(function_handle);
  Stream* stream = stream_of(stream_handle);
  if ((call.result = refused(stream)) != kCudaSuccess) return call.result;
  if (stream->capturing != nullptr) {
    count(driver().ledger, k_captured_calls);
    add_node(stream->capturing, kKernelNode, function, grid, block, 0);
    return call.result;
  }
  count(driver().ledger, k_launch_calls);
  count(driver().ledger, k_kernels);
  count(driver().ledger, k_kernel_ns, function->duration_ns);
  Work work{};
  work.kind = kConcurrentKernel;
  work.name = function->name.c_str();
  std::copy_n(grid, 3, work.grid);
  std::copy_n(block, 3, work.block);
  work.shared_bytes = shared_bytes;
  work.correlation = call.correlation();
  run_on(stream, work, function->duration_ns);
  return call.result;
}

int copy(Call& call, std::uint8_t kind, std::uint8_t from, std::uint8_t to, std::size_t bytes, void* stream_handle) {
  Stream* stream = stream_of(stream_handle);
  const bool memset = kind == 0;
  if ((call.result = refused(stream)) != kCudaSuccess) return call.result;
  if (stream->capturing != nullptr) {
    count(driver().ledger, k_captured_calls);
    add_node(stream->capturing, memset ? kMemsetNode : kCopyNode, nullptr, nullptr, nullptr, bytes);
    return call.result;
  }
  count(driver().ledger, k_launch_calls);
  count(driver().ledger, memset ? k_memsets : k_copies);
  count(driver().ledger, k_copy_bytes, memset ? 0 : bytes);
  count(driver().ledger, k_copy_ns, copy_duration_ns(bytes));
  Work work{};
  work.kind = memset ? kMemset : kMemcpy;
  work.bytes = bytes;
  work.copy_kind = kind, work.from_kind = from, work.to_kind = to;
  work.correlation = call.correlation();
  run_on(stream, work, copy_duration_ns(bytes));
  return call.result;
}

}  // namespace
}  // namespace fake

using namespace fake;

// Any name is a function: a module of the fake driver holds them all, and is loaded often.
FAKE_EXPORT int cuModuleLoadData(void** module, const void*) {
  static char one[] = "the code of all kernels";
  *module = &one;
  ModuleData data{1, sizeof(one), one};
  resource(kModuleLoaded, nullptr, &data);
  return kCudaSuccess;
}

FAKE_EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  static auto* functions = new std::map<std::string, Function*>;
  static auto* lock = new std::mutex;
  const std::lock_guard hold(*lock);
  Function*& entry = (*functions)[name];
  if (entry == nullptr) {
    const char* colon = std::strrchr(name, ':');
    entry = new Function{name, colon != nullptr ? std::strtoull(colon + 1, nullptr, 10) : 1000};
  }
  *function = entry;
  return kCudaSuccess;
}

FAKE_EXPORT int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  return cuModuleLoadData(library, nullptr);
}

FAKE_EXPORT int cuLibraryGetKernel(void** kernel, void*, const char* name) {
  cuModuleGetFunction(kernel, nullptr, name);
  *kernel = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(*kernel) | 1);
  return kCudaSuccess;
}

FAKE_EXPORT int cuKernelGetName(const char** name, void* kernel) {
  if (!is_kernel(kernel)) return kCudaInvalidHandle;
  return *name = function_of(kernel)->name.c_str(), kCudaSuccess;
}

FAKE_EXPORT int cuFuncGetName(const char** name, void* function) {
  if (is_kernel(function)) return kCudaInvalidHandle;
  return *name = static_cast<Function*>(function)->name.c_str(), kCudaSuccess;
}

FAKE_EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared_bytes, void* stream, void** arguments, void** extra) {
  const LaunchKernelParams parameters{function, {gx, gy, gz}, {bx, by, bz}, shared_bytes, stream, arguments, extra};
  Call call(kCuLaunchKernel, "cuLaunchKernel", &parameters, static_cast<Function*>(function)->name.c_str());
  return launch(call, function, parameters.grid, parameters.block, shared_bytes, stream);
}

FAKE_EXPORT int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** arguments, void** extra) {
  const LaunchKernelExParams parameters{config, function, arguments, extra};
  Call call(kCuLaunchKernelEx, "cuLaunchKernelEx", &parameters, static_cast<Function*>(function)->name.c_str());
  return launch(call, function, config->grid, config->block, config->shared_bytes, config->stream);
}

FAKE_EXPORT int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  const CopyToDeviceParams parameters{to, from, bytes, stream};
  Call call(kCuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2", &parameters);
  return copy(call, 1, 1, 3, bytes, stream);  // from pageable memory
}

FAKE_EXPORT int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  const CopyToHostParams parameters{to, from, bytes, stream};
  Call call(kCuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync_v2", &parameters);
  return copy(call, 2, 3, 2, bytes, stream);  // to pinned memory
}

FAKE_EXPORT int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
  const CopyOnDeviceParams parameters{to, from, bytes, stream};
  Call call(kCuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync_v2", &parameters);
  return copy(call, 8, 3, 3, bytes, stream);
}

FAKE_EXPORT int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t bytes, void* stream) {
  const MemsetParams parameters{to, value, bytes, stream};
  Call call(kCuMemsetD8Async, "cuMemsetD8Async", &parameters);
  return copy(call, 0, 0, 3, bytes, stream);
}

FAKE_EXPORT int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  Call call(kCuLaunchHostFunc, "cuLaunchHostFunc", &stream);
  function(data);  // on the caller's thread: what runs in it is what matters here
  return call.result;
}

FAKE_EXPORT int cuStreamBeginCapture_v2(void* stream, int) {
  Call call(kCuStreamBeginCapture_v2, "cuStreamBeginCapture_v2", &stream);
  Graph* graph = make_graph();
  const std::lock_guard hold(driver().lock);
  stream_of(stream)->capturing = graph;
  driver().capturing.push_back(stream_of(stream));
  driver().captures.fetch_add(1);
  return call.result;
}

FAKE_EXPORT int cuStreamEndCapture(void* stream, void** graph) {
  Call call(kCuStreamEndCapture, "cuStreamEndCapture", &stream);
  Stream* of = stream_of(stream);
  const std::lock_guard hold(driver().lock);
  const bool broken = of->capture_broken;
  *graph = broken ? nullptr : of->capturing;
  of->capturing = nullptr;
  of->capture_broken = false;
  driver().captures.fetch_sub(static_cast<int>(std::erase(driver().capturing, of)));
  return call.result = broken ? kCudaCaptureInvalidated : call.result;
}

FAKE_EXPORT int cuGraphCreate(void** graph, unsigned) {
  Call call(kCuGraphCreate, "cuGraphCreate", &graph);
  *graph = make_graph();
  return call.result;
}

FAKE_EXPORT int cuGraphClone(void** graph, void* original) {
  Call call(kCuGraphClone, "cuGraphClone", &graph);
  *graph = clone(static_cast<Graph*>(original), nullptr);
  return call.result;
}

FAKE_EXPORT int cuGraphAddKernelNode_v2(void** node, void* graph, const void* dependencies, std::size_t count,
                                        const KernelNodeParams* parameters) {
  const AddKernelNodeParams all{node, graph, dependencies, count, parameters};
  Call call(kCuGraphAddKernelNode_v2, "cuGraphAddKernelNode_v2", &all);
  *node = add_node(static_cast<Graph*>(graph), kKernelNode, function_of(*parameters), parameters->grid,
                   parameters->block, 0);
  return call.result;
}

FAKE_EXPORT int cuGraphConditionalHandleCreate(std::uint64_t* handle, void*, void*, unsigned, unsigned) {
  return *handle = 1, kCudaSuccess;
}

// Kernels, and branches that are always taken.
FAKE_EXPORT int cuGraphAddNode_v2(void** node, void* graph, const void* dependencies, const void* edges,
                                  std::size_t count, NodeParams* parameters) {
  const AddNodeParams all{node, graph, dependencies, edges, count, parameters};
  Call call(kCuGraphAddNode_v2, "cuGraphAddNode_v2", &all);
  if (parameters->type == kKernelNode) {
    *node = add_node(static_cast<Graph*>(graph), kKernelNode, function_of(parameters->kernel), parameters->kernel.grid,
                     parameters->kernel.block, 0);
  } else if (parameters->type == kConditionalNode) {
    Node* made = add_node(static_cast<Graph*>(graph), kConditionalNode, nullptr, nullptr, nullptr, 0);
    made->child = make_graph();
    parameters->conditional.bodies = new void* [1] { made->child };
    *node = made;
  } else {
    call.result = kCudaInvalidValue;
  }
  return call.result;
}

FAKE_EXPORT int cuGraphExecKernelNodeSetParams_v2(void* exec, void* node, const KernelNodeParams* parameters) {
  const SetKernelNodeParams all{exec, node, parameters};
  Call call(kCuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams_v2", &all);
  for (Node* mine : static_cast<Exec*>(exec)->graph->nodes) {
    if (mine->cloned_from != node) continue;
    mine->function = function_of(*parameters);
    std::copy_n(parameters->grid, 3, mine->grid);
    return call.result;
  }
  return call.result = kCudaInvalidValue;
}

FAKE_EXPORT int cuGraphAddChildGraphNode(void** node, void* graph, const void*, std::size_t, void* child) {
  Call call(kCuGraphAddChildGraphNode, "cuGraphAddChildGraphNode", &node);
  Node* made = add_node(static_cast<Graph*>(graph), kGraphNode, nullptr, nullptr, nullptr, 0);
  made->child = clone(static_cast<Graph*>(child), nullptr);
  *node = made;
  return call.result;
}

// Not CUDA's: a loop whose condition holds `times` times, as cuGraphAddNode makes one from a conditional handle.
FAKE_EXPORT int fake_graph_add_while(void* graph, void* body, unsigned times) {
  const AddNodeParams all{};  // no description of a kernel
  Call call(kCuGraphAddNode, "cuGraphAddNode", &all);
  Node* made = add_node(static_cast<Graph*>(graph), kConditionalNode, nullptr, nullptr, nullptr, 0);
  made->child = clone(static_cast<Graph*>(body), nullptr);
  made->times = times;
  return call.result;
}

FAKE_EXPORT int cuGraphInstantiateWithFlags(void** exec, void* graph, std::uint64_t) {
  Call call(kCuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", &exec);
  const AtGraphs at_graphs;
  auto* made = new Exec{driver().next_id.fetch_add(1), nullptr};
  GraphData data{graph, nullptr, nullptr, nullptr, 0, nullptr, made};
  resource(kExecCreateStarting, nullptr, &data);
  const Tool* tool = driver().tool.load();
  made->untraced = tool != nullptr && tool->graphs_were_traced() && !tool->graphs_as_a_whole();
  if (made->untraced) count(driver().ledger, k_untraced_execs);
  usleep(driver().instantiate_ms.load() * 1000);
  made->graph = clone(static_cast<Graph*>(graph), made);
  resource(kExecCreated, nullptr, &data);
  driver().execs.fetch_add(1);
  count(driver().ledger, k_graph_execs);
  *exec = made;
  return call.result;
}

// The nodes of the executable keep their ids and take the other graph's kernels. Nodes as many and alike, or refused.
FAKE_EXPORT int cuGraphExecUpdate_v2(void* exec, void* graph, void*) {
  const UpdateParams all{exec, graph, nullptr};
  Call call(kCuGraphExecUpdate_v2, "cuGraphExecUpdate_v2", &all);
  Graph* mine = static_cast<Exec*>(exec)->graph;
  auto* other = static_cast<Graph*>(graph);
  if (mine->nodes.size() != other->nodes.size()) return call.result = 910;
  for (std::size_t i = 0; i < mine->nodes.size(); ++i) {
    Node* node = mine->nodes[i];
    Node* source = other->nodes[i];
    node->function = source->function;
    std::copy_n(source->grid, 3, node->grid);
    GraphData data{mine, other, node, source, node->type, nullptr, exec};
    resource(kNodeUpdated, nullptr, &data);
  }
  return call.result;
}

FAKE_EXPORT int cuGraphLaunch(void* handle, void* stream_handle) {
  const GraphLaunchParams parameters{handle, stream_handle};
  Call call(kCuGraphLaunch, "cuGraphLaunch", &parameters);
  const AtGraphs at_graphs;
  const auto* exec = static_cast<Exec*>(handle);
  Stream* stream = stream_of(stream_handle);
  if ((call.result = refused(stream)) != kCudaSuccess) return call.result;
  const Tool* tool = driver().tool.load();
  const bool as_a_whole = tool == nullptr || tool->graphs_as_a_whole();
  if (tool != nullptr && as_a_whole && exec->untraced) count(driver().ledger, k_bad_exec_untraced);  // it crashes here
  Totals totals;
  run_nodes(exec->graph, exec, stream, call.correlation(), as_a_whole, &totals);
  if (as_a_whole) {
    Work work{};
    work.kind = kGraphTrace;
    work.correlation = call.correlation();
    work.graph = exec->id;
    work.kernels = totals.kernels;
    work.kernel_ns = totals.kernel_ns;
    run_on(stream, work, totals.duration_ns);
  }
  {
    const std::lock_guard hold(driver().lock);
    driver().graphs_until_ns = std::max(driver().graphs_until_ns, stream->busy_until_ns);
  }
  count(driver().ledger, k_launch_calls);
  count(driver().ledger, k_graph_launches);
  count(driver().ledger, k_node_kernels, totals.kernels);
  count(driver().ledger, k_node_copies, totals.copies);
  return call.result;
}

// Before the first launch, so that this is not slower than others.
FAKE_EXPORT int cuGraphUpload(void* exec, void* stream_handle) {
  const GraphLaunchParams parameters{exec, stream_handle};
  Call call(kCuGraphUpload, "cuGraphUpload", &parameters);
  const AtGraphs at_graphs;
  Stream* stream = stream_of(stream_handle);
  const std::lock_guard hold(driver().lock);
  stream->busy_until_ns = std::max(now_ns(), stream->busy_until_ns) + 100000;
  driver().graphs_until_ns = std::max(driver().graphs_until_ns, stream->busy_until_ns);
  return call.result;
}

FAKE_EXPORT int cuGraphExecDestroy(void* exec) {
  Call call(kCuGraphExecDestroy, "cuGraphExecDestroy", &exec);
  GraphData data{static_cast<Exec*>(exec)->graph, nullptr, nullptr, nullptr, 0, nullptr, exec};
  resource(kExecDestroyStarting, nullptr, &data);
  return call.result;  // its nodes stay: records of launches may still name them
}

FAKE_EXPORT int cuGraphDestroy(void* graph) {
  Call call(kCuGraphDestroy, "cuGraphDestroy", &graph);
  GraphData data{graph, nullptr, nullptr, nullptr, 0, nullptr, nullptr};
  resource(kGraphDestroyStarting, nullptr, &data);
  return call.result;
}
