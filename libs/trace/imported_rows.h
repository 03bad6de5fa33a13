#pragma once
// Facts that only other tools' files bring (libs/importers). As for all facts, a member is a column and is described in
// imported_tables.cpp.

#include "trace/row_types.h"

namespace llmprof::trace {

// A file the run was made from.
struct SourceRow {
  Id id = 0;
  Name file;
  Name format;
  Name tool;
  std::int64_t bytes = 0;
  Name clock;
  OptionalInt wall_of_zero_ns;
  OptionalInt shift_ns;
};

// A group of ranks that exchange data, as one of them knows it.
struct CommunicatorRow {
  Id process_id = 0;
  Name name;
  Name description;
  std::int64_t size = 0;
  Name ranks;
};

// One attention operator as the program asked for it.
struct AttentionRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Id thread_id = 0;
  OptionalId op_id;
  OptionalId kernel_id;
  Name function;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_size = 0;
  OptionalInt value_size;
  std::optional<bool> causal;
  Name type;
};

// Totals of one operator, kernel or layer, where a file holds no single executions.
struct SummaryRow {
  Id id = 0;
  OptionalId parent_id;
  Name name;
  Name kind;
  OptionalInt calls;
  OptionalDouble self_cpu_ns, cpu_ns, self_device_ns, device_ns;
  OptionalDouble cpu_bytes, device_bytes;
  OptionalDouble flops, moved_bytes;
  Name shapes;
};

// One value of a metric that a server exports.
struct MetricRow {
  Id id = 0;
  OptionalInt ts_ns;
  Name name;
  Name labels;
  double value = 0;
  Name kind;
  Name unit;
  OptionalId device_id;
};

// Memory that an allocator took from a device at once, as a snapshot shows it.
struct MemorySegmentRow {
  Id id = 0;
  OptionalInt ts_ns;
  Id device_id = 0;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t active_bytes = 0;
  OptionalInt requested_bytes;
  OptionalInt stream;
  Name kind;
  std::optional<bool> expandable;
  OptionalId stack_id;
};

// A part of such a segment.
struct MemoryBlockRow {
  Id memory_segment_id = 0;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  OptionalInt requested_bytes;
  Name state;
  OptionalId stack_id;
};

template <>
const Table& table_of<SourceRow>();
template <>
const Table& table_of<CommunicatorRow>();
template <>
const Table& table_of<AttentionRow>();
template <>
const Table& table_of<SummaryRow>();
template <>
const Table& table_of<MetricRow>();
template <>
const Table& table_of<MemorySegmentRow>();
template <>
const Table& table_of<MemoryBlockRow>();

}  // namespace llmprof::trace
