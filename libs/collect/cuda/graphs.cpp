#include "collect/cuda/graphs.h"

#include <stdio.h>
#include <string.h>

#include "collect/clock.h"
#include "collect/cuda/facts.h"
#include "collect/cuda/gpu.h"
#include "collect/cuda/graph_sampling.h"
#include "collect/cuda/recording.h"
#include "collect/event.h"
#include "collect/futex.h"
#include "collect/names.h"
#include "collect/stacks/launch_stack.h"

namespace llmprof::collect {
namespace {

using wire::GraphNodeKind;
using wire::LossKind;

// CUPTI 13.0 says 0, which is a kernel, of child graphs and of nodes that it adds itself, too: 0 says nothing. The call
// that was captured does, and a clone is what its original is.
GraphNodeKind kind_of(std::uint32_t type) {
  switch (type) {
    case cupti::kNodeMemcpy:
      return GraphNodeKind::kCopy;
    case cupti::kNodeMemset:
      return GraphNodeKind::kMemset;
    case cupti::kNodeHost:
      return GraphNodeKind::kHost;
    case cupti::kNodeGraph:
      return GraphNodeKind::kGraph;
    case cupti::kNodeEmpty:
      return GraphNodeKind::kEmpty;
    case cupti::kNodeWaitEvent:
    case cupti::kNodeRecordEvent:
    case cupti::kNodeSignal:
    case cupti::kNodeWait:
      return GraphNodeKind::kEvent;
    case cupti::kNodeAllocate:
    case cupti::kNodeFree:
    case cupti::kNodeBatchMemory:
      return GraphNodeKind::kMemory;
    case cupti::kNodeConditional:
      return GraphNodeKind::kConditional;
    default:
      return GraphNodeKind::kUnknown;
  }
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

std::uint64_t id_of_node(void* node) {
  std::uint64_t id = 0;
  if (node == nullptr || gpu.library.get_graph_node_id == nullptr) return 0;
  return succeeded(cupti::Call::kGetGraphNodeId, gpu.library.get_graph_node_id(node, &id)) ? id : 0;
}

std::uint32_t id_of_executable(void* executable) {
  std::uint32_t id = 0;
  if (executable == nullptr || gpu.library.get_graph_exec_id == nullptr) return 0;
  return succeeded(cupti::Call::kGetGraphExecId, gpu.library.get_graph_exec_id(executable, &id)) ? id : 0;
}

std::uint32_t id_of_graph(void* graph) {
  std::uint32_t id = 0;
  if (graph == nullptr || gpu.library.get_graph_id == nullptr) return 0;
  return succeeded(cupti::Call::kGetGraphId, gpu.library.get_graph_id(graph, &id)) ? id : 0;
}

void record_node(const MadeNode& made, std::uint64_t original, const char* symbol, wire::DefinitionId stack) {
  Thread* thread = enter();
  if (thread == nullptr) return;
  if (wire::Record* record = reserve(thread)) {
    memset(static_cast<void*>(record), 0, sizeof(*record));
    record->kind = wire::RecordKind::kGraphNode;
    const wire::StringId name = intern_cached(thread, symbol);
    record->graph_node = {made.ts_ns, made.id, original, name, made.graph, stack, made.kind};
    commit(thread);
  }
  leave();
}

// A node that was made outside of a launch may turn out to be a clone: CUPTI says so in its next callback.
void record_made_node() {
  if (tl.made.handle == nullptr) return;
  const MadeNode made = tl.made;
  tl.made = {};
  record_node(made, 0, nullptr, made.stack);
}

wire::DefinitionId stack_here() {
  if (g.settings.stacks == 0 || tl.instantiating || enter() == nullptr) return 0;
  const wire::DefinitionId stack = launch_stack();
  leave();
  return stack;
}

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
  made.stack = stack_here();
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
constinit std::atomic<std::uint64_t> gap_begin_ns;  // 0: no gap
constinit std::atomic<bool> gave_up;

bool is_sampled() { return g.settings.graphs == kGraphsSampled; }

// An address in thread-local storage tells threads apart.
std::uint32_t this_thread() { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&tl) >> 4) | 1; }

void close_sample() {
  sampling.closed();
  succeeded(cupti::Call::kActivityEnable, gpu.library.activity_enable(cupti::kGraphTrace));
  for (const std::uint32_t kind : kDeviceWork) {
    if (is_recording()) succeeded(cupti::Call::kActivityEnable, gpu.library.activity_enable(kind));
  }
  const std::uint64_t begin_ns = gap_begin_ns.exchange(0, std::memory_order_relaxed);
  if (begin_ns != 0) state_gap(begin_ns, now_ns(), "graph sampling");
}

void act(GraphSampling::Action action) {
  switch (action) {
    case GraphSampling::Action::kNone:
      return;
    case GraphSampling::Action::kOpen:
      succeeded(cupti::Call::kActivityDisable, gpu.library.activity_disable(cupti::kGraphTrace));
      return;
    case GraphSampling::Action::kSilence:
      // The records of the sample first: switched before they are delivered, their times come out wrong.
      succeeded(cupti::Call::kFlushAll, gpu.library.flush_all(0));
      gap_begin_ns.store(now_ns(), std::memory_order_relaxed);
      // Copies too: those of a graph whose kernels are missing would look like a launch of their own.
      for (const std::uint32_t kind : kDeviceWork) {
        succeeded(cupti::Call::kActivityDisable, gpu.library.activity_disable(kind));
      }
      return;
    case GraphSampling::Action::kClose:
      return close_sample();
  }
}

void sample(std::uint32_t graph, std::uint64_t stream) {
  act(sampling.launch_begins({graph, this_thread(), stream, now_ns()}));
  const char* why_not = sampling.why_not();
  if (why_not == nullptr || gave_up.exchange(true, std::memory_order_relaxed)) return;
  char text[128];
  snprintf(text, sizeof(text), "launches are not recorded node by node: %s.", why_not);
  note("graphs", text);
}

// A graph that is instantiated while graphs are not recorded as a whole crashes the program later. The thread that
// samples is done within a few launches; another one waits for it, not for ever.
void begin_instantiation() {
  if (!tl.instantiating) sampling.instantiation_begins(this_thread());  // else the last one failed
  for (int i = 0; i < 50 && sampling.is_open() && !sampling.is_owner(this_thread()); ++i) futex_wait(gpu.never, 0, 1);
  if (sampling.is_open()) close_sample();
}

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
      if (is_sampled()) begin_instantiation();
      tl.instantiating = true;
      return;
    case cupti::kGraphExecCreated:
      record_made_node();
      if (is_sampled() && tl.instantiating) sampling.instantiation_ended();
      tl.instantiating = false;
      return;
    default:
      return;
  }
}

void start_graphs() { sampling.watch_first(g.settings.graphs_after_ms * 1000000); }

std::uint32_t graph_launch_begins(std::uint64_t executable, std::uint64_t stream) {
  const std::uint32_t graph = id_of_executable(reinterpret_cast<void*>(executable));
  if (graph == 0) count_loss(LossKind::kGraphUnknown);
  if (graph != 0 && is_sampled() && is_recording()) sample(graph, stream);
  return graph;
}

void graph_launch_ended(std::uint64_t now_ns) { sampling.launch_ended(now_ns); }

void waited_for_graphs(std::uint64_t stream, bool for_all, std::uint64_t begin_ns) {
  sampling.waited(stream, for_all, begin_ns);
}

}  // namespace llmprof::collect
