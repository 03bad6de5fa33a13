// The fact tables of devices and of what they did. One line per column: member, name, unit, meaning.
#include "trace/rows.h"

namespace llmprof::trace {

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
          column(&R::uuid, "uuid", "",
                 "UUID of a GPU, as the driver writes it (GPU-…); NULL if unknown, and for a CPU."),
          column(&R::ordinal, "ordinal", "",
                 "Number of the device on its host, as the tool that recorded counts; NULL if unknown."),
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
          column(&R::type, "type", "",
                 "Element type of the arithmetic, kind of memory access (read), or what takes that long."),
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
      "one execution on a device; a BLAS call on a CPU is a kernel of device cpu",
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
          column(&R::thread_id, "thread_id", "", "Thread that launched it; 0 if the launch was not seen."),
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
          column(&R::gemm_id, "gemm_id", "",
                 "The BLAS call that launched it or, in a graph, that its node was captured in; NULL if none, and on a "
                 "CPU (gemm.kernel_id pairs them there)."),
          column(&R::stack_id, "stack_id", "",
                 "Call stack of its launch or, in a graph, of its node's capture; NULL if not recorded."),
          column(&R::op_id, "op_id", "", "The innermost framework operator that launched it; NULL if unknown."),
          column(&R::estimated, "estimated", "",
                 "true: only its launch was noted, its times are estimated from the same launch at other times, whose "
                 "size is given; NULL: it was measured."),
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
          column(&R::graph, "graph", "", "Number of the executable graph in this run; unique over processes."),
          column(&R::device_id, "device_id", "", "The device that executed it."),
          column(&R::stream, "stream", "", "Stream it was queued on."),
          column(&R::thread_id, "thread_id", "", "Thread that launched it; 0 if the launch was not seen."),
          column(&R::launch_begin_ns, "launch_begin_ns", "ns",
                 "When the launching call began on the host; NULL if unknown."),
          column(&R::launch_end_ns, "launch_end_ns", "ns", "When the launching call returned; NULL if unknown."),
          column(&R::nodes_recorded, "nodes_recorded", "",
                 "Whether its nodes were measured one by one: kernel and copy have their rows."),
          column(&R::stack_id, "stack_id", "", "Call stack of the launch; NULL if not recorded."),
      }};
  return table;
}

template <>
const Table& table_of<GraphNodeRow>() {
  using R = GraphNodeRow;
  static const Table table{
      "graph_node",
      TableKind::kFact,
      "one node of a graph that was launched, or of one that was captured, with what was known at capture",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the node in this run."),
          column(&R::graph, "graph", "", "Number of the graph it is in, in this run; unique over processes."),
          column(&R::node, "node", "", "Number of the node, as CUDA counts them in its process."),
          column(&R::captured_node, "captured_node", "",
                 "Number of the node that was captured, of which this one is a clone; NULL if it is no clone or that "
                 "is unknown."),
          column(&R::name, "name", "", "Name of the kernel; NULL if it is none, or was never seen."),
          column(&R::stack_id, "stack_id", "", "Call stack at capture; NULL if not recorded."),
          column(&R::gemm_id, "gemm_id", "", "The BLAS call it was captured in; NULL if none."),
          column(&R::kind, "kind", "",
                 "kernel, memcpy, memset, host, graph, empty, event, memory, conditional or unknown."),
          column(&R::captured_ns, "captured_ns", "ns",
                 "When it (or the node it is a clone of) was captured; NULL if unknown."),
          column(&R::thread_id, "thread_id", "", "Thread that captured it; NULL if unknown."),
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
          column(&R::host_memory, "host_memory", "",
                 "pageable, pinned or managed; NULL if unknown, or when no host memory takes part."),
          column(&R::device_id, "device_id", "", "The device that did it."),
          column(&R::stream, "stream", "", "Stream it was queued on."),
          column(&R::thread_id, "thread_id", "", "Thread that asked for it; 0 if that was not seen."),
          column(&R::launch_begin_ns, "launch_begin_ns", "ns",
                 "When the launching call began on the host; NULL if unknown."),
          column(&R::launch_end_ns, "launch_end_ns", "ns", "When the launching call returned; NULL if unknown."),
          column(&R::graph_launch_id, "graph_launch_id", "",
                 "The graph launch it was part of; NULL if launched by itself."),
          column(&R::graph_node_id, "graph_node_id", "", "The graph node it executed; NULL if launched by itself."),
          column(&R::stack_id, "stack_id", "",
                 "Call stack of its launch or, in a graph, of its node's capture; NULL if not recorded."),
          column(&R::op_id, "op_id", "", "The framework operator that launched it; NULL if unknown."),
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
                               column(&R::thread_id, "thread_id", "", "Thread that called it; 0 if unknown."),
                               column(&R::correlation, "correlation", "",
                                      "Number that pairs the call with the work it launched, within a process."),
                               column(&R::stream, "stream", "", "Stream it concerns; NULL if none or unknown."),
                               column(&R::waits, "waits", "", "Whether the host waits for the device in it."),
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
          column(&R::stack_id, "stack_id", "", "Call stack of the allocation; NULL if not recorded."),
          column(&R::kind, "kind", "",
                 "device, pinned, managed, pool or mapped; of a memory snapshot: tensor, or segment (held by the "
                 "allocator)."),
          column(&R::process_id, "process_id", "", "The process image that allocated it."),
          column(&R::thread_id, "thread_id", "", "Thread that allocated it; NULL if unknown."),
      }};
  return table;
}

template <>
const Table& table_of<GapRow>() {
  using R = GapRow;
  static const Table table{"gap",
                           TableKind::kFact,
                           "a time in which the GPU activity of a process was not recorded",
                           "",
                           "begin_ns",
                           sizeof(R),
                           {
                               column(&R::begin_ns, "begin_ns", "ns", "Since when."),
                               column(&R::end_ns, "end_ns", "ns", "Until when."),
                               column(&R::process_id, "process_id", "", "The process image."),
                               column(&R::why, "why", "", "What the reason was."),
                           }};
  return table;
}

}  // namespace llmprof::trace
