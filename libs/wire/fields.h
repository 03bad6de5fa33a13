#pragma once
// The columns of every record kind, described once: encoder and decoder both walk these tables, so they cannot
// disagree. The order is the order in the file. New fields go to the END of a table (old logs then lack the column
// and read as 0, old readers skip it); removing or reordering raises kWireVersion.

#include <cstddef>

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

#define LLMPROF_FIELD(member, mode) \
  Field { offsetof(Record, member), sizeof(Record::member), ColumnMode::mode, FieldRole::kValue }
#define LLMPROF_NAME(member) \
  Field { offsetof(Record, member), sizeof(Record::member), ColumnMode::kPlain, FieldRole::kName }
#define LLMPROF_DEFINITION(member) \
  Field { offsetof(Record, member), sizeof(Record::member), ColumnMode::kPlain, FieldRole::kDefinition }

inline constexpr Field kRangeFields[] = {
    LLMPROF_FIELD(range.ts_ns, kDelta),
    LLMPROF_FIELD(range.op, kPlain),
    LLMPROF_NAME(range.name),
    LLMPROF_FIELD(range.domain, kPlain),
    LLMPROF_FIELD(range.category, kPlain),
    LLMPROF_FIELD(range.correlation, kDelta),
    LLMPROF_FIELD(range.payload_type, kPlain),
    LLMPROF_FIELD(range.payload, kDelta),
    LLMPROF_FIELD(range.level, kPlain),
};
inline constexpr Field kGemmFields[] = {
    LLMPROF_FIELD(gemm.begin_ns, kDelta), LLMPROF_FIELD(gemm.end_ns, kDelta),  LLMPROF_FIELD(gemm.m, kPlain),
    LLMPROF_FIELD(gemm.n, kPlain),        LLMPROF_FIELD(gemm.k, kPlain),       LLMPROF_FIELD(gemm.batch, kPlain),
    LLMPROF_NAME(gemm.function),          LLMPROF_NAME(gemm.library),          LLMPROF_FIELD(gemm.type, kPlain),
    LLMPROF_FIELD(gemm.layout, kPlain),   LLMPROF_FIELD(gemm.trans_a, kPlain), LLMPROF_FIELD(gemm.trans_b, kPlain),
};
inline constexpr Field kClockSyncFields[] = {
    LLMPROF_FIELD(clock_sync.raw_ns, kDelta),
    LLMPROF_FIELD(clock_sync.wall_ns, kDelta),
    LLMPROF_FIELD(clock_sync.error_ns, kPlain),
};
inline constexpr Field kLossFields[] = {
    LLMPROF_FIELD(loss.ts_ns, kDelta),
    LLMPROF_FIELD(loss.kind, kPlain),
    LLMPROF_FIELD(loss.count, kPlain),
    LLMPROF_FIELD(loss.detail, kPlain),
};
inline constexpr Field kThreadFields[] = {
    LLMPROF_FIELD(thread.ts_ns, kDelta),
    LLMPROF_FIELD(thread.tid, kDelta),
    LLMPROF_NAME(thread.name),
    LLMPROF_FIELD(thread.ended, kPlain),
};
inline constexpr Field kProcessFields[] = {
    LLMPROF_FIELD(process.ts_ns, kDelta),
    LLMPROF_FIELD(process.pid, kPlain),
    LLMPROF_FIELD(process.parent_pid, kPlain),
    LLMPROF_FIELD(process.start_ticks, kPlain),
    LLMPROF_NAME(process.executable),
    LLMPROF_NAME(process.arguments),
    LLMPROF_NAME(process.host),
    LLMPROF_NAME(process.rank),
    LLMPROF_FIELD(process.ended, kPlain),
    LLMPROF_NAME(process.variables),
};
inline constexpr Field kDomainFields[] = {
    LLMPROF_FIELD(domain.domain, kPlain),
    LLMPROF_NAME(domain.name),
};
inline constexpr Field kCategoryFields[] = {
    LLMPROF_FIELD(category.domain, kPlain),
    LLMPROF_FIELD(category.category, kPlain),
    LLMPROF_NAME(category.name),
};
inline constexpr Field kLibraryFields[] = {
    LLMPROF_FIELD(library.ts_ns, kDelta),
    LLMPROF_NAME(library.path),
    LLMPROF_FIELD(library.hooked, kPlain),
};
inline constexpr Field kUsageFields[] = {
    LLMPROF_FIELD(usage.ts_ns, kDelta),        LLMPROF_FIELD(usage.pid, kPlain),
    LLMPROF_FIELD(usage.threads, kPlain),      LLMPROF_FIELD(usage.rss_bytes, kDelta),
    LLMPROF_FIELD(usage.user_ns, kDelta),      LLMPROF_FIELD(usage.system_ns, kDelta),
    LLMPROF_FIELD(usage.minor_faults, kDelta), LLMPROF_FIELD(usage.major_faults, kDelta),
};
inline constexpr Field kIoFields[] = {
    LLMPROF_FIELD(io.ts_ns, kDelta),
    LLMPROF_FIELD(io.pid, kPlain),
    LLMPROF_FIELD(io.read_bytes, kDelta),
    LLMPROF_FIELD(io.written_bytes, kDelta),
    LLMPROF_FIELD(io.voluntary_switches, kDelta),
    LLMPROF_FIELD(io.involuntary_switches, kDelta),
    LLMPROF_FIELD(io.peak_rss_bytes, kDelta),
};
inline constexpr Field kFrameFields[] = {
    LLMPROF_FIELD(frame.id, kDelta), LLMPROF_FIELD(frame.kind, kPlain), LLMPROF_NAME(frame.function),
    LLMPROF_NAME(frame.file),        LLMPROF_FIELD(frame.line, kPlain), LLMPROF_FIELD(frame.offset, kPlain),
};
inline constexpr Field kStackFields[] = {
    LLMPROF_FIELD(stack.id, kDelta),
    Field{offsetof(Record, stack.parent), 4, ColumnMode::kDelta, FieldRole::kDefinition},
    Field{offsetof(Record, stack.frame), 4, ColumnMode::kDelta, FieldRole::kDefinition},
};
inline constexpr Field kSampleFields[] = {
    LLMPROF_FIELD(sample.ts_ns, kDelta),     LLMPROF_FIELD(sample.pid, kPlain),
    LLMPROF_FIELD(sample.tid, kPlain),       LLMPROF_FIELD(sample.stack, kPlain),
    LLMPROF_FIELD(sample.weight_ns, kPlain), LLMPROF_FIELD(sample.truncated, kPlain),
};
inline constexpr Field kCostFields[] = {
    LLMPROF_FIELD(cost.ts_ns, kDelta),         LLMPROF_FIELD(cost.range_events, kDelta),
    LLMPROF_FIELD(cost.gemm_events, kDelta),   LLMPROF_FIELD(cost.log_bytes, kDelta),
    LLMPROF_FIELD(cost.writer_cpu_ns, kDelta), LLMPROF_FIELD(cost.gpu_events, kDelta),
};
inline constexpr Field kSegmentFields[] = {
    LLMPROF_FIELD(segment.ts_ns, kDelta),
    LLMPROF_FIELD(segment.number, kPlain),
};
inline constexpr Field kDeviceFields[] = {
    LLMPROF_FIELD(device.device, kPlain),
    LLMPROF_NAME(device.name),
    LLMPROF_FIELD(device.uuid_high, kPlain),
    LLMPROF_FIELD(device.uuid_low, kPlain),
    LLMPROF_FIELD(device.memory_bytes, kPlain),
    LLMPROF_FIELD(device.units, kPlain),
    LLMPROF_FIELD(device.compute_capability, kPlain),
};
inline constexpr Field kLaunchFields[] = {
    LLMPROF_FIELD(launch.begin_ns, kDelta),    LLMPROF_FIELD(launch.end_ns, kBeside),
    LLMPROF_FIELD(launch.correlation, kDelta), LLMPROF_DEFINITION(launch.stack),
    LLMPROF_FIELD(launch.graph, kPlain),       LLMPROF_FIELD(launch.op, kPlain),
    LLMPROF_FIELD(launch.captured, kPlain),    LLMPROF_FIELD(launch.number, kPlain),
};
inline constexpr Field kKernelShapeFields[] = {
    LLMPROF_FIELD(kernel_shape.id, kDelta),
    LLMPROF_NAME(kernel_shape.name),
    LLMPROF_FIELD(kernel_shape.grid_x, kPlain),
    LLMPROF_FIELD(kernel_shape.grid_y, kPlain),
    LLMPROF_FIELD(kernel_shape.grid_z, kPlain),
    LLMPROF_FIELD(kernel_shape.block_x, kPlain),
    LLMPROF_FIELD(kernel_shape.block_y, kPlain),
    LLMPROF_FIELD(kernel_shape.block_z, kPlain),
    LLMPROF_FIELD(kernel_shape.registers, kPlain),
    LLMPROF_FIELD(kernel_shape.static_shared_bytes, kPlain),
    LLMPROF_FIELD(kernel_shape.dynamic_shared_bytes, kPlain),
    LLMPROF_FIELD(kernel_shape.local_bytes, kPlain),
    LLMPROF_FIELD(kernel_shape.cluster_x, kPlain),
    LLMPROF_FIELD(kernel_shape.cluster_y, kPlain),
    LLMPROF_FIELD(kernel_shape.cluster_z, kPlain),
};
inline constexpr Field kKernelFields[] = {
    LLMPROF_FIELD(kernel.begin_ns, kDelta),    LLMPROF_FIELD(kernel.end_ns, kBeside),
    LLMPROF_FIELD(kernel.correlation, kDelta), LLMPROF_DEFINITION(kernel.shape),
    LLMPROF_FIELD(kernel.stream, kPlain),      LLMPROF_FIELD(kernel.device, kPlain),
    LLMPROF_FIELD(kernel.context, kPlain),     LLMPROF_FIELD(kernel.graph, kPlain),
    LLMPROF_FIELD(kernel.graph_node, kDelta),
};
inline constexpr Field kCopyFields[] = {
    LLMPROF_FIELD(copy.begin_ns, kDelta), LLMPROF_FIELD(copy.end_ns, kBeside),
    LLMPROF_FIELD(copy.bytes, kPlain),    LLMPROF_FIELD(copy.correlation, kDelta),
    LLMPROF_FIELD(copy.stream, kPlain),   LLMPROF_FIELD(copy.device, kPlain),
    LLMPROF_FIELD(copy.kind, kPlain),     LLMPROF_FIELD(copy.host_memory, kPlain),
    LLMPROF_FIELD(copy.graph, kPlain),    LLMPROF_FIELD(copy.graph_node, kDelta),
};
inline constexpr Field kGraphLaunchFields[] = {
    LLMPROF_FIELD(graph_launch.begin_ns, kDelta),    LLMPROF_FIELD(graph_launch.end_ns, kBeside),
    LLMPROF_FIELD(graph_launch.correlation, kDelta), LLMPROF_FIELD(graph_launch.graph, kPlain),
    LLMPROF_FIELD(graph_launch.stream, kPlain),      LLMPROF_FIELD(graph_launch.device, kPlain),
    LLMPROF_FIELD(graph_launch.context, kPlain),
};
inline constexpr Field kGraphNodeFields[] = {
    LLMPROF_FIELD(graph_node.ts_ns, kDelta),       LLMPROF_FIELD(graph_node.node, kDelta),
    LLMPROF_FIELD(graph_node.cloned_from, kDelta), LLMPROF_NAME(graph_node.name),
    LLMPROF_FIELD(graph_node.graph, kPlain),       LLMPROF_DEFINITION(graph_node.stack),
    LLMPROF_FIELD(graph_node.kind, kPlain),
};
inline constexpr Field kGemmShapeFields[] = {
    LLMPROF_FIELD(gemm_shape.id, kDelta),      LLMPROF_NAME(gemm_shape.function),
    LLMPROF_NAME(gemm_shape.library),          LLMPROF_NAME(gemm_shape.algorithm),
    LLMPROF_NAME(gemm_shape.epilogue),         LLMPROF_NAME(gemm_shape.scaling),
    LLMPROF_NAME(gemm_shape.type_a),           LLMPROF_NAME(gemm_shape.type_b),
    LLMPROF_NAME(gemm_shape.type_c),           LLMPROF_NAME(gemm_shape.compute_type),
    LLMPROF_FIELD(gemm_shape.layout, kPlain),  LLMPROF_FIELD(gemm_shape.trans_a, kPlain),
    LLMPROF_FIELD(gemm_shape.trans_b, kPlain),
};
inline constexpr Field kGpuGemmFields[] = {
    LLMPROF_FIELD(gpu_gemm.begin_ns, kDelta), LLMPROF_FIELD(gpu_gemm.end_ns, kBeside),
    LLMPROF_FIELD(gpu_gemm.m, kPlain),        LLMPROF_FIELD(gpu_gemm.n, kPlain),
    LLMPROF_FIELD(gpu_gemm.k, kPlain),        LLMPROF_FIELD(gpu_gemm.batch, kPlain),
    LLMPROF_DEFINITION(gpu_gemm.shape),
};
inline constexpr Field kDeviceMemoryFields[] = {
    LLMPROF_FIELD(device_memory.ts_ns, kDelta), LLMPROF_FIELD(device_memory.op, kPlain),
    LLMPROF_FIELD(device_memory.kind, kPlain),  LLMPROF_FIELD(device_memory.address, kDelta),
    LLMPROF_FIELD(device_memory.bytes, kPlain), LLMPROF_FIELD(device_memory.device, kPlain),
    LLMPROF_DEFINITION(device_memory.stack),
};
inline constexpr Field kApiFields[] = {
    LLMPROF_FIELD(api.begin_ns, kDelta),    LLMPROF_FIELD(api.end_ns, kBeside), LLMPROF_NAME(api.name),
    LLMPROF_FIELD(api.correlation, kDelta), LLMPROF_FIELD(api.stream, kPlain),  LLMPROF_FIELD(api.waits, kPlain),
};
inline constexpr Field kGapFields[] = {
    LLMPROF_FIELD(gap.begin_ns, kDelta),
    LLMPROF_FIELD(gap.end_ns, kBeside),
    LLMPROF_NAME(gap.why),
};
inline constexpr Field kTelemetryFields[] = {
    LLMPROF_FIELD(telemetry.ts_ns, kDelta), LLMPROF_FIELD(telemetry.device, kPlain), LLMPROF_NAME(telemetry.metric),
    LLMPROF_FIELD(telemetry.value, kPlain), LLMPROF_FIELD(telemetry.pid, kPlain),
};
inline constexpr Field kTelemetryDeviceFields[] = {
    LLMPROF_FIELD(telemetry_device.device, kPlain),
    LLMPROF_NAME(telemetry_device.name),
    LLMPROF_FIELD(telemetry_device.uuid_high, kPlain),
    LLMPROF_FIELD(telemetry_device.uuid_low, kPlain),
};
inline constexpr Field kNoteFields[] = {
    LLMPROF_FIELD(note.ts_ns, kDelta),
    LLMPROF_NAME(note.subject),
    LLMPROF_NAME(note.text),
};
inline constexpr Field kCounterWindowFields[] = {
    LLMPROF_FIELD(counter_window.begin_ns, kDelta),    LLMPROF_FIELD(counter_window.end_ns, kBeside),
    LLMPROF_FIELD(counter_window.cost_ns, kPlain),     LLMPROF_FIELD(counter_window.measurement, kDelta),
    LLMPROF_FIELD(counter_window.correlation, kDelta), LLMPROF_NAME(counter_window.name),
    LLMPROF_FIELD(counter_window.device, kPlain),      LLMPROF_FIELD(counter_window.scope, kPlain),
    LLMPROF_FIELD(counter_window.pass, kPlain),        LLMPROF_FIELD(counter_window.passes, kPlain),
};
inline constexpr Field kCounterFields[] = {
    LLMPROF_FIELD(counter.ts_ns, kDelta),
    LLMPROF_FIELD(counter.measurement, kDelta),
    LLMPROF_NAME(counter.metric),
    LLMPROF_FIELD(counter.value, kPlain),
};
inline constexpr Field kStallFields[] = {
    LLMPROF_FIELD(stall.ts_ns, kDelta),
    LLMPROF_FIELD(stall.samples, kPlain),
    LLMPROF_FIELD(stall.cubin, kPlain),
    LLMPROF_FIELD(stall.pc_offset, kDelta),
    LLMPROF_NAME(stall.function),
    LLMPROF_NAME(stall.reason),
    LLMPROF_NAME(stall.file),
    LLMPROF_FIELD(stall.line, kPlain),
    LLMPROF_FIELD(stall.device, kPlain),
    LLMPROF_FIELD(stall.issued, kPlain),
};
#undef LLMPROF_FIELD
#undef LLMPROF_NAME
#undef LLMPROF_DEFINITION

template <std::size_t N>
constexpr FieldList list_of(const Field (&fields)[N]) {
  return {fields, N};
}

// By RecordKind.
inline constexpr FieldList kFieldLists[] = {
    {nullptr, 0},
    list_of(kRangeFields),
    list_of(kGemmFields),
    list_of(kClockSyncFields),
    list_of(kLossFields),
    list_of(kThreadFields),
    list_of(kProcessFields),
    list_of(kDomainFields),
    list_of(kCategoryFields),
    list_of(kLibraryFields),
    list_of(kUsageFields),
    list_of(kIoFields),
    list_of(kFrameFields),
    list_of(kStackFields),
    list_of(kSampleFields),
    list_of(kCostFields),
    list_of(kSegmentFields),
    list_of(kDeviceFields),
    list_of(kLaunchFields),
    list_of(kKernelShapeFields),
    list_of(kKernelFields),
    list_of(kCopyFields),
    list_of(kGraphLaunchFields),
    list_of(kGraphNodeFields),
    list_of(kGemmShapeFields),
    list_of(kGpuGemmFields),
    list_of(kDeviceMemoryFields),
    list_of(kApiFields),
    list_of(kGapFields),
    list_of(kTelemetryFields),
    list_of(kTelemetryDeviceFields),
    list_of(kNoteFields),
    list_of(kCounterWindowFields),
    list_of(kCounterFields),
    list_of(kStallFields),
};
inline constexpr std::size_t kRecordKinds = sizeof(kFieldLists) / sizeof(kFieldLists[0]);

constexpr FieldList fields_of(std::uint64_t kind) {
  return kind < kRecordKinds ? kFieldLists[kind] : FieldList{nullptr, 0};
}

// Copies of constant size compile to one move each.
inline std::uint64_t load_field(const Record& record, const Field& field) {
  const unsigned char* at = reinterpret_cast<const unsigned char*>(&record) + field.offset;
  std::uint64_t value = 0;  // little-endian: the low bytes are the value
  switch (field.width) {
    case 1:
      __builtin_memcpy(&value, at, 1);
      break;
    case 2:
      __builtin_memcpy(&value, at, 2);
      break;
    case 4:
      __builtin_memcpy(&value, at, 4);
      break;
    default:
      __builtin_memcpy(&value, at, 8);
      break;
  }
  return value;
}

inline void store_field(Record& record, const Field& field, std::uint64_t value) {
  unsigned char* at = reinterpret_cast<unsigned char*>(&record) + field.offset;
  switch (field.width) {
    case 1:
      __builtin_memcpy(at, &value, 1);
      break;
    case 2:
      __builtin_memcpy(at, &value, 2);
      break;
    case 4:
      __builtin_memcpy(at, &value, 4);
      break;
    default:
      __builtin_memcpy(at, &value, 8);
      break;
  }
}

constexpr bool fits(std::uint64_t value, std::uint8_t width) { return width == 8 || (value >> (8 * width)) == 0; }

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

}  // namespace llmprof::wire
