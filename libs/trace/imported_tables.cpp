// The fact tables that only imported runs have. One line per column: member, name, unit, meaning.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<SourceRow>() {
  using R = SourceRow;
  static const Table table{
      "source",
      TableKind::kFact,
      "a file of another tool that the run was made from",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the file in this run."),
          column(&R::file, "file", "", "Name of the file, without its folder."),
          column(&R::format, "format", "", "Importer that read it."),
          column(&R::tool, "tool", "", "What wrote it, with its version; NULL if it does not say."),
          column(&R::bytes, "bytes", "bytes", "Its size as stored."),
          column(&R::clock, "clock", "", "Its clock, in words."),
          column(&R::wall_of_zero_ns, "wall_of_zero_ns", "ns",
                 "Wall time (since 1970, UTC) of the file's time 0; NULL if it does not say."),
          column(&R::shift_ns, "shift_ns", "ns", "What was added to the file's times; NULL if it has none."),
      }};
  return table;
}

template <>
const Table& table_of<CommunicatorRow>() {
  using R = CommunicatorRow;
  static const Table table{
      "communicator",
      TableKind::kFact,
      "a group of ranks that exchange data, as one of them knows it",
      "process_id",
      "size",
      sizeof(R),
      {
          column(&R::process_id, "process_id", "", "The member that tells of it."),
          column(&R::name, "name", "", "What the framework or library calls it; unique in a process."),
          column(&R::description, "description", "", "What it is for, in the framework's words; NULL if not said."),
          column(&R::size, "size", "", "Its ranks."),
          column(&R::ranks, "ranks", "", "Their numbers in the job, as 0 1 2 3; NULL if not all are known."),
      }};
  return table;
}

template <>
const Table& table_of<AttentionRow>() {
  using R = AttentionRow;
  static const Table table{
      "attention",
      TableKind::kFact,
      "one attention operator as the program asked for it",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the call in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When the call began."),
          column(&R::end_ns, "end_ns", "ns", "When the call returned."),
          column(&R::thread_id, "thread_id", "", "Thread that called."),
          column(&R::op_id, "op_id", "", "The framework operator it is; NULL if none."),
          column(&R::kernel_id, "kernel_id", "",
                 "The kernel that executed it, the longest if there were several; NULL if none was seen."),
          column(&R::function, "function", "", "Name of the operator."),
          column(&R::batch, "batch", "", "Sequences."),
          column(&R::heads, "heads", "", "Heads of the queries."),
          column(&R::kv_heads, "kv_heads", "", "Heads of the keys and values."),
          column(&R::queries, "queries", "tokens", "Queries of each sequence."),
          column(&R::keys, "keys", "tokens", "Keys of each sequence."),
          column(&R::head_size, "head_size", "", "Length of a query and of a key."),
          column(&R::value_size, "value_size", "", "Length of a value; NULL if it is that of a key."),
          column(&R::causal, "causal", "", "Whether a query sees only keys up to its own place; NULL if unknown."),
          column(&R::type, "type", "", "Element type."),
      }};
  return table;
}

template <>
const Table& table_of<SummaryRow>() {
  using R = SummaryRow;
  static const Table table{
      "summary",
      TableKind::kFact,
      "totals of one operator, kernel or layer, from a file that holds no single executions",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the row in this run."),
          column(&R::parent_id, "parent_id", "", "The row whose totals it is a part of; NULL if none is known."),
          column(&R::name, "name", "", "Name, shortened where the tool shortened it."),
          column(&R::kind, "kind", "", "operator, kernel, range, layer, collective, or total: what all rows come to."),
          column(&R::calls, "calls", "", "Executions; NULL if unknown."),
          column(&R::self_cpu_ns, "self_cpu_ns", "ns", "Host time in it and in nothing that it called."),
          column(&R::cpu_ns, "cpu_ns", "ns", "Host time from its begin to its end."),
          column(&R::self_device_ns, "self_device_ns", "ns", "Device time of the kernels it launched itself."),
          column(&R::device_ns, "device_ns", "ns", "Device time of all kernels launched in it."),
          column(&R::cpu_bytes, "cpu_bytes", "bytes", "Host memory it allocated, less what it freed."),
          column(&R::device_bytes, "device_bytes", "bytes", "Device memory it allocated, less what it freed."),
          column(&R::flops, "flops", "FLOP", "FLOPs as the tool counted them."),
          column(&R::moved_bytes, "moved_bytes", "bytes", "Bytes moved as the tool counted them."),
          column(&R::shapes, "shapes", "", "Shapes of its inputs as the tool wrote them."),
      }};
  return table;
}

template <>
const Table& table_of<MetricRow>() {
  using R = MetricRow;
  static const Table table{"metric",
                           TableKind::kFact,
                           "one value of a metric that a server exports",
                           "",
                           "id",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Its place among the values of the run."),
                               column(&R::ts_ns, "ts_ns", "ns", "When it was exported; NULL if that is not known."),
                               column(&R::name, "name", "", "Name of the metric."),
                               column(&R::labels, "labels", "", "Its labels as the exporter wrote them; NULL if none."),
                               column(&R::value, "value", "by row", "The value."),
                               column(&R::kind, "kind", "", "counter, gauge, histogram, summary or untyped."),
                               column(&R::unit, "unit", "", "Unit, from the end of the name; NULL if unknown."),
                               column(&R::device_id, "device_id", "", "The device it is about; NULL if none."),
                           }};
  return table;
}

template <>
const Table& table_of<MemorySegmentRow>() {
  using R = MemorySegmentRow;
  static const Table table{
      "memory_segment",
      TableKind::kFact,
      "memory that an allocator took from a device at once, as a snapshot shows it",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the segment in this run."),
          column(&R::ts_ns, "ts_ns", "ns", "When the snapshot was made; NULL if unknown."),
          column(&R::device_id, "device_id", "", "The device."),
          column(&R::address, "address", "", "Its first byte."),
          column(&R::bytes, "bytes", "bytes", "Its size."),
          column(&R::allocated_bytes, "allocated_bytes", "bytes", "Of that, given to the program."),
          column(&R::active_bytes, "active_bytes", "bytes",
                 "Of that, given to the program or waiting for a stream before it can be used again."),
          column(&R::requested_bytes, "requested_bytes", "bytes", "What the program had asked for; NULL if unknown."),
          column(&R::stream, "stream", "", "Stream it belongs to."),
          column(&R::kind, "kind", "", "small or large: the allocator's pool."),
          column(&R::expandable, "expandable", "", "Whether the allocator can make it larger; NULL if unknown."),
          column(&R::stack_id, "stack_id", "", "Call stack that made the allocator take it; NULL if not recorded."),
      }};
  return table;
}

template <>
const Table& table_of<MemoryBlockRow>() {
  using R = MemoryBlockRow;
  static const Table table{
      "memory_block",
      TableKind::kFact,
      "a part of a memory segment",
      "",
      "memory_segment_id",
      sizeof(R),
      {
          column(&R::memory_segment_id, "memory_segment_id", "", "The segment."),
          column(&R::address, "address", "", "Its first byte."),
          column(&R::bytes, "bytes", "bytes", "Its size."),
          column(&R::requested_bytes, "requested_bytes", "bytes", "What the program had asked for; NULL if unknown."),
          column(&R::state, "state", "", "active_allocated, active_awaiting_free or inactive, as the allocator says."),
          column(&R::stack_id, "stack_id", "", "Call stack of the allocation; NULL if not recorded."),
      }};
  return table;
}

}  // namespace llmprof::trace
