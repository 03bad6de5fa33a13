// The joins of CudaIngest: executions that wait, and what becomes of them.

#include <algorithm>

#include "record/log/cuda_ingest.h"
#include "record/log/ingest.h"

namespace llmprof::record {
namespace {

using wire::RecordKind;

constexpr std::size_t kMostWaiting = 1u << 16;
// The device's clock is converted to the host's: that much a kernel may seem to begin before it was launched.
constexpr std::int64_t kClockErrorNs = 1'000'000;

std::int64_t time(std::uint64_t ns) { return static_cast<std::int64_t>(ns); }

using trace::unless_0;

}  // namespace

void CudaIngest::wait(Waiting& waiting) {
  if (waiting.kind != RecordKind::kGraphNode) join_launch(waiting);
  waiting.arrived = arrived_++;
  if (waiting_.size() == kMostWaiting) leave();
  waiting_.push_back(waiting);
}

void CudaIngest::join_launch(Waiting& waiting) {
  const std::uint32_t correlation = waiting.kind == RecordKind::kKernel ? waiting.kernel.correlation
                                    : waiting.kind == RecordKind::kCopy ? waiting.copy.correlation
                                                                        : waiting.graph_launch.correlation;
  const CudaLaunch* launch = launches_.use(correlation);
  if (launch == nullptr) return;
  waiting.launch = *launch;
  if (launch->number != 0 && waiting.kind == RecordKind::kKernel)
    estimates_.ran(*launch, row_of(waiting.kernel, waiting.shape));
}

void CudaIngest::leave() {
  Waiting waiting = waiting_.front();
  waiting_.pop_front();
  if (waiting.kind == RecordKind::kGraphNode && waiting.node.kind == wire::GraphNodeKind::kUpdate)
    return apply_update(waiting);
  if (waiting.kind == RecordKind::kGraphNode) return join_node(waiting.node, waiting.launch.thread_id);
  if (waiting.launch.thread_id == 0) join_launch(waiting);
  if (waiting.launch.estimated) return;  // it came too late
  static_assert(offsetof(wire::KernelRecord, begin_ns) == offsetof(wire::CopyRecord, begin_ns) &&
                offsetof(wire::KernelRecord, end_ns) == offsetof(wire::CopyRecord, end_ns) &&
                offsetof(wire::KernelRecord, begin_ns) == offsetof(wire::GraphLaunchRecord, begin_ns) &&
                offsetof(wire::KernelRecord, end_ns) == offsetof(wire::GraphLaunchRecord, end_ns));
  if (!in_time(waiting.kernel.begin_ns, waiting.kernel.end_ns) || !after_launch(waiting)) return;
  if (waiting.kind == RecordKind::kKernel && is_profilers_own(waiting.shape)) return;
  if (waiting.launch.thread_id == 0) ++counts_.launch_lost;
  switch (waiting.kind) {
    case RecordKind::kKernel:
      return write_kernel(waiting);
    case RecordKind::kCopy:
      return write_copy(waiting);
    default:
      return write_graph_launch(waiting);
  }
}

bool CudaIngest::after_launch(const Waiting& waiting) {
  const CudaLaunch& launch = waiting.launch;
  if (launch.thread_id == 0 || time(waiting.kernel.begin_ns) >= launch.begin_ns - kClockErrorNs) return true;
  ++counts_.bad_times;
  return false;
}

// The launch of a graph that an execution is of, new if it is the first one seen of it.
template <class Work>
trace::GraphLaunch& CudaIngest::graph_launch(std::uint32_t correlation, std::uint32_t graph, std::uint32_t version,
                                             const Work& work, const CudaLaunch* launch) {
  CudaGraph::Version* known = graphs_.version(graph, version, rows_.next_id);
  if (known != nullptr) known->launched = true;
  trace::GraphLaunch* found = graph_launches_.find(correlation);
  if (found == nullptr) {
    if (graph_launches_.full()) graph_launches_.write_oldest(rows_.writer);
    found = &graph_launches_.add(correlation, {rows_.next_id++, known != nullptr ? known->id : 0, work, launch});
  }
  counters_.graph_ran(correlation, found->row.id);
  return *found;
}

void CudaIngest::write_graph_launch(Waiting& waiting) {
  const wire::GraphLaunchRecord& record = waiting.graph_launch;
  trace::GraphLaunchRow work;
  fill(work, record);
  work.device_id = device_id(record.device);
  const std::uint32_t version = version_of(record.graph, waiting.found_launch(), work.begin_ns);
  graph_launch(record.correlation, record.graph, version, work, waiting.found_launch())
      .set_whole(work.begin_ns, work.end_ns);
}

// What an executable graph runs is what it was when the launch was called.
std::uint32_t CudaIngest::version_of(std::uint32_t graph, const CudaLaunch* launch, std::int64_t begin_ns) const {
  return graphs_.version_at(graph, launch != nullptr ? launch->begin_ns : begin_ns);
}

// A kernel or copy that is a node of a graph: its launch, its node, and what was known when that was captured.
template <class Row, class Record>
void CudaIngest::join_graph(Row& row, const Record& record, const Waiting& waiting, trace::Name name,
                            wire::GraphNodeKind kind) {
  if (record.graph == 0 && record.graph_node == 0) return;
  const std::uint32_t version = version_of(record.graph, waiting.found_launch(), row.begin_ns);
  trace::GraphLaunch& launch = graph_launch(record.correlation, record.graph, version, row, waiting.found_launch());
  launch.add_node(row.begin_ns, row.end_ns);
  row.graph_launch_id = launch.row.id;
  row.stack_id.reset();
  CudaGraphNodes::Node* node = nodes_.take(record.graph_node, version, rows_.next_id);
  const CudaGraphNodes::Node* captured = node != nullptr ? nodes_.original(*node) : nullptr;
  if (captured == nullptr) ++counts_.graph_unknown;
  if (node == nullptr) return;
  row.graph_node_id = node->id;
  if (captured == nullptr) ++node->unknown_runs;
  if (captured != nullptr) row.stack_id = unless_0(captured->stack_id);
  if constexpr (std::is_same_v<Row, trace::KernelRow>) {
    if (captured != nullptr) row.gemm_id = unless_0(captured->gemm_id);
  }
  if (node->ran) return;
  node->ran = true;
  nodes_.place(*node, record.graph);  // of the executable: the record of the node may have been made for another graph
  if (node->kind == wire::GraphNodeKind::kUnknown) node->kind = kind;
  if (name.id != 0) node->name = name;
}

// Profilers of CUPTI run a kernel of their own, of one thread and 80 us, before what they measure (seen with
// CUDA 13.0).
bool CudaIngest::is_profilers_own(const trace::KernelRow* shape) const {
  const bool single = shape != nullptr && shape->grid_x == 1 && shape->grid_y == 1 && shape->block_x == 1;
  return single && rows_.writer.strings().text(shape->name) == "WaitNs";
}

trace::KernelRow CudaIngest::row_of(const wire::KernelRecord& record, const trace::KernelRow* shape) {
  trace::KernelRow row = shape != nullptr ? *shape : trace::KernelRow();
  fill(row, record);
  row.device_id = device_id(record.device);
  return row;
}

void CudaIngest::write_kernel(Waiting& waiting) {
  const wire::KernelRecord& record = waiting.kernel;
  trace::KernelRow row = row_of(record, waiting.shape);
  trace::set_launch(row, waiting.found_launch());
  join_graph(row, record, waiting, row.name, wire::GraphNodeKind::kKernel);
  add_kernel(row, waiting.launch);
  if (!row.graph_launch_id) counters_.kernel_ran(record.correlation, row.id);
}

void CudaIngest::write_estimates(std::int64_t before_ns) {
  while (std::optional<CudaEstimates::Estimate> found = estimates_.next(before_ns)) {
    launches_.estimate(found->launch.correlation);
    if (!found->row) {
      ++counts_.not_estimated;
      continue;
    }
    trace::set_launch(*found->row, &found->launch);
    if (in_time(static_cast<std::uint64_t>(found->row->begin_ns), static_cast<std::uint64_t>(found->row->end_ns)))
      add_kernel(*found->row, found->launch);
  }
}

void CudaIngest::add_kernel(trace::KernelRow& row, const CudaLaunch& launch) {
  CudaGemms::Call* call =
      row.graph_launch_id || launch.thread_id == 0 ? nullptr : gemms_.at(launch.thread_id, launch.begin_ns);
  row.id = rows_.next_id++;
  if (call != nullptr) row.gemm_id = call->row.id;
  if (call != nullptr) CudaGemms::ran(*call, row.id, row.end_ns - row.begin_ns);
  rows_.writer.add(row);
  ++counts_.kernels;
}

void CudaIngest::write_copy(Waiting& waiting) {
  const wire::CopyRecord& record = waiting.copy;
  trace::CopyRow row;
  fill(row, record);
  row.bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(record.bytes, INT64_MAX / 2));
  row.direction = directions_[std::min<std::size_t>(static_cast<std::size_t>(record.kind) % 7, 6)];
  row.host_memory = host_memories_[static_cast<std::size_t>(record.host_memory) % 5];
  row.device_id = device_id(record.device);
  trace::set_launch(row, waiting.found_launch());
  const bool fills = record.kind == wire::CopyKind::kMemset;
  join_graph(row, record, waiting, {}, fills ? wire::GraphNodeKind::kMemset : wire::GraphNodeKind::kCopy);
  row.id = rows_.next_id++;
  rows_.writer.add(row);
}

// What belongs to the log is taken at once; the product that the node was captured in comes behind it.
void CudaIngest::take_node(const wire::GraphNodeRecord& record, trace::Id thread_id) {
  if (record.kind == wire::GraphNodeKind::kUpdate) return take_update(record, thread_id);
  CudaGraphNodes::Node* node = nodes_.take(record.node, 0, rows_.next_id);
  if (node == nullptr) ++counts_.graph_unknown;
  if (node == nullptr || !times_.accepts(record.ts_ns) || node->announced) return;
  node->announced = true;
  node->cloned_from = node->made_from = record.cloned_from;
  node->created_ns = time(record.ts_ns);
  node->thread_id = thread_id;
  node->stack_id = stacks_.id(record.stack).value_or(0);
  node->path = ranges_.path_at(thread_id, node->created_ns);
  node->kind = record.kind;
  if (node->graph == 0) nodes_.place(*node, record.graph);
  if (record.cloned_from != 0) graphs_.of(record.graph, rows_.next_id);  // it may be an executable: its launches count
  if (node->name.id == 0) node->name = names_.gpu_kernel_name(record.name);
  if (node->name.id == 0 && record.cloned_from != 0) nodes_.inherit_name(*node);
  if (record.cloned_from != 0) return;
  Waiting waiting;
  waiting.kind = RecordKind::kGraphNode;
  waiting.node = record;
  waiting.launch.thread_id = thread_id;
  wait(waiting);
}

void CudaIngest::join_node(const wire::GraphNodeRecord& record, trace::Id thread_id) {
  const CudaGemms::Call* call = gemms_.at(thread_id, time(record.ts_ns));
  if (call == nullptr) return;
  CudaGraphNodes::Node* node = nodes_.take(record.node, 0, rows_.next_id);
  node->gemm_id = call->row.id;
  const trace::GemmRow& row = call->row;
  node->gemm_shape = 1;
  for (const std::int64_t value :
       {std::int64_t{row.m}, std::int64_t{row.n}, std::int64_t{row.k}, std::int64_t{row.batch},
        std::int64_t{row.function.id}, std::int64_t{row.type_a.id}, std::int64_t{row.epilogue.id}})
    node->gemm_shape = mixed(node->gemm_shape, static_cast<std::uint64_t>(value));
}

// An update waits like executions do: until the products of what was captured before it are known. Names belong to the
// log and are taken at once.
void CudaIngest::take_update(const wire::GraphNodeRecord& record, trace::Id thread_id) {
  if (!times_.accepts(record.ts_ns)) return;
  Waiting waiting;
  waiting.name = names_.gpu_kernel_name(record.name);
  if (record.graph == 0) {
    // Updates that wait mean the graph as it was.
    while (waiting_updates_ > 0) leave();
    return nodes_.set_kernel(record.node, waiting.name);
  }
  waiting.kind = RecordKind::kGraphNode;
  waiting.node = record;
  waiting.launch.thread_id = thread_id;
  waiting.launch.stack_id = stacks_.id(record.stack).value_or(0);
  ++waiting_updates_;
  wait(waiting);
}

void CudaIngest::apply_update(const Waiting& waiting) {
  --waiting_updates_;
  const wire::GraphNodeRecord& record = waiting.node;
  const std::int64_t at_ns = time(record.ts_ns);
  CudaGraph* graph = graphs_.of(record.graph, rows_.next_id);
  if (graph == nullptr || !graph->takes_update(at_ns)) return;
  // No program needs so much; a log that is made to may take hours.
  constexpr std::uint64_t kMostWork = 1u << 30;
  const auto source = static_cast<std::uint32_t>(record.cloned_from);
  update_work_ += 1000 + nodes_.members_of(record.graph) + (record.node == 0 ? nodes_.members_of(source) : 0);
  if (update_work_ > kMostWork) {
    ++counts_.graph_unknown;
    return;
  }
  const std::uint32_t from = graph->version_at(INT64_MAX);
  std::vector<CudaGraphNodes::Change> changes = record.node != 0
                                                    ? nodes_.set_kernel(record.graph, from, record.node, waiting.name)
                                                    : nodes_.update(record.graph, source);
  if (changes.empty()) return;
  if (!graph->version(from)->provenance) graph->version(from)->provenance = nodes_.provenance(record.graph, from, {});
  std::uint64_t provenance = nodes_.provenance(record.graph, from, changes);
  std::optional<std::uint32_t> known = graph->version_with(provenance);
  if (!known && graph->is_almost_full()) {
    changes = nodes_.forget(record.graph);
    provenance = nodes_.provenance(record.graph, from, changes);
    known = graph->version_with(provenance);
  }
  if (known) return graph->go_back(*known, at_ns);
  const std::uint32_t to = graph->version_for_update(at_ns, rows_.next_id);
  nodes_.apply(changes, record.graph, from, to, {at_ns, waiting.launch.thread_id, waiting.launch.stack_id},
               rows_.next_id);
  graph->version(to)->provenance = provenance;
}

}  // namespace llmprof::record
