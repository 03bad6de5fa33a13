#include "collect/cuda/graphs.h"

#include <stdio.h>
#include <string.h>

#include "collect/cuda/driver.h"
#include "collect/cuda/gpu.h"
#include "collect/cuda/graph_sampling.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stacks/launch_stack.h"

namespace llmprof::collect {
namespace {

using wire::GraphNodeKind;
using wire::LossKind;

// CUPTI 13.0 says 0, which is a kernel, of child graphs and of nodes that it adds itself, too: 0 says nothing. The call
// that was captured does, and a clone is what its original is.
constexpr GraphNodeKind kKinds[] = {GraphNodeKind::kUnknown, GraphNodeKind::kCopy,    // kNodeKernel, kNodeMemcpy
                                    GraphNodeKind::kMemset,  GraphNodeKind::kHost,    // kNodeMemset, kNodeHost
                                    GraphNodeKind::kGraph,   GraphNodeKind::kEmpty,   // kNodeGraph, kNodeEmpty
                                    GraphNodeKind::kEvent,   GraphNodeKind::kEvent,   // waits for, records an event
                                    GraphNodeKind::kEvent,   GraphNodeKind::kEvent,   // kNodeSignal, kNodeWait
                                    GraphNodeKind::kMemory,  GraphNodeKind::kMemory,  // kNodeAllocate, kNodeFree
                                    GraphNodeKind::kMemory,  GraphNodeKind::kConditional};
static_assert(sizeof(kKinds) / sizeof(kKinds[0]) == cupti::kNodeConditional + 1);

GraphNodeKind kind_of(std::uint32_t type) {
  return type <= cupti::kNodeConditional ? kKinds[type] : GraphNodeKind::kUnknown;
}

GraphNodeKind kind_of(wire::LaunchOp op) {
  switch (op) {
    case wire::LaunchOp::kKernel:
      return GraphNodeKind::kKernel;
    case wire::LaunchOp::kCopy:
      return GraphNodeKind::kCopy;
    case wire::LaunchOp::kMemset:
      return GraphNodeKind::kMemset;
    case wire::LaunchOp::kGraph:
      return GraphNodeKind::kGraph;
    default:
      return GraphNodeKind::kUnknown;
  }
}

template <class Id>
Id ask_id(cupti::Call call, cupti::Result (*ask)(void*, Id*), void* handle) {
  Id id = 0;
  return handle != nullptr && ask != nullptr && succeeded(call, ask(handle, &id)) ? id : 0;
}

std::uint64_t id_of_node(void* node) {
  return ask_id(cupti::Call::kGetGraphNodeId, gpu.library.get_graph_node_id, node);
}

std::uint32_t id_of_executable(void* executable) {
  return ask_id(cupti::Call::kGetGraphExecId, gpu.library.get_graph_exec_id, executable);
}

std::uint32_t id_of_graph(void* graph) { return ask_id(cupti::Call::kGetGraphId, gpu.library.get_graph_id, graph); }

void record_node(const MadeNode& made, std::uint64_t original, const char* symbol, wire::DefinitionId stack) {
  record_event(wire::RecordKind::kGraphNode, [&](wire::Record* record, Thread* thread) {
    const wire::StringId name = intern_cached(thread, symbol);
    record->graph_node = {made.ts_ns, made.id, original, name, made.graph, stack, made.kind};
  });
}

// A node that was made outside of a launch may turn out to be a clone: CUPTI says so in its next callback.
void record_made_node() {
  if (tl.made.handle == nullptr) return;
  const MadeNode made = tl.made;
  tl.made = {};
  record_node(made, 0, nullptr, made.stack);
}

// An instantiation has the stack of its call.
wire::DefinitionId stack_of_change() { return tl.instantiating != 0 ? 0 : stack_here(); }

MadeNode made_node(const cupti::GraphData& data) {
  const std::uint32_t graph = data.executable != nullptr ? id_of_executable(data.executable) : id_of_graph(data.graph);
  const std::uint32_t type = data.node_type != 0 ? data.node_type : tl.node_type;
  tl.node_type = 0;
  const GraphNodeKind kind = type != 0 ? kind_of(type) : kind_of(tl.launch.op);
  return {data.node, id_of_node(data.node), now_ns(), graph, 0, kind};
}

// A node of a capture comes into being inside the launch that is captured, so the kernel's name and the stack are
// those of the launch.
void node_created(const cupti::GraphData& data) {
  record_made_node();
  MadeNode made = made_node(data);
  if (made.id == 0) return count_loss(LossKind::kGraphUnknown);
  ++tl.launch.nodes;
  if (tl.launch.inside) return record_node(made, 0, tl.launch.symbol, tl.launch.stack);
  made.stack = stack_of_change();
  tl.made = made;
}

void node_cloned(const cupti::GraphData& data) {
  const bool announced = tl.made.handle == data.node;
  if (!announced) record_made_node();
  const MadeNode made = announced ? tl.made : made_node(data);
  tl.made = {};
  if (made.id == 0) return count_loss(LossKind::kGraphUnknown);
  record_node(made, id_of_node(data.original_node), nullptr, 0);
}

// ---- samples ----------------------------------------------------------------------------------------------------

constinit GraphSampling sampling;
constinit GraphStreams streams;
constinit std::atomic<std::uint64_t> gap_begin_ns;  // 0: no gap

bool is_sampled() { return g.settings.graphs == kGraphsSampled; }

// Addresses of thread-local storage are given to other threads later, numbers are not.
std::uint64_t this_thread() {
  static constinit std::atomic<std::uint32_t> threads;
  if (tl.graph_thread == 0) tl.graph_thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return tl.graph_thread;
}

constexpr std::uint64_t kLegacyStream = 1, kThreadsStream = 2;  // handles of the two default streams

GraphStreams::Stream stream_of(const GraphCall& call) {
  const std::uint64_t handle = call.stream != 0 ? call.stream : call.own_default ? kThreadsStream : kLegacyStream;
  const bool is_default = handle == kLegacyStream || handle == kThreadsStream;
  return {handle, call.context, handle == kThreadsStream ? this_thread() : 0, is_default};
}

void* context_of(const GraphStreams::Stream& stream) {
  void* context = stream.is_default ? nullptr : context_of_stream(reinterpret_cast<void*>(stream.handle));
  return context != nullptr ? context : stream.context;
}

void* put_event(const GraphStreams::Stream& stream) {
  return mark_stream(reinterpret_cast<void*>(stream.handle), stream.event);
}

bool is_idle(const GraphStreams::Stream& stream, void* context) {
  if (stream.event != nullptr) return state_of_event(stream.event) == StreamState::kIdle;
  if (stream.is_default && stream.context != context) return false;
  if (stream.thread != 0 && stream.thread != this_thread()) return false;
  return state_of_stream(reinterpret_cast<void*>(stream.handle)) == StreamState::kIdle;
}

bool no_graph_in_flight(void* context) {
  if (streams.is_uncertain())
    sampling.give_up("graphs ran on streams or in contexts that were destroyed, or on more streams than are watched");
  return streams.all_idle(is_idle, context);
}

void enable_device_work(bool in_any_case) {
  for (const std::uint32_t kind : kDeviceWork) {
    if (in_any_case || is_recording()) succeeded(cupti::Call::kActivityEnable, gpu.library.activity_enable(kind));
  }
  const std::uint64_t begin_ns = gap_begin_ns.exchange(0, std::memory_order_relaxed);
  if (begin_ns != 0) state_gap(begin_ns, now_ns(), "graph sampling");
}

// The records of a sample first: switched before they are delivered, their times come out wrong.
void prepare(GraphSampling::Action action, void*) {
  const bool ends_sample =
      action == GraphSampling::Action::kSilence ||
      (action == GraphSampling::Action::kClose && gap_begin_ns.load(std::memory_order_relaxed) == 0);
  if (ends_sample) succeeded(cupti::Call::kFlushAll, gpu.library.flush_all(0));
}

void act(GraphSampling::Action action, void*) {
  switch (action) {
    case GraphSampling::Action::kNone:
      return;
    case GraphSampling::Action::kOpen:
      succeeded(cupti::Call::kActivityDisable, gpu.library.activity_disable(cupti::kGraphTrace));
      return;
    case GraphSampling::Action::kSilence:
      gap_begin_ns.store(now_ns(), std::memory_order_relaxed);
      // Copies too: those of a graph whose kernels are missing would look like a launch of their own.
      for (const std::uint32_t kind : kDeviceWork) {
        succeeded(cupti::Call::kActivityDisable, gpu.library.activity_disable(kind));
      }
      return;
    case GraphSampling::Action::kClose:
      succeeded(cupti::Call::kActivityEnable, gpu.library.activity_enable(cupti::kGraphTrace));
      enable_device_work(false);
      return wake_gpu_thread();  // it may wait for this to switch the other kinds
    case GraphSampling::Action::kResume:
      return enable_device_work(true);  // nobody may later
  }
}

GraphSampling::Hands hands(void* context) { return {no_graph_in_flight, prepare, act, context}; }

// What a thread is instantiating was told by a call, from which streams can be asked, or by CUPTI alone, inside of the
// driver, which may hold locks then.
enum Instantiating : std::uint8_t { kNot = 0, kByCall, kByResource };

void begin_instantiation(Instantiating told, const GraphSampling::Hands* with) {
  if (tl.instantiating != kNot) return;
  tl.instantiating = told;
  if (is_sampled()) sampling.instantiation_begins(with);
}

void end_instantiation(Instantiating told) {
  if (tl.instantiating != told) return;
  tl.instantiating = kNot;
  if (is_sampled()) sampling.instantiation_ended();
}

// ---- kernels that the program names itself ------------------------------------------------------------------------

// The handles of the kernel in CUDA_KERNEL_NODE_PARAMS: a function, or else (from _v2 on) a kernel.
struct KernelHandles {
  void* function = nullptr;
  void* kernel = nullptr;
  void* any() const { return function != nullptr ? function : kernel; }
};

KernelHandles handles_in(const NodeDescription& description) {
  constexpr std::size_t kKernelHandle = 56;
  constexpr std::size_t kOfItsKind = 16;  // in CUgraphNodeParams, which has its type first
  KernelHandles handles;
  const char* at = static_cast<const char*>(description.parameters);
  if (at == nullptr) return handles;
  if (description.layout == cupti::NodeParameters::kAnyNode) {
    std::uint32_t type;
    memcpy(&type, at, sizeof(type));
    if (type != cupti::kNodeKernel) return handles;
    at += kOfItsKind;
  }
  memcpy(&handles.function, at, sizeof(handles.function));
  if (description.layout != cupti::NodeParameters::kFirstKernelNode)
    memcpy(&handles.kernel, at + kKernelHandle, sizeof(handles.kernel));
  return handles;
}

void record_update(const wire::GraphNodeRecord& update, const char* symbol) {
  static constinit std::atomic<std::uint32_t> records;
  constexpr std::uint32_t kMost = 1u << 20;
  if (records.fetch_add(1, std::memory_order_relaxed) >= kMost) {
    records.store(kMost, std::memory_order_relaxed);
    return count_loss(LossKind::kGraphUnknown);
  }
  record_event(wire::RecordKind::kGraphNode, [&](wire::Record* record, Thread* thread) {
    record->graph_node = update;
    record->graph_node.name = intern_cached(thread, symbol);
  });
}

// The kernel that each node of an executable was last set to, so that the same again costs nothing. What finds no room
// is recorded each time. Threads may meet in a slot: then, too, one is recorded that need not be.
class SetKernels {
 public:
  enum class Was : std::uint8_t { kSame, kOther, kUnknown };
  Was set(std::uint32_t graph, std::uint64_t node, const void* kernel) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    const std::uint64_t key = ((std::uint64_t{graph} << 1 | 1) * kOdd) ^ node;
    const std::uint64_t handle = reinterpret_cast<std::uintptr_t>(kernel);
    Slot& slot = slots_[(key * kOdd) >> 51];
    const bool known = slot.key.exchange(key, std::memory_order_relaxed) == key;
    const bool same = slot.kernel.exchange(handle, std::memory_order_relaxed) == handle;
    return !known ? Was::kUnknown : same ? Was::kSame : Was::kOther;
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key{0}, kernel{0};
  };
  Slot slots_[1u << 13]{};
};
constinit SetKernels set_kernels;

}  // namespace

void on_graph_resource(std::uint32_t id, const cupti::GraphData& data) {
  switch (id) {
    case cupti::kGraphNodeCreateStarting:
      tl.node_type = data.node_type;
      return;
    case cupti::kGraphNodeCreated:
      return node_created(data);
    case cupti::kGraphNodeCloned:
      return node_cloned(data);
    case cupti::kGraphExecCreateStarting:
      record_made_node();
      return begin_instantiation(kByResource, nullptr);
    case cupti::kGraphExecCreated:
      record_made_node();
      return end_instantiation(kByResource);
    default:
      return;
  }
}

void instantiation_begins() {
  const GraphSampling::Hands with = hands(current_context());
  begin_instantiation(kByCall, &with);
}

void instantiation_ended() { end_instantiation(kByCall); }

void graphs_capture_begins() {
  if (is_sampled()) sampling.capture_begins(hands(current_context()));
}

void graphs_capture_ended() {
  if (is_sampled()) sampling.capture_ended();
}

const char* kernel_of_node(const NodeDescription& description) {
  const KernelHandles handles = handles_in(description);
  return handles.any() != nullptr ? name_of_kernel(handles.function, handles.kernel) : nullptr;
}

void kernel_is_set(std::uint64_t executable, std::uint64_t node, const NodeDescription& description) {
  const KernelHandles handles = handles_in(description);
  if (handles.any() == nullptr) return;  // of another kind
  const std::uint32_t graph = executable != 0 ? id_of_executable(reinterpret_cast<void*>(executable)) : 0;
  const std::uint64_t id = id_of_node(reinterpret_cast<void*>(node));
  if (id == 0 || (executable != 0 && graph == 0)) return;
  const SetKernels::Was was = set_kernels.set(graph, id, handles.any());
  if (was == SetKernels::Was::kSame) return;
  if (was == SetKernels::Was::kOther && graph != 0) sampling.changed(graph, true);
  record_update({now_ns(), id, 0, 0, graph, stack_of_change(), GraphNodeKind::kUpdate},
                name_of_kernel(handles.function, handles.kernel));
}

void graph_is_updated(std::uint64_t executable, std::uint64_t graph) {
  const std::uint32_t id = id_of_executable(reinterpret_cast<void*>(executable));
  const std::uint32_t source = id_of_graph(reinterpret_cast<void*>(graph));
  if (id == 0) return;
  sampling.changed(id, false);
  record_update({now_ns(), 0, source, 0, id, stack_of_change(), GraphNodeKind::kUpdate}, nullptr);
}

void start_graphs() { sampling.watch_first(g.settings.graphs_after_ms * 1000000); }

void finish_graphs() {
  if (!is_sampled()) return;
  const std::uint64_t begin_ns = gap_begin_ns.exchange(0, std::memory_order_relaxed);
  if (begin_ns != 0) state_gap(begin_ns, now_ns(), "graph sampling");
  if (sampling.stays_open())
    note("graphs",
         "from some launch on every one was recorded node by node, which costs more: a graph was instantiated "
         "while another did not end.");
  const char* why_not = sampling.why_not();
  if (why_not == nullptr) return;
  note("graphs", "no launch was recorded node by node: %s.", why_not);
}

bool hold_graphs() { return !is_sampled() || sampling.hold(); }

void release_graphs() {
  if (is_sampled()) sampling.release();
}

bool graphs_need_kinds() { return is_sampled() && sampling.is_open(); }

void close_graphs() {
  if (is_sampled() && sampling.is_open() && !sampling.stays_open()) sampling.close_if_idle(hands(nullptr));
}

// In rests graphs go on being recorded as a whole: without it they are slower, not faster, so that nothing could be
// learnt from it.
bool records_graphs() { return is_recording() || g.settings.rest_from_ns != 0; }

std::uint32_t graph_launch_begins(const GraphCall& call) {
  const std::uint32_t graph = id_of_executable(reinterpret_cast<void*>(call.executable));
  if (graph == 0) count_loss(LossKind::kGraphUnknown);
  if (!is_sampled()) return graph;
  if (!tl.in_graph_launch) sampling.enter();  // else the last one's end was not told
  tl.in_graph_launch = true;
  if (graph != 0 && (is_recording() || sampling.is_open()))
    sampling.launch_begins({graph, now_ns()}, hands(call.context));
  streams.launched(stream_of(call), context_of);
  return graph;
}

void graph_launch_ended(const GraphCall& call) {
  if (!tl.in_graph_launch) return;
  tl.in_graph_launch = false;
  if (sampling.wants_marks()) streams.mark(stream_of(call), put_event);
  sampling.leave();
}

void graph_upload_begins(const GraphCall& call) {
  if (!is_sampled() || tl.in_graph_launch) return;
  sampling.enter();
  tl.in_graph_launch = true;
  streams.launched(stream_of(call), context_of);
}

void stream_is_destroyed(const void* stream) {
  if (is_sampled()) streams.destroyed(reinterpret_cast<std::uintptr_t>(stream));
}

void graphs_context_ends(const void* context) {
  if (is_sampled()) streams.context_destroyed(context);
}

}  // namespace llmprof::collect
