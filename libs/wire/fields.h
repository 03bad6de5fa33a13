#pragma once
// The columns of every record kind, described once: encoder and decoder both walk these tables, so they cannot
// disagree. The order is the order in the file. New fields go to the END of a table (old logs then lack the column
// and read as 0, old readers skip it); removing or reordering raises kWireVersion.

#include <cstddef>
#include <type_traits>

#include "wire/format.h"

namespace llmprof::wire {

// How one column is stored; the first byte of the column says which.
enum class ColumnMode : std::uint8_t {
  kConstant = 0,  // one varint: every record has this value
  kPlain = 1,     // one varint per record
  kDelta = 2,     // one zigzag varint per record: the difference to the record before (the first: to 0)
  kBeside = 3,    // one zigzag varint per record: the difference to the column before (the first column: to 0)
};

// What a number means to those who must define things before they are used.
enum class FieldRole : std::uint8_t {
  kValue,
  kName,        // a StringId
  kDefinition,  // a DefinitionId
};

struct Field {
  std::uint8_t offset;  // in Record
  std::uint8_t width;   // bytes: 1, 2, 4 or 8
  ColumnMode mode;      // what the encoder uses when the column is not constant
  FieldRole role;
};

struct FieldList {
  const Field* fields;
  std::size_t count;  // 0: the kind is unknown
};

// A column in one word: how it is stored, or what it refers to.
#define LLMPROF_FIELD(member, mode, role) \
  Field { offsetof(Record, member), sizeof(Record::member), ColumnMode::mode, FieldRole::role }
#define PLAIN(member) LLMPROF_FIELD(member, kPlain, kValue)
#define DELTA(member) LLMPROF_FIELD(member, kDelta, kValue)
#define BESIDE(member) LLMPROF_FIELD(member, kBeside, kValue)
#define NAME(member) LLMPROF_FIELD(member, kPlain, kName)
#define DEFINITION(member) LLMPROF_FIELD(member, kPlain, kDefinition)

inline constexpr Field kRangeFields[] = {DELTA(range.ts_ns),        PLAIN(range.op),       NAME(range.name),
                                         PLAIN(range.domain),       PLAIN(range.category), DELTA(range.correlation),
                                         PLAIN(range.payload_type), DELTA(range.payload),  PLAIN(range.level)};
inline constexpr Field kGemmFields[] = {DELTA(gemm.begin_ns), DELTA(gemm.end_ns),  PLAIN(gemm.m),
                                        PLAIN(gemm.n),        PLAIN(gemm.k),       PLAIN(gemm.batch),
                                        NAME(gemm.function),  NAME(gemm.library),  PLAIN(gemm.type),
                                        PLAIN(gemm.layout),   PLAIN(gemm.trans_a), PLAIN(gemm.trans_b)};
inline constexpr Field kClockSyncFields[] = {DELTA(clock_sync.raw_ns), DELTA(clock_sync.wall_ns),
                                             PLAIN(clock_sync.error_ns)};
inline constexpr Field kLossFields[] = {DELTA(loss.ts_ns), PLAIN(loss.kind), PLAIN(loss.count), PLAIN(loss.detail)};
inline constexpr Field kThreadFields[] = {DELTA(thread.ts_ns), DELTA(thread.tid), NAME(thread.name),
                                          PLAIN(thread.ended)};
inline constexpr Field kProcessFields[] = {
    DELTA(process.ts_ns),     PLAIN(process.pid),      PLAIN(process.parent_pid), PLAIN(process.start_ticks),
    NAME(process.executable), NAME(process.arguments), NAME(process.host),        NAME(process.rank),
    PLAIN(process.ended),     NAME(process.variables)};
inline constexpr Field kDomainFields[] = {PLAIN(domain.domain), NAME(domain.name)};
inline constexpr Field kCategoryFields[] = {PLAIN(category.domain), PLAIN(category.category), NAME(category.name)};
inline constexpr Field kLibraryFields[] = {DELTA(library.ts_ns), NAME(library.path), PLAIN(library.hooked)};
inline constexpr Field kUsageFields[] = {DELTA(usage.ts_ns),        PLAIN(usage.pid),         PLAIN(usage.threads),
                                         DELTA(usage.rss_bytes),    DELTA(usage.user_ns),     DELTA(usage.system_ns),
                                         DELTA(usage.minor_faults), DELTA(usage.major_faults)};
inline constexpr Field kIoFields[] = {DELTA(io.ts_ns),
                                      PLAIN(io.pid),
                                      DELTA(io.read_bytes),
                                      DELTA(io.written_bytes),
                                      DELTA(io.voluntary_switches),
                                      DELTA(io.involuntary_switches),
                                      DELTA(io.peak_rss_bytes)};
inline constexpr Field kFrameFields[] = {DELTA(frame.id),  PLAIN(frame.kind), NAME(frame.function),
                                         NAME(frame.file), PLAIN(frame.line), PLAIN(frame.offset)};
inline constexpr Field kStackFields[] = {DELTA(stack.id), LLMPROF_FIELD(stack.parent, kDelta, kDefinition),
                                         LLMPROF_FIELD(stack.frame, kDelta, kDefinition)};
inline constexpr Field kSampleFields[] = {DELTA(sample.ts_ns), PLAIN(sample.pid),       PLAIN(sample.tid),
                                          PLAIN(sample.stack), PLAIN(sample.weight_ns), PLAIN(sample.truncated)};
inline constexpr Field kThreadTimeFields[] = {DELTA(thread_time.ts_ns), PLAIN(thread_time.pid), DELTA(thread_time.tid),
                                              PLAIN(thread_time.state), PLAIN(thread_time.time_ns)};
inline constexpr Field kCpuGroupFields[] = {
    DELTA(cpu_group.ts_ns),        PLAIN(cpu_group.pid),      DELTA(cpu_group.periods),  DELTA(cpu_group.throttled),
    DELTA(cpu_group.throttled_ns), PLAIN(cpu_group.quota_us), PLAIN(cpu_group.period_us)};
inline constexpr Field kCostFields[] = {DELTA(cost.ts_ns),     DELTA(cost.range_events),  DELTA(cost.gemm_events),
                                        DELTA(cost.log_bytes), DELTA(cost.writer_cpu_ns), DELTA(cost.gpu_events)};
inline constexpr Field kSegmentFields[] = {DELTA(segment.ts_ns), PLAIN(segment.number)};
inline constexpr Field kDeviceFields[] = {
    PLAIN(device.device),       NAME(device.name),   PLAIN(device.uuid_high),         PLAIN(device.uuid_low),
    PLAIN(device.memory_bytes), PLAIN(device.units), PLAIN(device.compute_capability)};
inline constexpr Field kLaunchFields[] = {DELTA(launch.begin_ns),   BESIDE(launch.end_ns), DELTA(launch.correlation),
                                          DEFINITION(launch.stack), PLAIN(launch.graph),   PLAIN(launch.op),
                                          PLAIN(launch.captured),   PLAIN(launch.number)};
inline constexpr Field kKernelShapeFields[] = {DELTA(kernel_shape.id),
                                               NAME(kernel_shape.name),
                                               PLAIN(kernel_shape.grid_x),
                                               PLAIN(kernel_shape.grid_y),
                                               PLAIN(kernel_shape.grid_z),
                                               PLAIN(kernel_shape.block_x),
                                               PLAIN(kernel_shape.block_y),
                                               PLAIN(kernel_shape.block_z),
                                               PLAIN(kernel_shape.registers),
                                               PLAIN(kernel_shape.static_shared_bytes),
                                               PLAIN(kernel_shape.dynamic_shared_bytes),
                                               PLAIN(kernel_shape.local_bytes),
                                               PLAIN(kernel_shape.cluster_x),
                                               PLAIN(kernel_shape.cluster_y),
                                               PLAIN(kernel_shape.cluster_z)};
inline constexpr Field kKernelFields[] = {DELTA(kernel.begin_ns),   BESIDE(kernel.end_ns), DELTA(kernel.correlation),
                                          DEFINITION(kernel.shape), PLAIN(kernel.stream),  PLAIN(kernel.device),
                                          PLAIN(kernel.context),    PLAIN(kernel.graph),   DELTA(kernel.graph_node)};
inline constexpr Field kCopyFields[] = {DELTA(copy.begin_ns),    BESIDE(copy.end_ns),     PLAIN(copy.bytes),
                                        DELTA(copy.correlation), PLAIN(copy.stream),      PLAIN(copy.device),
                                        PLAIN(copy.kind),        PLAIN(copy.host_memory), PLAIN(copy.graph),
                                        DELTA(copy.graph_node)};
inline constexpr Field kGraphLaunchFields[] = {DELTA(graph_launch.begin_ns),    BESIDE(graph_launch.end_ns),
                                               DELTA(graph_launch.correlation), PLAIN(graph_launch.graph),
                                               PLAIN(graph_launch.stream),      PLAIN(graph_launch.device),
                                               PLAIN(graph_launch.context)};
inline constexpr Field kGraphNodeFields[] = {
    DELTA(graph_node.ts_ns), DELTA(graph_node.node),       DELTA(graph_node.cloned_from), NAME(graph_node.name),
    PLAIN(graph_node.graph), DEFINITION(graph_node.stack), PLAIN(graph_node.kind)};
inline constexpr Field kGemmShapeFields[] = {
    DELTA(gemm_shape.id),      NAME(gemm_shape.function),     NAME(gemm_shape.library), NAME(gemm_shape.algorithm),
    NAME(gemm_shape.epilogue), NAME(gemm_shape.scaling),      NAME(gemm_shape.type_a),  NAME(gemm_shape.type_b),
    NAME(gemm_shape.type_c),   NAME(gemm_shape.compute_type), PLAIN(gemm_shape.layout), PLAIN(gemm_shape.trans_a),
    PLAIN(gemm_shape.trans_b)};
inline constexpr Field kGpuGemmFields[] = {DELTA(gpu_gemm.begin_ns),  BESIDE(gpu_gemm.end_ns), PLAIN(gpu_gemm.m),
                                           PLAIN(gpu_gemm.n),         PLAIN(gpu_gemm.k),       PLAIN(gpu_gemm.batch),
                                           DEFINITION(gpu_gemm.shape)};
inline constexpr Field kDeviceMemoryFields[] = {DELTA(device_memory.ts_ns),     PLAIN(device_memory.op),
                                                PLAIN(device_memory.kind),      DELTA(device_memory.address),
                                                PLAIN(device_memory.bytes),     PLAIN(device_memory.device),
                                                DEFINITION(device_memory.stack)};
inline constexpr Field kApiFields[] = {DELTA(api.begin_ns),    BESIDE(api.end_ns), NAME(api.name),
                                       DELTA(api.correlation), PLAIN(api.stream),  PLAIN(api.waits)};
inline constexpr Field kGapFields[] = {DELTA(gap.begin_ns), BESIDE(gap.end_ns), NAME(gap.why)};
inline constexpr Field kTelemetryFields[] = {DELTA(telemetry.ts_ns), PLAIN(telemetry.device), NAME(telemetry.metric),
                                             PLAIN(telemetry.value), PLAIN(telemetry.pid)};
inline constexpr Field kTelemetryDeviceFields[] = {PLAIN(telemetry_device.device), NAME(telemetry_device.name),
                                                   PLAIN(telemetry_device.uuid_high), PLAIN(telemetry_device.uuid_low)};
inline constexpr Field kNoteFields[] = {DELTA(note.ts_ns), NAME(note.subject), NAME(note.text)};
inline constexpr Field kCounterWindowFields[] = {DELTA(counter_window.begin_ns),    BESIDE(counter_window.end_ns),
                                                 PLAIN(counter_window.cost_ns),     DELTA(counter_window.measurement),
                                                 DELTA(counter_window.correlation), NAME(counter_window.name),
                                                 PLAIN(counter_window.device),      PLAIN(counter_window.scope),
                                                 PLAIN(counter_window.pass),        PLAIN(counter_window.passes)};
inline constexpr Field kCounterFields[] = {DELTA(counter.ts_ns), DELTA(counter.measurement), NAME(counter.metric),
                                           PLAIN(counter.value)};
inline constexpr Field kStallFields[] = {
    DELTA(stall.ts_ns), PLAIN(stall.samples), PLAIN(stall.cubin), DELTA(stall.pc_offset), NAME(stall.function),
    NAME(stall.reason), NAME(stall.file),     PLAIN(stall.line),  PLAIN(stall.device),    PLAIN(stall.issued)};
#undef PLAIN
#undef DELTA
#undef BESIDE
#undef NAME
#undef DEFINITION
#undef LLMPROF_FIELD

template <std::size_t N>
constexpr FieldList list_of(const Field (&fields)[N]) {
  return {fields, N};
}

// By RecordKind.
inline constexpr FieldList kFieldLists[] = {
    {nullptr, 0},
#define RECORD(number, name, member) list_of(k##name##Fields),
#include "wire/records.def"
};
inline constexpr std::size_t kRecordKinds = sizeof(kFieldLists) / sizeof(kFieldLists[0]);

constexpr FieldList fields_of(std::uint64_t kind) {
  return kind < kRecordKinds ? kFieldLists[kind] : FieldList{nullptr, 0};
}

// Little-endian: the low bytes are the value. Copies of constant size compile to one move each.
template <class Copy>
void copy_field(std::uint8_t width, Copy copy) {
  switch (width) {
    case 1:
      return copy(std::integral_constant<int, 1>());
    case 2:
      return copy(std::integral_constant<int, 2>());
    case 4:
      return copy(std::integral_constant<int, 4>());
    default:
      return copy(std::integral_constant<int, 8>());
  }
}
inline std::uint64_t load_field(const Record& record, const Field& field) {
  const unsigned char* at = reinterpret_cast<const unsigned char*>(&record) + field.offset;
  std::uint64_t value = 0;
  copy_field(field.width, [&](auto bytes) { __builtin_memcpy(&value, at, bytes); });
  return value;
}
inline void store_field(Record& record, const Field& field, std::uint64_t value) {
  unsigned char* at = reinterpret_cast<unsigned char*>(&record) + field.offset;
  copy_field(field.width, [&](auto bytes) { __builtin_memcpy(at, &value, bytes); });
}

constexpr bool fits(std::uint64_t value, std::uint8_t width) { return width == 8 || (value >> (8 * width)) == 0; }

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

}  // namespace llmprof::wire
