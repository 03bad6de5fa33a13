#include "importers/nsys_sqlite/work.h"

namespace llmprof::importers::nsys {
namespace {

// Columns of all tables of device work first, those that every export has at the beginning.
enum Column : int { kStart, kEnd, kDevice, kStream, kCorrelation, kGlobalPid, kGraphNode, kFirstOwn };
enum KernelColumn : int {
  kMangled = kFirstOwn,
  kDemangled,
  kShort,
  kRegisters,
  kGridX,
  kGridY,
  kGridZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kStatic,
  kDynamic
};
enum CopyColumn : int { kBytes = kFirstOwn, kCopyKind, kSourceKind, kTargetKind };
constexpr std::size_t kNeeded = 2;  // start and end

trace::OptionalInt32 small(std::optional<std::int64_t> value) {
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

// Of ENUM_CUDA_MEMCPY_OPER. Arrays are device memory; the last three are migrations of managed memory.
std::string_view direction_of(std::int64_t kind) {
  switch (kind) {
    case 1:
    case 3:
    case 11:
      return "host_to_device";
    case 2:
    case 4:
    case 12:
      return "device_to_host";
    case 5:
    case 6:
    case 7:
    case 8:
    case 13:
      return "device_to_device";
    case 9:
      return "host_to_host";
    case 10:
      return "peer";
    default:
      return "";
  }
}

// Of ENUM_CUDA_MEM_KIND.
std::string_view host_memory_of(std::int64_t kind) {
  return kind == 0 ? "pageable" : kind == 1 ? "pinned" : kind == 4 || kind == 6 ? "managed" : "";
}

}  // namespace

void Work::find_call(Common& work, std::optional<std::int64_t> correlation, bool launched) {
  const bool usable = correlation && *correlation >= 0 && *correlation <= UINT32_MAX;
  if (usable) {
    work.correlation = static_cast<std::uint32_t>(*correlation);
    if (const auto call = launches_.find(work.process, work.correlation))
      work.launch = trace::Launch{actors_.thread_id(call->thread), call->begin_ns, call->end_ns, stack_ids_[call->stack]};
  }
  if (!work.launch && launched) sink_.lose(trace::Loss::kLaunchLost, 1);
}

std::optional<Work::Common> Work::common(Rows& rows, bool launched) {
  const auto start = rows.integer(kStart), end = rows.integer(kEnd), device = rows.integer(kDevice),
             stream = rows.integer(kStream), correlation = rows.integer(kCorrelation),
             global = rows.integer(kGlobalPid), node = rows.integer(kGraphNode);
  if (rows.odd() || !start || !end) {
    rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    return std::nullopt;
  }
  if (*start == 0 && *end == 0) {
    rows.lose(trace::Loss::kZeroTimes, "executions");
    return std::nullopt;
  }
  if (*end < *start || !is_time(*start) || !is_time(*end)) {
    rows.lose(trace::Loss::kBadTime, "times");
    return std::nullopt;
  }
  Common work;
  work.begin_ns = *start;
  work.end_ns = *end;
  work.process = actors_.process(global);
  actors_.saw(work.process, *start, *end);
  work.device_id = devices_.of_cuda(actors_.pid(work.process), device.value_or(0));
  work.stream = stream.value_or(0);
  work.node = node;
  find_call(work, correlation, launched);
  found_any_ = true;
  return work;
}

template <class Row>
void Work::fill(Row& row, const Common& work) {
  row.id = sink_.new_id();
  row.begin_ns = work.begin_ns;
  row.end_ns = work.end_ns;
  row.device_id = work.device_id;
  row.stream = work.stream;
  trace::set_launch(row, work.launch ? &*work.launch : nullptr);
}

Graphs::Ids Work::graph_ids(const Common& work, Graphs::Kind kind, trace::Name name) {
  if (!work.node) return {};
  return graphs_.take({work.process, *work.node, work.correlation, kind, name, work.begin_ns, work.end_ns,
                       work.device_id, work.stream, work.launch});
}

void Work::take_kernel(Rows& rows) {
  trace::KernelRow row;
  row.name.id = 0;
  const auto mangled = rows.integer(kMangled);
  const auto demangled = mangled ? std::nullopt : rows.integer(kDemangled);
  const auto short_name = mangled || demangled ? std::nullopt : rows.integer(kShort);
  row.registers = small(rows.integer(kRegisters));
  row.grid_x = small(rows.integer(kGridX));
  row.grid_y = small(rows.integer(kGridY));
  row.grid_z = small(rows.integer(kGridZ));
  row.block_x = small(rows.integer(kBlockX));
  row.block_y = small(rows.integer(kBlockY));
  row.block_z = small(rows.integer(kBlockZ));
  const auto fixed = small(rows.integer(kStatic)), dynamic = small(rows.integer(kDynamic));
  if (fixed || dynamic) row.shared_bytes = small(std::int64_t{fixed.value_or(0)} + dynamic.value_or(0));
  const auto work = common(rows);
  if (!work) return;
  row.name = strings_.kernel(mangled, demangled, short_name);
  fill(row, *work);
  const Graphs::Ids ids = graph_ids(*work, Graphs::Kind::kKernel, row.name);
  row.graph_launch_id = ids.launch;
  row.graph_node_id = ids.node;
  sink_.add(row);
}

Result<void> Work::read_kernels() {
  LLMPROF_LET(Rows rows,
              database_.rows("CUPTI_ACTIVITY_KIND_KERNEL",
                             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId",
                              "mangledName", "demangledName", "shortName", "registersPerThread", "gridX", "gridY",
                              "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"},
                             kNeeded));
  while (rows.next()) take_kernel(rows);
  return rows.finish();
}

void Work::add_copy(const Common& work, std::string_view direction, std::int64_t bytes, std::string_view host_memory) {
  trace::CopyRow row;
  fill(row, work);
  row.direction = sink_.name(direction);
  row.bytes = bytes;
  if (!host_memory.empty()) row.host_memory = sink_.name(host_memory);
  const auto kind = direction == "fill" ? Graphs::Kind::kMemset : Graphs::Kind::kMemcpy;
  const Graphs::Ids ids = graph_ids(work, kind, {});
  row.graph_launch_id = ids.launch;
  row.graph_node_id = ids.node;
  sink_.add(row);
}

void Work::take_copy(Rows& rows) {
  const auto bytes = rows.integer(kBytes), kind = rows.integer(kCopyKind), source = rows.integer(kSourceKind),
             target = rows.integer(kTargetKind);
  const std::string_view direction = direction_of(kind.value_or(0));
  const bool migration = kind.value_or(0) >= 11;  // by the driver, not by a call
  if (!rows.odd() && (!bytes || *bytes < 0 || direction.empty()))
    return rows.lose(trace::Loss::kInputDamaged, "copies of an unknown kind or size");
  const auto work = common(rows, !migration);
  if (!work) return;
  const std::int64_t host_side = (direction == "device_to_host" ? target : source).value_or(-1);
  const bool with_host = direction.find("host") != std::string_view::npos;
  add_copy(*work, direction, *bytes, migration ? "managed" : with_host ? host_memory_of(host_side) : "");
}

Result<void> Work::read_copies() {
  LLMPROF_LET(Rows rows, database_.rows("CUPTI_ACTIVITY_KIND_MEMCPY",
                                        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                                         "graphNodeId", "bytes", "copyKind", "srcKind", "dstKind"},
                                        kNeeded));
  while (rows.next()) take_copy(rows);
  return rows.finish();
}

Result<void> Work::read_fills() {
  LLMPROF_LET(Rows rows, database_.rows("CUPTI_ACTIVITY_KIND_MEMSET",
                                        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                                         "graphNodeId", "bytes"},
                                        kNeeded));
  while (rows.next()) {
    const std::int64_t bytes = rows.integer_or(kBytes, 0);
    if (const auto work = common(rows)) add_copy(*work, "fill", std::max<std::int64_t>(bytes, 0), "");
  }
  return rows.finish();
}

Result<void> Work::read_graph_launches() {
  enum Own : int { kGraph = kFirstOwn, kExecutable };
  LLMPROF_LET(Rows rows, database_.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                                         "graphNodeId", "graphId", "graphExecId"},
                                        kNeeded));
  while (rows.next()) {
    const auto graph = rows.integer(kGraph), executable = rows.integer(kExecutable);
    const auto work = common(rows);
    if (!work) continue;
    trace::GraphLaunchRow row;
    fill(row, *work);
    row.graph = graphs_.graph_id(work->process, executable ? *executable : graph.value_or(0));
    sink_.add(row);
  }
  return rows.finish();
}

}  // namespace llmprof::importers::nsys
