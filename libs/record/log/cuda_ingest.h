#pragma once
// What one process did with GPUs, as its log says, to rows. What a device did (sections of thread 0) and what the host
// did (sections of its threads) meet here: an execution and its launch by correlation id, a launch or a graph's node
// and a matrix product by thread and time.
//
// The order of the log is nearly that of time: a launch stands before what it launched, a product behind what it
// launched, but nothing promises it. So executions and nodes wait in a queue of the newest, and are joined when they
// leave it. Everything kept is bounded: what comes too late is counted as lost.

#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "record/log/cuda_counters.h"
#include "record/log/cuda_graphs.h"
#include "record/log/cuda_parts.h"
#include "record/log/ranges.h"
#include "record/log/stacks.h"

namespace llmprof::record {

struct RunRows;

struct CudaCounts {
  std::int64_t kernels = 0, gemms = 0, graph_launches = 0;
  std::int64_t bad_times = 0, too_old = 0, unknown = 0;
  std::int64_t launch_lost = 0, graph_unknown = 0;
  std::int64_t not_estimated = 0;  // kernels of noted launches that are like no other
};

class CudaIngest {
 public:
  CudaIngest(RunRows& rows, LogNames& names, trace::Id process_id, const TimeWindow& window,
             const RangePairing& ranges);

  static bool takes(wire::RecordKind kind);
  // `thread_id`: of the thread whose section it is; 0 for the collector's own.
  void take(wire::RecordKind kind, trace::Id thread_id, std::span<const wire::Record> records);
  void set_window(const TimeWindow& window) { static_cast<TimeWindow&>(times_) = window; }
  // Numbers of definitions belong to one log.
  void next_log();
  void finish();

  const CudaCounts& counts() const { return counts_; }
  void add_losses(Ledger& ledger) const;  // of counters
  std::uint64_t lost_stacks() const { return stacks_.lost(); }
  std::int64_t last_ns() const { return last_ns_; }

 private:
  // An execution or a node on its way: what belongs to its log is resolved, what belongs to other records is not yet.
  struct Waiting {
    wire::RecordKind kind;
    union {
      wire::KernelRecord kernel;
      wire::CopyRecord copy;
      wire::GraphLaunchRecord graph_launch;
      wire::GraphNodeRecord node;
    };
    const trace::KernelRow* shape = nullptr;  // of a kernel
    CudaLaunch launch;                        // of an execution; thread_id 0: not found yet
    trace::Name name;                         // of the kernel that an update sets
    std::uint64_t arrived = 0;
    Waiting() : kind(wire::RecordKind::kNone), kernel{} {}
    const CudaLaunch* found_launch() const { return launch.thread_id != 0 ? &launch : nullptr; }
  };

  void take_one(wire::RecordKind kind, trace::Id thread_id, const wire::Record& record);
  void take_device(const wire::DeviceRecord& record);
  void take_launch(const wire::LaunchRecord& record, trace::Id thread_id);
  void take_gemm(const wire::GpuGemmRecord& record, trace::Id thread_id);
  void take_node(const wire::GraphNodeRecord& record, trace::Id thread_id);
  void take_update(const wire::GraphNodeRecord& record, trace::Id thread_id);
  void apply_update(const Waiting& waiting);
  void take_memory(const wire::DeviceMemoryRecord& record, trace::Id thread_id);
  void take_api(const wire::ApiRecord& record, trace::Id thread_id);
  void take_gap(const wire::GapRecord& record);
  void take_note(const wire::NoteRecord& record);
  void take_counter_window(const wire::CounterWindowRecord& record, trace::Id thread_id);
  void take_counter(const wire::CounterRecord& record);
  void take_stall(const wire::StallRecord& record);
  void make_room_for_counters();

  bool in_time(std::uint64_t begin_ns, std::uint64_t end_ns);
  void wait(Waiting& waiting);
  void leave();  // the oldest that waits
  void join_launch(Waiting& waiting);
  bool after_launch(const Waiting& waiting);
  std::uint32_t version_of(std::uint32_t graph, const CudaLaunch* launch, std::int64_t begin_ns) const;
  template <class Work>
  trace::GraphLaunch& graph_launch(std::uint32_t correlation, std::uint32_t graph, std::uint32_t version,
                                   const Work& work, const CudaLaunch* launch);
  template <class Row, class Record>
  void join_graph(Row& row, const Record& record, const Waiting& waiting, trace::Name name, wire::GraphNodeKind kind);
  bool is_profilers_own(const trace::KernelRow* shape) const;
  void write_kernel(Waiting& waiting);
  trace::KernelRow row_of(const wire::KernelRecord& record, const trace::KernelRow* shape);
  void write_estimates(std::int64_t before_ns = INT64_MIN);
  void add_kernel(trace::KernelRow& row, const CudaLaunch& launch);
  void write_copy(Waiting& waiting);
  void write_graph_launch(Waiting& waiting);
  void join_node(const wire::GraphNodeRecord& record, trace::Id thread_id);
  trace::Id device_id(std::uint32_t number);

  RunRows& rows_;
  LogNames& names_;
  trace::Id process_id_;
  TimeCheck times_;
  const RangePairing& ranges_;  // of the same process
  LogStacks stacks_;
  LayoutNames layouts_;
  ShapeTable<trace::KernelRow> kernel_shapes_;
  ShapeTable<trace::GemmRow> gemm_shapes_;
  CudaLaunches launches_;
  CudaEstimates estimates_;
  CudaGemms gemms_;
  CudaGraphs graphs_;
  CudaGraphNodes nodes_;
  trace::GraphLaunches graph_launches_{1u << 12};
  CudaMemory memory_;
  CudaCounters counters_;
  CudaStalls stalls_;
  std::unordered_map<std::uint32_t, trace::Id> devices_;  // by number in the process
  std::deque<Waiting> waiting_;
  std::uint64_t arrived_ = 0;
  std::size_t waiting_updates_ = 0;
  std::uint64_t update_work_ = 0;                                           // nodes that updates of graphs looked at
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> said_;  // notes and gaps: every log says them again
  CudaCounts counts_;
  std::int64_t last_ns_ = 0;
  trace::Name directions_[7], host_memories_[5];
};

}  // namespace llmprof::record
