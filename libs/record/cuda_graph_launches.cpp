#include "record/cuda_graph_launches.h"

#include <algorithm>

#include "trace/run_writer.h"

namespace llmprof::record {

CudaGraphLaunches::Open& CudaGraphLaunches::find(const Execution& execution, const CudaLaunch* launch,
                                                 trace::Id& next_id) {
  const auto found = open_.find(execution.correlation);
  if (found != open_.end()) return found->second;
  if (open_.size() == kKept) write_oldest();
  order_.push_back(execution.correlation);
  Open& open = open_[execution.correlation];
  trace::GraphLaunchRow& row = open.row;
  row.id = next_id++;
  row.begin_ns = execution.begin_ns;
  row.end_ns = execution.end_ns;
  row.graph = execution.graph;
  row.device_id = execution.device_id;
  row.stream = execution.stream;
  if (launch != nullptr) {
    row.thread_id = launch->thread_id;
    row.launch_begin_ns = launch->begin_ns;
    if (launch->end_ns != 0) row.launch_end_ns = launch->end_ns;
    if (launch->stack_id != 0) row.stack_id = launch->stack_id;
  }
  return open;
}

trace::Id CudaGraphLaunches::whole(const Execution& execution, const CudaLaunch* launch, trace::Id& next_id) {
  Open& open = find(execution, launch, next_id);
  open.row.begin_ns = execution.begin_ns;
  open.row.end_ns = execution.end_ns;
  open.whole = true;
  return open.row.id;
}

trace::Id CudaGraphLaunches::node(const Execution& execution, const CudaLaunch* launch, trace::Id& next_id) {
  Open& open = find(execution, launch, next_id);
  open.row.nodes_recorded = true;
  if (!open.whole) {
    open.row.begin_ns = std::min(open.row.begin_ns, execution.begin_ns);
    open.row.end_ns = std::max(open.row.end_ns, execution.end_ns);
  }
  return open.row.id;
}

void CudaGraphLaunches::write_oldest() {
  const auto found = open_.find(order_.front());
  writer_.add(found->second.row);
  ++count_;
  open_.erase(found);
  order_.pop_front();
}

void CudaGraphLaunches::write_all() {
  while (!order_.empty()) write_oldest();
}

}  // namespace llmprof::record
