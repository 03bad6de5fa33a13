// Tables of the host side: what processes used, and what the collector itself cost them.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<ProcessUsageRow>() {
  using R = ProcessUsageRow;
  static const Table table{
      "process_usage",
      TableKind::kFact,
      "what one process had used by one moment, read from outside",
      "process_id",
      "ts_ns",
      sizeof(R),
      {
          column(&R::ts_ns, "ts_ns", "ns", "When it was read."),
          column(&R::process_id, "process_id", "", "The process image."),
          column(&R::rss_bytes, "rss_bytes", "bytes", "Memory resident at this moment."),
          column(&R::threads, "threads", "", "Threads at this moment."),
          column(&R::user_ns, "user_ns", "ns", "CPU time in user mode since the process began, all threads."),
          column(&R::system_ns, "system_ns", "ns", "CPU time in the kernel since the process began, all threads."),
          column(&R::minor_faults, "minor_faults", "", "Page faults without I/O since the process began."),
          column(&R::major_faults, "major_faults", "", "Page faults that waited for I/O since the process began."),
          column(&R::read_bytes, "read_bytes", "bytes", "Read from storage since the process began; NULL if not read."),
          column(&R::written_bytes, "written_bytes", "bytes",
                 "Written to storage since the process began; NULL if not read."),
          column(&R::voluntary_switches, "voluntary_switches", "",
                 "Times its threads waited since the process began; NULL if not read."),
          column(&R::involuntary_switches, "involuntary_switches", "",
                 "Times its threads were taken off a CPU since the process began; NULL if not read."),
          column(&R::peak_rss_bytes, "peak_rss_bytes", "bytes",
                 "Highest resident memory so far as the kernel keeps it; NULL if not read."),
      }};
  return table;
}

template <>
const Table& table_of<CollectorCostRow>() {
  using R = CollectorCostRow;
  static const Table table{
      "collector_cost",
      TableKind::kFact,
      "what the collector had cost one process by one moment",
      "process_id",
      "ts_ns",
      sizeof(R),
      {
          column(&R::ts_ns, "ts_ns", "ns", "When it was noted."),
          column(&R::process_id, "process_id", "", "The process image."),
          column(&R::range_events, "range_events", "", "Range events so far: pushes, pops, starts, ends, marks."),
          column(&R::gemm_events, "gemm_events", "", "BLAS calls so far."),
          column(&R::log_bytes, "log_bytes", "bytes", "Written so far."),
          column(&R::writer_cpu_ns, "writer_cpu_ns", "ns", "CPU time of the collector's thread so far."),
          column(
              &R::range_event_ns, "range_event_ns", "ns",
              "Time one range event takes the thread that makes it, measured on this machine; NULL if not measured."),
          column(&R::gemm_event_ns, "gemm_event_ns", "ns",
                 "Time the hook adds to one BLAS call, measured on this machine; NULL if not measured."),
          column(&R::gpu_events, "gpu_events", "",
                 "Calls of CUDA and its libraries that left a record so far; NULL if it was not counted."),
      }};
  return table;
}

}  // namespace llmprof::trace
