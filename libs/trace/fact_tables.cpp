// The fact tables: what was observed. One line per column: member, name, unit, meaning.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<ProcessRow>() {
  using R = ProcessRow;
  static const Table table{
      "process",
      TableKind::kFact,
      "a process image that was seen, from inside or outside; a process that called exec has one row per image",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the process image in this run."),
          column(&R::pid, "pid", "", "Process id the system gave it."),
          column(&R::parent_pid, "parent_pid", "", "Process id of its parent."),
          column(&R::host, "host", "", "Host name of the machine it ran on."),
          column(&R::rank, "rank", "", "Its rank in a distributed job, from RANK, LOCAL_RANK, SLURM_PROCID or alike."),
          column(&R::executable, "executable", "", "Path of the program."),
          column(&R::arguments, "arguments", "", "Command line with secrets redacted."),
          column(&R::begin_ns, "begin_ns", "ns", "When the image was first seen."),
          column(&R::end_ns, "end_ns", "ns", "When the image ended; NULL if that was not seen."),
          column(&R::exit_status, "exit_status", "",
                 "Exit status, or 128 + the signal that ended it; NULL if not seen."),
          column(&R::injected, "injected", "", "Whether llmprof saw it from inside."),
          column(&R::log, "log", "",
                 "File name of the capture log it came from; NULL if it was seen from outside only."),
      }};
  return table;
}

template <>
const Table& table_of<ThreadRow>() {
  using R = ThreadRow;
  static const Table table{"thread",
                           TableKind::kFact,
                           "a thread with at least one event or sample",
                           "",
                           "begin_ns",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the thread in this run."),
                               column(&R::process_id, "process_id", "", "The process image it belongs to."),
                               column(&R::tid, "tid", "", "Thread id the system gave it."),
                               column(&R::name, "name", "", "Name the program gave it."),
                               column(&R::begin_ns, "begin_ns", "ns", "Its first event."),
                               column(&R::end_ns, "end_ns", "ns", "When it ended; NULL if that was not seen."),
                           }};
  return table;
}

template <>
const Table& table_of<DeviceRow>() {
  using R = DeviceRow;
  static const Table table{
      "device",
      TableKind::kFact,
      "a device that executes kernels: a GPU, or the CPU of a host",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the device in this run."),
          column(&R::kind, "kind", "", "cpu or gpu."),
          column(&R::name, "name", "", "Product name."),
          column(&R::chip, "chip", "", "Chip, or instruction set level of a CPU."),
          column(&R::units, "units", "", "Streaming multiprocessors, or cores the program may use."),
          column(&R::memory_bytes, "memory_bytes", "bytes", "Size of its memory."),
          column(&R::cache_bytes, "cache_bytes", "bytes", "Size of its last-level cache."),
          column(&R::clock_mhz, "clock_mhz", "MHz", "Highest clock the system reports."),
          column(&R::driver, "driver", "", "Driver version; NULL for a CPU."),
      }};
  return table;
}

template <>
const Table& table_of<PeakRow>() {
  using R = PeakRow;
  static const Table table{
      "peak",
      TableKind::kFact,
      "a rate that a device can reach at most, and how it was obtained",
      "",
      "device_id",
      sizeof(R),
      {
          column(&R::device_id, "device_id", "", "The device."),
          column(&R::quantity, "quantity", "", "flops, bandwidth or latency."),
          column(&R::type, "type", "", "Element type of the arithmetic, kind of memory access (read), or what takes that long."),
          column(&R::value, "value", "by row", "The rate or time, in the unit of the column unit."),
          column(&R::unit, "unit", "", "FLOP/s, OP/s, B/s or s."),
          column(&R::source, "source", "", "measured (on this machine) or spec (from the data sheet)."),
          column(&R::method, "method", "", "How it was measured, or where the figure is from."),
      }};
  return table;
}

template <>
const Table& table_of<KernelRow>() {
  using R = KernelRow;
  static const Table table{
      "kernel",
      TableKind::kFact,
      "one measured execution on a device; a BLAS call on a CPU is a kernel of device cpu",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the execution in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When the device began it."),
          column(&R::end_ns, "end_ns", "ns", "When the device ended it."),
          column(&R::name, "name", "", "Name of the kernel or of the BLAS function."),
          column(&R::device_id, "device_id", "", "The device that executed it."),
          column(&R::stream, "stream", "", "Stream it was queued on; NULL on a CPU."),
          column(&R::thread_id, "thread_id", "", "Thread that launched it."),
          column(&R::launch_begin_ns, "launch_begin_ns", "ns",
                 "When the launching call began on the host; NULL if unknown."),
          column(&R::launch_end_ns, "launch_end_ns", "ns", "When the launching call returned; NULL if unknown."),
          column(&R::grid_x, "grid_x", "", "Blocks in x; NULL on a CPU."),
          column(&R::grid_y, "grid_y", "", "Blocks in y; NULL on a CPU."),
          column(&R::grid_z, "grid_z", "", "Blocks in z; NULL on a CPU."),
          column(&R::block_x, "block_x", "", "Threads of a block in x; NULL on a CPU."),
          column(&R::block_y, "block_y", "", "Threads of a block in y; NULL on a CPU."),
          column(&R::block_z, "block_z", "", "Threads of a block in z; NULL on a CPU."),
          column(&R::registers, "registers", "", "Registers per thread; NULL on a CPU."),
          column(&R::shared_bytes, "shared_bytes", "bytes",
                 "Shared memory per block, static and dynamic; NULL on a CPU."),
          column(&R::graph_launch_id, "graph_launch_id", "",
                 "The graph launch it was part of; NULL if launched by itself."),
          column(&R::graph_node_id, "graph_node_id", "", "The graph node it executed; NULL if launched by itself."),
      }};
  return table;
}

template <>
const Table& table_of<GraphLaunchRow>() {
  using R = GraphLaunchRow;
  static const Table table{
      "graph_launch",
      TableKind::kFact,
      "one launch of an executable graph",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the launch in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When the device began its first node."),
          column(&R::end_ns, "end_ns", "ns", "When the device ended its last node."),
          column(&R::graph, "graph", "", "Number of the executable graph in its process."),
          column(&R::device_id, "device_id", "", "The device that executed it."),
          column(&R::stream, "stream", "", "Stream it was queued on."),
          column(&R::thread_id, "thread_id", "", "Thread that launched it."),
          column(&R::launch_begin_ns, "launch_begin_ns", "ns", "When the launching call began on the host."),
          column(&R::launch_end_ns, "launch_end_ns", "ns", "When the launching call returned."),
      }};
  return table;
}

template <>
const Table& table_of<GraphNodeRow>() {
  using R = GraphNodeRow;
  static const Table table{"graph_node",
                           TableKind::kFact,
                           "one node of an executable graph, with what was known when it was captured",
                           "",
                           "id",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the node in this run."),
                               column(&R::graph, "graph", "", "Number of the executable graph in its process."),
                               column(&R::node, "node", "", "Number of the node in the executable graph."),
                               column(&R::captured_node, "captured_node", "",
                                      "Number of the node it was cloned from; NULL if it was not captured."),
                               column(&R::name, "name", "", "Name of the kernel, or kind of the node."),
                               column(&R::range_path, "range_path", "",
                                      "Names of the ranges open at capture, outermost first, joined by '/'."),
                               column(&R::stack_id, "stack_id", "", "Call stack at capture."),
                               column(&R::gemm_id, "gemm_id", "", "The BLAS call that created it."),
                           }};
  return table;
}

template <>
const Table& table_of<CopyRow>() {
  using R = CopyRow;
  static const Table table{
      "copy",
      TableKind::kFact,
      "one memory copy or fill",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the copy in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it began."),
          column(&R::end_ns, "end_ns", "ns", "When it ended."),
          column(&R::direction, "direction", "",
                 "host_to_device, device_to_host, device_to_device, peer, host_to_host or fill."),
          column(&R::bytes, "bytes", "bytes", "Bytes copied or filled."),
          column(&R::host_memory, "host_memory", "", "pageable or pinned; NULL when no host memory takes part."),
          column(&R::device_id, "device_id", "", "The device that did it."),
          column(&R::stream, "stream", "", "Stream it was queued on."),
          column(&R::thread_id, "thread_id", "", "Thread that asked for it."),
          column(&R::launch_begin_ns, "launch_begin_ns", "ns", "When the launching call began on the host."),
          column(&R::launch_end_ns, "launch_end_ns", "ns", "When the launching call returned."),
      }};
  return table;
}

template <>
const Table& table_of<ApiRow>() {
  using R = ApiRow;
  static const Table table{"api",
                           TableKind::kFact,
                           "one call of a device's host API",
                           "thread_id",
                           "begin_ns",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the call in this run."),
                               column(&R::begin_ns, "begin_ns", "ns", "When the call began."),
                               column(&R::end_ns, "end_ns", "ns", "When it returned."),
                               column(&R::name, "name", "", "Name of the function."),
                               column(&R::thread_id, "thread_id", "", "Thread that called it."),
                               column(&R::correlation, "correlation", "",
                                      "Number that pairs the call with the work it launched, within a process."),
                           }};
  return table;
}

template <>
const Table& table_of<OpRow>() {
  using R = OpRow;
  static const Table table{
      "op",
      TableKind::kFact,
      "one framework operator executed on the host",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the execution in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it began."),
          column(&R::end_ns, "end_ns", "ns", "When it ended."),
          column(&R::name, "name", "", "Name of the operator."),
          column(&R::thread_id, "thread_id", "", "Thread that ran it."),
          column(&R::shapes, "shapes", "", "Shapes of its inputs as the framework wrote them."),
          column(&R::types, "types", "", "Element types of its inputs as the framework wrote them."),
          column(&R::correlation, "correlation", "", "Number that pairs it with API calls, within a process."),
      }};
  return table;
}

template <>
const Table& table_of<RangeRow>() {
  using R = RangeRow;
  static const Table table{
      "range",
      TableKind::kFact,
      "one range or mark that the program or its framework annotated",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the range in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it was opened."),
          column(&R::end_ns, "end_ns", "ns", "When it was closed; equal to begin_ns for a mark."),
          column(&R::name, "name", "", "Text the program gave it."),
          column(&R::kind, "kind", "", "push_pop (nested on its thread), start_end (may cross threads) or mark."),
          column(&R::process_id, "process_id", "", "The process image it belongs to."),
          column(&R::thread_id, "thread_id", "", "Thread that opened it."),
          column(&R::parent_id, "parent_id", "",
                 "The innermost push_pop range that encloses it on its thread; NULL if none."),
          column(&R::depth, "depth", "", "Number of push_pop ranges that enclose it on its thread."),
          column(&R::domain, "domain", "", "NVTX domain; NULL for the default domain."),
          column(&R::category, "category", "", "NVTX category; in domain llmprof: stage, step or module."),
          column(&R::payload, "payload", "",
                 "Integer payload; in domain llmprof: batch + tokens * 2^16 + context * 2^40."),
          column(&R::payload_double, "payload_double", "", "Floating-point payload."),
          column(&R::closed, "closed", "",
                 "False if its end is not certain: the program ended first (end_ns is then its last event), or records "
                 "were lost inside."),
          column(&R::source, "source", "", "Where it came from: nvtx, or an importer's name."),
      }};
  return table;
}

template <>
const Table& table_of<GemmRow>() {
  using R = GemmRow;
  static const Table table{
      "gemm",
      TableKind::kFact,
      "one BLAS matrix product C = op(A) op(B) as the program asked for it",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the call in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When the call began."),
          column(&R::end_ns, "end_ns", "ns", "When the call returned."),
          column(&R::kernel_id, "kernel_id", "", "The kernel that executed it; NULL if unknown or more than one."),
          column(&R::thread_id, "thread_id", "", "Thread that called."),
          column(&R::library, "library", "", "Library that did the work."),
          column(&R::function, "function", "", "Function that was called."),
          column(&R::m, "m", "", "Rows of C, as the caller passed it."),
          column(&R::n, "n", "", "Columns of C, as the caller passed it; 1 for a matrix-vector product."),
          column(&R::k, "k", "", "Length of the inner products."),
          column(&R::batch, "batch", "", "Products done by the one call."),
          column(&R::type_a, "type_a", "", "Element type of A."),
          column(&R::type_b, "type_b", "", "Element type of B."),
          column(&R::type_c, "type_c", "", "Element type of C."),
          column(&R::layout, "layout", "", "row or column: storage order the caller used."),
          column(&R::transpose_a, "transpose_a", "", "n, t or c: op applied to A."),
          column(&R::transpose_b, "transpose_b", "", "n, t or c: op applied to B."),
          column(&R::epilogue, "epilogue", "", "Work fused behind the product; NULL if none or unknown."),
          column(&R::algorithm, "algorithm", "", "Algorithm the library chose; NULL if unknown."),
      }};
  return table;
}

template <>
const Table& table_of<AllocationRow>() {
  using R = AllocationRow;
  static const Table table{
      "allocation",
      TableKind::kFact,
      "one allocation of device or host memory",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the allocation in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it was allocated."),
          column(&R::end_ns, "end_ns", "ns", "When it was freed; NULL if it never was."),
          column(&R::bytes, "bytes", "bytes", "Size of the allocation."),
          column(&R::address, "address", "", "Its address."),
          column(&R::device_id, "device_id", "", "The device whose memory it is; NULL for host memory."),
          column(&R::range_id, "range_id", "", "The innermost range open when it was allocated."),
          column(&R::stack_id, "stack_id", "", "Call stack of the allocation."),
      }};
  return table;
}

template <>
const Table& table_of<SampleRow>() {
  using R = SampleRow;
  static const Table table{"sample",
                           TableKind::kFact,
                           "one sample of a thread's call stack",
                           "thread_id",
                           "ts_ns",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the sample in this run."),
                               column(&R::ts_ns, "ts_ns", "ns", "When it was taken."),
                               column(&R::thread_id, "thread_id", "", "The sampled thread."),
                               column(&R::stack_id, "stack_id", "", "Its call stack; NULL if it could not be read."),
                               column(&R::truncated, "truncated", "", "Whether the outer end of the stack is missing."),
                               column(&R::weight_ns, "weight_ns", "ns", "CPU time the sample stands for."),
                           }};
  return table;
}

template <>
const Table& table_of<StackRow>() {
  using R = StackRow;
  static const Table table{"stack",
                           TableKind::kFact,
                           "one frame of one distinct call stack",
                           "",
                           "stack_id",
                           sizeof(R),
                           {
                               column(&R::stack_id, "stack_id", "", "Number of the call stack in this run."),
                               column(&R::depth, "depth", "", "Place in the stack; 0 is the innermost frame."),
                               column(&R::frame_id, "frame_id", "", "The frame at that place."),
                           }};
  return table;
}

template <>
const Table& table_of<FrameRow>() {
  using R = FrameRow;
  static const Table table{"frame",
                           TableKind::kFact,
                           "one distinct place in a program that appears in call stacks",
                           "",
                           "id",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the frame in this run."),
                               column(&R::kind, "kind", "", "python, native, kernel or unknown."),
                               column(&R::function, "function", "", "Function name."),
                               column(&R::file, "file", "", "Source file, or library when the source is unknown."),
                               column(&R::line, "line", "", "Line in the source file."),
                           }};
  return table;
}

}  // namespace llmprof::trace
