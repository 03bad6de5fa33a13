#pragma once
// One struct per table. A member is a column; schema.cpp gives each its unit and meaning. Adding a member and its line
// there is a compatible change; renaming or removing one raises kRunFormatVersion (trace/run_info.h).
// Times are nanoseconds of CLOCK_MONOTONIC_RAW of the recording host; ids are unique in the run.

#include "trace/bench_rows.h"
#include "trace/derived_rows.h"
#include "trace/imported_rows.h"
#include "trace/row_types.h"

namespace llmprof::trace {

struct ProcessRow {
  Id id = 0;
  std::int64_t pid = 0;
  OptionalInt parent_pid;
  Name host;
  OptionalInt rank;
  OptionalInt world;
  Name variables;
  Name executable;
  Name arguments;
  std::int64_t begin_ns = 0;
  OptionalInt end_ns;
  OptionalInt exit_status;
  bool injected = false;
  Name log;
};

struct ThreadRow {
  Id id = 0;
  Id process_id = 0;
  std::int64_t tid = 0;
  Name name;
  std::int64_t begin_ns = 0;
  OptionalInt end_ns;
};

struct DeviceRow {
  Id id = 0;
  Name kind;
  Name name;
  Name chip;
  std::int64_t units = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;
  OptionalDouble clock_mhz;
  Name driver;
  Name uuid;
  OptionalInt ordinal;
};

struct PeakRow {
  Id device_id = 0;
  Name quantity;
  Name type;
  double value = 0;
  Name unit;
  Name source;
  Name method;
};

struct KernelRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Name name;
  Id device_id = 0;
  OptionalInt stream;
  Id thread_id = 0;
  OptionalInt launch_begin_ns;
  OptionalInt launch_end_ns;
  OptionalInt32 grid_x, grid_y, grid_z;
  OptionalInt32 block_x, block_y, block_z;
  OptionalInt32 registers;
  OptionalInt32 shared_bytes;
  OptionalId graph_launch_id;
  OptionalId graph_node_id;
  OptionalId gemm_id;
  OptionalId stack_id;
  OptionalId op_id;
  std::optional<bool> estimated;
};

struct GraphLaunchRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t graph = 0;
  Id device_id = 0;
  OptionalInt stream;
  Id thread_id = 0;
  OptionalInt launch_begin_ns;
  OptionalInt launch_end_ns;
  bool nodes_recorded = false;
  OptionalId stack_id;
};

struct GraphNodeRow {
  Id id = 0;
  std::int64_t graph = 0;
  std::int64_t node = 0;
  OptionalInt captured_node;
  Name name;
  OptionalId stack_id;
  OptionalId gemm_id;
  Name kind;
  OptionalInt captured_ns;
  OptionalId thread_id;
};

struct CopyRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Name direction;
  std::int64_t bytes = 0;
  Name host_memory;
  Id device_id = 0;
  OptionalInt stream;
  Id thread_id = 0;
  OptionalInt launch_begin_ns;
  OptionalInt launch_end_ns;
  OptionalId graph_launch_id;
  OptionalId graph_node_id;
  OptionalId stack_id;
  OptionalId op_id;
};

struct ApiRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Name name;
  Id thread_id = 0;
  OptionalInt correlation;
  OptionalInt stream;
  bool waits = false;
};

struct OpRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Name name;
  Id thread_id = 0;
  Name shapes;
  Name types;
  OptionalInt correlation;
  OptionalInt sequence;
  OptionalId stack_id;
};

struct RangeRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Name name;
  Name kind;
  Id process_id = 0;
  Id thread_id = 0;
  OptionalId parent_id;
  std::int32_t depth = 0;
  Name domain;
  Name category;
  OptionalInt payload;
  OptionalDouble payload_double;
  bool closed = true;
  Name source;
};

struct GemmRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  OptionalId kernel_id;
  Id thread_id = 0;
  Name library;
  Name function;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Name type_a, type_b, type_c;
  Name layout;
  Name transpose_a, transpose_b;
  Name epilogue;
  Name algorithm;
  Name compute_type;
  Name scaling;
};

struct AllocationRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  OptionalInt end_ns;
  std::int64_t bytes = 0;
  OptionalInt address;
  OptionalId device_id;
  OptionalId stack_id;
  Name kind;
  Id process_id = 0;
  OptionalId thread_id;
};

// A time in which what the device did was not recorded.
struct GapRow {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Id process_id = 0;
  Name why;
};

struct SampleRow {
  Id id = 0;
  std::int64_t ts_ns = 0;
  Id thread_id = 0;
  OptionalId stack_id;
  bool truncated = false;
  std::int64_t weight_ns = 0;
};

struct StackRow {
  Id stack_id = 0;
  std::int32_t depth = 0;
  Id frame_id = 0;
};

struct FrameRow {
  Id id = 0;
  Name kind;
  Name function;
  Name file;
  OptionalInt32 line;
};

// What a process had used so far, read from outside.
struct ProcessUsageRow {
  std::int64_t ts_ns = 0;
  Id process_id = 0;
  std::int64_t rss_bytes = 0;
  std::int64_t threads = 0;
  std::int64_t user_ns = 0;
  std::int64_t system_ns = 0;
  std::int64_t minor_faults = 0;
  std::int64_t major_faults = 0;
  OptionalInt read_bytes;
  OptionalInt written_bytes;
  OptionalInt voluntary_switches;
  OptionalInt involuntary_switches;
  OptionalInt peak_rss_bytes;
};

// What the collector cost the process it was in.
struct CollectorCostRow {
  std::int64_t ts_ns = 0;
  Id process_id = 0;
  std::int64_t range_events = 0;
  std::int64_t gemm_events = 0;
  std::int64_t log_bytes = 0;
  std::int64_t writer_cpu_ns = 0;
  OptionalDouble range_event_ns;
  OptionalDouble gemm_event_ns;
  OptionalInt gpu_events;
};

struct TelemetryRow {
  std::int64_t ts_ns = 0;
  Id device_id = 0;
  Name metric;
  double value = 0;
  Name unit;
  OptionalId process_id;
};

struct CounterRow {
  Id id = 0;
  Name scope;
  Id scope_id = 0;
  Name metric;
  double value = 0;
  Name unit;
  Name method;
  std::int32_t passes = 0;
  OptionalDouble spread;
};

// A stretch that hardware counters were read over.
struct CounterWindowRow {
  Id id = 0;
  Id counter_window_id = 0;
  Name scope;
  Name method;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  OptionalId process_id;
  OptionalId thread_id;
  Id device_id = 0;
  OptionalId kernel_id;
  OptionalId graph_launch_id;
  Name name;
  std::int32_t pass = 0;
  std::int32_t passes = 1;
  std::int64_t cost_ns = 0;
};

// How often warps were seen at one place of a kernel's code, for one reason.
struct StallRow {
  Id id = 0;
  OptionalId process_id;
  Id device_id = 0;
  Name kernel;
  std::int64_t cubin = 0;
  std::int64_t offset_bytes = 0;
  Name reason;
  bool issued = false;
  std::int64_t samples = 0;
  Name file;
  OptionalInt line;
};

struct RequestRow {
  Id id = 0;
  std::int64_t arrival_ns = 0;
  OptionalInt first_token_ns;
  OptionalInt end_ns;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  Name status;
};

struct LossRow {
  Id id = 0;
  OptionalId process_id;
  Name name;
  Name severity;
  std::int64_t count = 0;
  Name unit;
  Name meaning;
  Name remedy;
  Name detail;
};

// Something about how the run was recorded that a reader should know.
struct NoteRow {
  std::int64_t ts_ns = 0;
  OptionalId process_id;
  Name subject;
  Name text;
};

struct ClockSyncRow {
  std::int64_t ts_ns = 0;
  std::int64_t wall_ns = 0;
  std::int64_t error_ns = 0;
  OptionalId process_id;
};

// Their descriptions, in the files *_tables.cpp.
template <>
const Table& table_of<ProcessRow>();
template <>
const Table& table_of<ThreadRow>();
template <>
const Table& table_of<DeviceRow>();
template <>
const Table& table_of<PeakRow>();
template <>
const Table& table_of<KernelRow>();
template <>
const Table& table_of<GraphLaunchRow>();
template <>
const Table& table_of<GraphNodeRow>();
template <>
const Table& table_of<CopyRow>();
template <>
const Table& table_of<ApiRow>();
template <>
const Table& table_of<OpRow>();
template <>
const Table& table_of<RangeRow>();
template <>
const Table& table_of<GemmRow>();
template <>
const Table& table_of<AllocationRow>();
template <>
const Table& table_of<GapRow>();
template <>
const Table& table_of<SampleRow>();
template <>
const Table& table_of<StackRow>();
template <>
const Table& table_of<FrameRow>();
template <>
const Table& table_of<ProcessUsageRow>();
template <>
const Table& table_of<CollectorCostRow>();
template <>
const Table& table_of<TelemetryRow>();
template <>
const Table& table_of<CounterRow>();
template <>
const Table& table_of<CounterWindowRow>();
template <>
const Table& table_of<StallRow>();
template <>
const Table& table_of<RequestRow>();
template <>
const Table& table_of<LossRow>();
template <>
const Table& table_of<NoteRow>();
template <>
const Table& table_of<ClockSyncRow>();

}  // namespace llmprof::trace
