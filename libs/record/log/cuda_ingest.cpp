#include "record/log/cuda_ingest.h"

#include <fmt/format.h>

#include <algorithm>

#include "record/log/ingest.h"

namespace llmprof::record {
namespace {

using wire::RecordKind;

constexpr std::size_t kMostDevices = 256, kMostSaid = 4096;  // of a process

}  // namespace

CudaIngest::CudaIngest(RunRows& rows, LogNames& names, trace::Id process_id, const TimeWindow& window,
                       const RangePairing& ranges)
    : rows_(rows),
      names_(names),
      process_id_(process_id),
      times_{window},
      ranges_(ranges),
      stacks_(rows, names),
      layouts_(rows.writer.strings()),
      gemms_(rows.writer),
      memory_(rows.writer, process_id, rows.next_id),
      counters_(rows.writer, rows.next_id) {
  trace::Strings& strings = rows.writer.strings();
  constexpr const char* kDirections[] = {
      nullptr, "host_to_device", "device_to_host", "device_to_device", "host_to_host", "peer", "fill"};
  for (std::size_t i = 1; i < std::size(directions_); ++i) directions_[i] = strings.intern(kDirections[i]);
  host_memories_[1] = strings.intern("pageable");
  host_memories_[2] = strings.intern("pinned");
  host_memories_[4] = strings.intern("managed");
}

bool CudaIngest::takes(RecordKind kind) {
  return (kind >= RecordKind::kDevice && kind <= RecordKind::kGap) ||
         (kind >= RecordKind::kNote && kind <= RecordKind::kStall) || kind == RecordKind::kFrame ||
         kind == RecordKind::kStack;
}

void CudaIngest::take(RecordKind kind, trace::Id thread_id, std::span<const wire::Record> records) {
  for (const wire::Record& record : records) take_one(kind, thread_id, record);
}

void CudaIngest::take_one(RecordKind kind, trace::Id thread_id, const wire::Record& record) {
  Waiting waiting;
  waiting.kind = kind;
  switch (kind) {
    case RecordKind::kKernel:
      waiting.kernel = record.kernel;
      waiting.shape = kernel_shapes_.find(record.kernel.shape);
      return wait(waiting);
    case RecordKind::kCopy:
      waiting.copy = record.copy;
      return wait(waiting);
    case RecordKind::kGraphLaunch:
      waiting.graph_launch = record.graph_launch;
      return wait(waiting);
    case RecordKind::kLaunch:
      return take_launch(record.launch, thread_id);
    case RecordKind::kGpuGemm:
      return take_gemm(record.gpu_gemm, thread_id);
    case RecordKind::kGraphNode:
      return take_node(record.graph_node, thread_id);
    case RecordKind::kKernelShape:
      return kernel_shapes_.define(record.kernel_shape.id, to_row(record.kernel_shape, names_));
    case RecordKind::kGemmShape:
      return gemm_shapes_.define(record.gemm_shape.id, to_row(record.gemm_shape, names_, layouts_));
    case RecordKind::kFrame:
      return stacks_.take(record.frame);
    case RecordKind::kStack:
      return stacks_.take(record.stack);
    case RecordKind::kDevice:
      return take_device(record.device);
    case RecordKind::kDeviceMemory:
      return take_memory(record.device_memory, thread_id);
    case RecordKind::kApi:
      return take_api(record.api, thread_id);
    case RecordKind::kGap:
      return take_gap(record.gap);
    case RecordKind::kNote:
      return take_note(record.note);
    case RecordKind::kCounterWindow:
      return take_counter_window(record.counter_window, thread_id);
    case RecordKind::kCounter:
      return take_counter(record.counter);
    case RecordKind::kStall:
      return take_stall(record.stall);
    default:
      ++counts_.unknown;
  }
}

void CudaIngest::next_log() {
  stacks_.next_log();
  kernel_shapes_.next_log();
  gemm_shapes_.next_log();
}

void CudaIngest::finish() {
  while (!waiting_.empty()) leave();
  write_estimates(INT64_MAX);
  gemms_.write_all();
  graph_launches_.write_all(rows_.writer);
  counts_.graph_launches = graph_launches_.written();
  counters_.write_all();
  counts_.unknown += counters_.unknown();
  stalls_.write(rows_.writer, process_id_, rows_.next_id);
  counts_.graph_unknown -= nodes_.adopt_nested(graphs_);
  nodes_.write(rows_.writer, graphs_, rows_.next_id);
  memory_.finish();
  counts_.bad_times += times_.bad_times;
  counts_.too_old += times_.too_old;
}

bool CudaIngest::in_time(std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (!times_.keeps(begin_ns, end_ns)) return false;
  last_ns_ = std::max(last_ns_, static_cast<std::int64_t>(end_ns));
  return true;
}

void CudaIngest::take_device(const wire::DeviceRecord& record) {
  if (devices_.size() >= kMostDevices || devices_.contains(record.device)) return;
  hw::Device device;
  device.kind = "gpu";
  device.name = names_.text(record.name);
  if (record.compute_capability != 0) device.chip = fmt::format("sm_{}", record.compute_capability);
  device.units = record.units;
  device.memory_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(record.memory_bytes, INT64_MAX));
  devices_[record.device] = rows_.devices.find({record.uuid_high, record.uuid_low}, device, rows_.next_id);
}

// A number that no record explains is a device of its own.
trace::Id CudaIngest::device_id(std::uint32_t number) {
  const auto found = devices_.find(number);
  if (found != devices_.end()) return found->second;
  if (devices_.size() >= kMostDevices) return devices_.begin()->second;
  hw::Device device;
  device.kind = "gpu";
  return devices_[number] = rows_.devices.find({}, device, rows_.next_id);
}

void CudaIngest::take_launch(const wire::LaunchRecord& record, trace::Id thread_id) {
  if (record.captured != 0) return;  // nothing ran: its nodes tell
  const std::uint64_t end_ns = record.end_ns != 0 ? record.end_ns : record.begin_ns;
  if (!times_.accepts(record.begin_ns, end_ns)) return;
  CudaLaunch launch;
  launch.begin_ns = static_cast<std::int64_t>(record.begin_ns);
  if (record.end_ns != 0) launch.end_ns = static_cast<std::int64_t>(record.end_ns);
  launch.thread_id = thread_id;
  launch.stack_id = stacks_.id(record.stack).value_or(0);
  launch.correlation = record.correlation;
  launch.number = record.number;
  CudaGraph* graph = record.op == wire::LaunchOp::kGraph ? graphs_.of(record.graph, rows_.next_id) : nullptr;
  if (graph != nullptr) graph->launch_called(launch.begin_ns);
  launches_.add(launch);
  if (record.number == 0) return;
  estimates_.launched(launch, record.end_ns == 0);
  write_estimates();
}

void CudaIngest::take_gemm(const wire::GpuGemmRecord& record, trace::Id thread_id) {
  if (!in_time(record.begin_ns, record.end_ns)) return;
  // Those who came before the oldest call have waited long enough.
  if (gemms_.full()) {
    while (!waiting_.empty() && waiting_.front().arrived < gemms_.oldest()) leave();
    write_estimates(gemms_.oldest_end_ns());
    gemms_.write_oldest();
  }
  gemms_.add(rows_.next_id++, record, gemm_shapes_.find(record.shape), thread_id, arrived_++);
  ++counts_.gemms;
}

void CudaIngest::take_memory(const wire::DeviceMemoryRecord& record, trace::Id thread_id) {
  if (record.op != wire::MemoryOp::kAllocate && record.op != wire::MemoryOp::kFree) {
    ++counts_.unknown;
    return;
  }
  if (!times_.accepts(record.ts_ns)) return;
  const bool on_host = record.kind == wire::MemoryKind::kPinned;
  memory_.take(record, on_host ? trace::OptionalId() : device_id(record.device), thread_id, stacks_.id(record.stack));
}

void CudaIngest::take_api(const wire::ApiRecord& record, trace::Id thread_id) {
  if (!in_time(record.begin_ns, record.end_ns)) return;
  trace::ApiRow row;
  row.id = rows_.next_id++;
  fill(row, record, &names_);
  row.thread_id = thread_id;
  if (record.correlation == 0) row.correlation.reset();
  if (record.stream == 0) row.stream.reset();
  rows_.writer.add(row);
}

void CudaIngest::take_gap(const wire::GapRecord& record) {
  const trace::Name why = names_.name(record.why);
  if (said_.size() >= kMostSaid || !said_.insert({record.begin_ns, why.id, 0}).second) return;
  const auto end_ns = std::min(record.end_ns, static_cast<std::uint64_t>(times_.end_ns));
  if (!times_.accepts(record.begin_ns, end_ns)) return;
  rows_.writer.add(
      trace::GapRow{static_cast<std::int64_t>(record.begin_ns), static_cast<std::int64_t>(end_ns), process_id_, why});
}

void CudaIngest::take_note(const wire::NoteRecord& record) {
  const trace::Name subject = names_.name(record.subject), text = names_.name(record.text);
  if (said_.size() >= kMostSaid || !said_.insert({record.ts_ns, subject.id, text.id}).second) return;
  if (!times_.accepts(record.ts_ns)) return;
  rows_.writer.add(trace::NoteRow{static_cast<std::int64_t>(record.ts_ns), process_id_, subject, text});
}

// Windows wait for kernels, and kernels wait themselves: both give way by half.
void CudaIngest::make_room_for_counters() {
  if (!counters_.full()) return;
  for (std::size_t left = waiting_.size() / 2; left > 0; --left) leave();
  counters_.write_older_half();
}

void CudaIngest::take_counter_window(const wire::CounterWindowRecord& record, trace::Id thread_id) {
  make_room_for_counters();
  if (!in_time(record.begin_ns, record.end_ns)) return counters_.dropped(record.measurement);
  const bool of_kernel = record.scope == wire::CounterScope::kKernel;
  const trace::Name name = of_kernel ? names_.gpu_kernel_name(record.name) : names_.name(record.name);
  const auto thread = thread_id != 0 ? trace::OptionalId(thread_id) : trace::OptionalId();
  counters_.window(record, name, {process_id_, thread, device_id(record.device)});
}

void CudaIngest::take_counter(const wire::CounterRecord& record) {
  make_room_for_counters();
  counters_.value(record.measurement, names_.name(record.metric), record.value);
}

void CudaIngest::take_stall(const wire::StallRecord& record) {
  if (!in_time(record.ts_ns, record.ts_ns)) return;
  stalls_.take(record, {names_.gpu_kernel_name(record.function), names_.name(record.reason), names_.name(record.file)},
               device_id(record.device));
}

void CudaIngest::add_losses(Ledger& ledger) const {
  counters_.add_losses(ledger, process_id_);
  ledger.add(trace::Loss::kCountersSkipped, stalls_.lost(), process_id_,
             "samples of stalls at more places than are kept");
}

}  // namespace llmprof::record
