#include "collect/cuda/graphs.h"

#include <string.h>

#include "collect/clock.h"
#include "collect/cuda/facts.h"
#include "collect/cuda/gpu.h"
#include "collect/cuda/graph_sampling.h"
#include "collect/cuda/recording.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/stacks/launch_stack.h"

namespace llmprof::collect {
namespace {

using wire::GraphNodeKind;
using wire::LossKind;

GraphNodeKind kind_of(std::uint32_t type) {
  switch (type) {
    case cupti::kNodeKernel:
      return GraphNodeKind::kKernel;
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

// A node of a capture comes into being inside the launch that is captured, so the kernel's name and the stack are
// those of the launch. A clone has its original's.
void record_node(const cupti::GraphData& data, bool cloned) {
  const std::uint64_t node = id_of_node(data.node);
  if (node == 0) return count_loss(LossKind::kGraphUnknown);
  const std::uint32_t graph = data.executable != nullptr ? id_of_executable(data.executable) : id_of_graph(data.graph);
  const std::uint64_t original = cloned ? id_of_node(data.original_node) : 0;
  Thread* thread = enter();
  if (thread == nullptr) return;
  if (wire::Record* record = reserve(thread)) {
    memset(static_cast<void*>(record), 0, sizeof(*record));
    record->kind = wire::RecordKind::kGraphNode;
    wire::GraphNodeRecord& out = record->graph_node;
    out.ts_ns = now_ns();
    out.node = node;
    out.cloned_from = original;
    out.graph = graph;
    out.kind = kind_of(data.node_type);
    if (!cloned) {
      out.name = tl.launch.inside ? intern_cached(thread, tl.launch.symbol) : 0;
      out.stack = tl.launch.inside ? tl.launch.stack : g.settings.stacks != 0 ? launch_stack() : 0;
    }
    commit(thread);
  }
  leave();
}

// ---- samples ----------------------------------------------------------------------------------------------------

constinit GraphSampling sampling;
constinit std::atomic<std::uint64_t> gap_begin_ns;  // 0: no gap

bool is_sampled() { return g.settings.graphs == kGraphsSampled; }

// An address in thread-local storage tells threads apart.
std::uint32_t this_thread() { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&tl) >> 4) | 1; }

void close_sample() {
  sampling.closed();
  succeeded(cupti::Call::kActivityEnable, gpu.library.activity_enable(cupti::kGraphTrace));
  if (is_recording()) succeeded(cupti::Call::kActivityEnable, gpu.library.activity_enable(cupti::kConcurrentKernel));
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
      succeeded(cupti::Call::kActivityDisable, gpu.library.activity_disable(cupti::kConcurrentKernel));
      return;
    case GraphSampling::Action::kClose:
      return close_sample();
  }
}

}  // namespace

void on_graph_resource(std::uint32_t id, const cupti::GraphData& data) {
  switch (id) {
    case cupti::kGraphNodeCreated:
      ++tl.launch.nodes;
      return record_node(data, false);
    case cupti::kGraphNodeCloned:
      return record_node(data, true);
    case cupti::kGraphExecCreateStarting:  // CUPTI crashes later if graphs are not recorded as a whole now
      if (is_sampled() && sampling.must_close()) close_sample();
      return;
    default:
      return;
  }
}

std::uint32_t graph_launch_begins(std::uint64_t executable, std::uint64_t stream) {
  const std::uint32_t graph = id_of_executable(reinterpret_cast<void*>(executable));
  if (graph == 0) count_loss(LossKind::kGraphUnknown);
  if (graph != 0 && is_sampled() && is_recording()) act(sampling.launch_begins({graph, this_thread(), stream}));
  return graph;
}

void graph_launch_ended(std::uint64_t now_ns) { sampling.launch_ended(this_thread(), now_ns); }

void waited_for_graphs(std::uint64_t stream, bool for_all, std::uint64_t begin_ns) {
  sampling.waited(stream, for_all, begin_ns);
}

}  // namespace llmprof::collect
