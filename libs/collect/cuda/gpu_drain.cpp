#include "collect/cuda/gpu_drain.h"

#include "collect/clock.h"
#include "collect/cuda/activity.h"
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/gpu.h"
#include "collect/names.h"

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
