#include "collect/cuda/activity.h"

#include <string.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/gpu.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/tables.h"

namespace llmprof::collect::cupti {

namespace {

using wire::Record;
using wire::RecordKind;

template <class T>
T narrow(std::uint32_t value) {
  constexpr T kMost = static_cast<T>(~T{0});
  return value > kMost ? kMost : static_cast<T>(value);
}

std::uint32_t natural(std::int32_t value) { return value > 0 ? static_cast<std::uint32_t>(value) : 0; }

void fill_shape(const KernelActivity& kernel, Record* record) {
  clear(record, RecordKind::kKernelShape);
  wire::KernelShapeRecord& shape = record->kernel_shape;
  shape.grid_x = natural(kernel.grid_x);
  shape.grid_y = natural(kernel.grid_y);
  shape.grid_z = natural(kernel.grid_z);
  shape.block_x = narrow<std::uint16_t>(natural(kernel.block_x));
  shape.block_y = narrow<std::uint16_t>(natural(kernel.block_y));
  shape.block_z = narrow<std::uint16_t>(natural(kernel.block_z));
  shape.registers = kernel.registers;
  shape.static_shared_bytes = natural(kernel.static_shared);
  shape.dynamic_shared_bytes = natural(kernel.dynamic_shared);
  shape.local_bytes = kernel.local_per_thread;
  shape.cluster_x = narrow<std::uint16_t>(kernel.cluster_x);
  shape.cluster_y = narrow<std::uint16_t>(kernel.cluster_y);
  shape.cluster_z = narrow<std::uint16_t>(kernel.cluster_z);
}

// What a shape is but for its name and id, which come first.
constexpr std::size_t kConfigured = offsetof(Record, kernel_shape.grid_x);
bool same_configuration(const Record& a, const Record& b) {
  return memcmp(reinterpret_cast<const unsigned char*>(&a) + kConfigured,
                reinterpret_cast<const unsigned char*>(&b) + kConfigured, sizeof(Record) - kConfigured) == 0;
}

std::uint32_t slot_of(const KernelActivity& kernel) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(kernel.name) * kOdd;
  hash = (hash ^ natural(kernel.grid_x) ^ (std::uint64_t{natural(kernel.grid_y)} << 20)) * kOdd;
  hash = (hash ^ natural(kernel.block_x) ^ (std::uint64_t{natural(kernel.grid_z)} << 20)) * kOdd;
  return static_cast<std::uint32_t>(hash >> 40);
}

// What a number of CUPTI's is to us; the first entry where it is not listed.
template <class To>
struct Pair {
  std::uint32_t from;
  To to;
};
template <class To, std::size_t N>
To translate(const Pair<To> (&pairs)[N], std::uint32_t number) {
  for (const Pair<To>& pair : pairs) {
    if (pair.from == number) return pair.to;
  }
  return pairs[0].to;
}

constexpr Pair<wire::CopyKind> kCopyKinds[] = {{0, wire::CopyKind::kUnknown},
                                               {kCopyHostToDevice, wire::CopyKind::kHostToDevice},
                                               {kCopyHostToArray, wire::CopyKind::kHostToDevice},
                                               {kCopyDeviceToHost, wire::CopyKind::kDeviceToHost},
                                               {kCopyArrayToHost, wire::CopyKind::kDeviceToHost},
                                               {kCopyDeviceToDevice, wire::CopyKind::kDeviceToDevice},
                                               {kCopyArrayToArray, wire::CopyKind::kDeviceToDevice},
                                               {kCopyArrayToDevice, wire::CopyKind::kDeviceToDevice},
                                               {kCopyDeviceToArray, wire::CopyKind::kDeviceToDevice},
                                               {kCopyHostToHost, wire::CopyKind::kHostToHost},
                                               {kCopyPeerToPeer, wire::CopyKind::kPeer}};
constexpr Pair<wire::HostMemory> kHostMemories[] = {{0, wire::HostMemory::kUnknown},
                                                    {kMemoryPageable, wire::HostMemory::kPageable},
                                                    {kMemoryPinned, wire::HostMemory::kPinned},
                                                    {kMemoryDevice, wire::HostMemory::kDevice},
                                                    {kMemoryArray, wire::HostMemory::kDevice},
                                                    {kMemoryDeviceStatic, wire::HostMemory::kDevice},
                                                    {kMemoryManaged, wire::HostMemory::kManaged},
                                                    {kMemoryManagedStatic, wire::HostMemory::kManaged}};
constexpr Pair<const char*> kOverheads[] = {{0, "overhead: other"},
                                            {1, "overhead: driver compiler"},
                                            {1u << 16, "overhead: CUPTI buffer flush"},
                                            {2u << 16, "overhead: CUPTI instrumentation"},
                                            {3u << 16, "overhead: CUPTI resource"},
                                            {4u << 16, "overhead: module loading"},
                                            {5u << 16, "overhead: lazy function loading"},
                                            {6u << 16, "overhead: command buffer full"},
                                            {7u << 16, "overhead: activity buffer request"},
                                            {8u << 16, "overhead: UVM activity start"}};

void convert_kernel(const KernelActivity& kernel, ShapeCache* shapes, Record* record) {
  clear(record, RecordKind::kKernel);
  record->kernel = {kernel.start,
                    kernel.end,
                    kernel.graph_node,
                    kernel.correlation,
                    shapes->shape_of(kernel),
                    kernel.stream,
                    kernel.graph,
                    kernel.context,
                    narrow<std::uint16_t>(kernel.device)};
}

// Copies between devices and memsets have the same members elsewhere.
template <class CopyLike>
void convert_copy(const CopyLike& copy, wire::CopyKind kind, std::uint32_t memory, Record* record) {
  clear(record, RecordKind::kCopy);
  record->copy = {copy.start,
                  copy.end,
                  copy.bytes,
                  copy.graph_node,
                  copy.correlation,
                  copy.stream,
                  copy.graph,
                  narrow<std::uint16_t>(copy.device),
                  kind,
                  translate(kHostMemories, memory)};
}

void convert_graph(const GraphActivity& graph, Record* record) {
  clear(record, RecordKind::kGraphLaunch);
  record->graph_launch = {graph.start,
                          graph.end,
                          graph.correlation,
                          graph.graph,
                          graph.stream,
                          graph.context,
                          narrow<std::uint16_t>(graph.device)};
}

void convert_overhead(const OverheadActivity& overhead, Record* record) {
  clear(record, RecordKind::kApi);
  record->api.begin_ns = overhead.start;
  record->api.end_ns = overhead.end;
  record->api.name = intern(translate(kOverheads, overhead.overhead));
}

}  // namespace

wire::DefinitionId ShapeCache::shape_of(const KernelActivity& kernel) {
  Record record;
  fill_shape(kernel, &record);
  if (kernel.name == nullptr) return define(record);
  Slot& slot = slots_[slot_of(kernel) % kSlots];
  const StringTable& strings = g.shared.load(std::memory_order_relaxed)->strings;
  // A name that was cut, or stands for all that found no room, compares as different: it is looked up each time.
  const bool hit = slot.id != 0 && slot.address == kernel.name && same_configuration(slot.record, record) &&
                   strcmp(strings.text(slot.record.kernel_shape.name), kernel.name) == 0;
  if (hit) return slot.id;
  record.kernel_shape.name = intern(kernel.name);
  slot = {kernel.name, record, define(record)};
  return slot.id;
}

Converted convert(const Activity* activity, ShapeCache* shapes, Record* record) {
  switch (activity->kind) {
    case kConcurrentKernel:
    case kKernel: {
      const auto& kernel = *reinterpret_cast<const KernelActivity*>(activity);
      if (kernel.start == 0 || kernel.end == 0) return Converted::kZeroTimes;
      convert_kernel(kernel, shapes, record);
      return Converted::kRecord;
    }
    case kMemcpy: {
      const auto& copy = *reinterpret_cast<const CopyActivity*>(activity);
      const bool to_host = copy.copy_kind == kCopyDeviceToHost || copy.copy_kind == kCopyArrayToHost;
      convert_copy(copy, translate(kCopyKinds, copy.copy_kind), to_host ? copy.target_kind : copy.source_kind, record);
      break;
    }
    case kMemcpyPeer:
      convert_copy(*reinterpret_cast<const PeerCopyActivity*>(activity), wire::CopyKind::kPeer, kMemoryDevice, record);
      break;
    case kMemset: {
      const auto& fill = *reinterpret_cast<const MemsetActivity*>(activity);
      convert_copy(fill, wire::CopyKind::kMemset, fill.memory_kind, record);
      break;
    }
    case kGraphTrace:
      convert_graph(*reinterpret_cast<const GraphActivity*>(activity), record);
      return record->graph_launch.begin_ns == 0 || record->graph_launch.end_ns == 0 ? Converted::kZeroTimes
                                                                                    : Converted::kRecord;
    case kOverhead:
      convert_overhead(*reinterpret_cast<const OverheadActivity*>(activity), record);
      return Converted::kRecord;
    default:
      return Converted::kUnknown;
  }
  return record->copy.begin_ns == 0 || record->copy.end_ns == 0 ? Converted::kZeroTimes : Converted::kRecord;
}

}  // namespace llmprof::collect::cupti

namespace llmprof::collect {

namespace {

using wire::LossKind;
using wire::Record;
using wire::RecordKind;

// Long sections make small columns. One batch a kind: a section holds records of one kind.
constexpr RecordKind kKinds[] = {RecordKind::kKernel, RecordKind::kCopy, RecordKind::kGraphLaunch, RecordKind::kApi};
struct Batch {
  std::uint32_t count;
  Record records[kDeviceBatch];
};
constinit Batch batches[4]{};
constinit cupti::ShapeCache shapes{};

Batch& batch_of(RecordKind kind) {
  std::uint32_t i = 0;
  while (i < 3 && kKinds[i] != kind) ++i;
  return batches[i];
}

void shift(Record* record, std::uint64_t offset_ns) {
  // All kinds of device records begin with these two.
  static_assert(offsetof(Record, kernel.begin_ns) == offsetof(Record, copy.begin_ns) &&
                offsetof(Record, kernel.begin_ns) == offsetof(Record, graph_launch.begin_ns) &&
                offsetof(Record, kernel.begin_ns) == offsetof(Record, api.begin_ns) &&
                offsetof(Record, kernel.end_ns) == offsetof(Record, api.end_ns));
  record->kernel.begin_ns -= offset_ns;
  record->kernel.end_ns -= offset_ns;
}

void count_zero_times(const cupti::Activity& activity) {
  const bool kernel = activity.kind == cupti::kConcurrentKernel || activity.kind == cupti::kKernel;
  if (!kernel || !counters::replays_kernels()) return count_loss(LossKind::kZeroTimes);
  count_loss_about(LossKind::kZeroTimes, 1,
                   intern("kernels beside --replay: CUPTI gives no times of what it executes again"));
}

}  // namespace

void GpuDrain::run() {
  if (gpu.pid.load(std::memory_order_acquire) == 0 || gpu.pool.waiting() == 0 || !gpu_is_ours()) return;
  if (gpu.wall_clock) clock_offset_ns_ = read_clock_ns(CLOCK_REALTIME) - now_ns();
  std::size_t valid = 0;
  while (std::uint8_t* buffer = gpu.pool.next(&valid)) {
    read(buffer, valid);
    // After a forced flush CUPTI may still write into what it returned.
    if (gpu.finish.load(std::memory_order_acquire) == 0) gpu.pool.free(buffer);
  }
  flush();
}

void GpuDrain::read(std::uint8_t* buffer, std::size_t valid) {
  cupti::Activity* activity = nullptr;
  Record record;
  for (;;) {
    const std::uint32_t result = gpu.library.get_next_record(buffer, valid, &activity);
    if (result == cupti::kMaxLimitReached) return;
    if (!succeeded(cupti::Call::kGetNextRecord, result) || activity == nullptr) return;
    switch (convert(activity, &shapes, &record)) {
      case cupti::Converted::kRecord:
        add(record);
        break;
      case cupti::Converted::kZeroTimes:
        count_zero_times(*activity);
        break;
      case cupti::Converted::kUnknown:
        count_loss(LossKind::kUnknownActivity);
        break;
    }
  }
}

void GpuDrain::add(const Record& record) {
  Batch& batch = batch_of(record.kind);
  Record& slot = batch.records[batch.count];
  slot = record;
  if (clock_offset_ns_ != 0) shift(&slot, clock_offset_ns_);
  if (++batch.count == kDeviceBatch) flush();
}

void GpuDrain::flush() {
  for (Batch& batch : batches) {
    if (batch.count != 0) output_->device_records(batch.records, batch.count);
    batch.count = 0;
  }
}

}  // namespace llmprof::collect
