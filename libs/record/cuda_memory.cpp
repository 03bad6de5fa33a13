#include "record/cuda_memory.h"

#include <algorithm>

#include "trace/run_writer.h"

namespace llmprof::record {

CudaMemory::CudaMemory(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id)
    : writer_(writer), process_id_(process_id), next_id_(next_id) {
  constexpr const char* kKinds[] = {"device", "pinned", "managed", "pool", "mapped"};
  for (std::size_t i = 0; i < std::size(kinds_); ++i) kinds_[i] = writer.strings().intern(kKinds[i]);
}

void CudaMemory::take(const wire::DeviceMemoryRecord& record, trace::OptionalId device_id, trace::Id thread_id,
                      trace::OptionalId stack_id) {
  Event event;
  event.frees = record.op == wire::MemoryOp::kFree;
  event.row.begin_ns = static_cast<std::int64_t>(record.ts_ns);
  event.row.bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(record.bytes, INT64_MAX / 2));
  event.row.address = static_cast<std::int64_t>(record.address);
  event.row.device_id = device_id;
  event.row.stack_id = stack_id;
  event.row.kind = kinds_[std::min<std::size_t>(static_cast<std::size_t>(record.kind), std::size(kinds_) - 1)];
  event.row.process_id = process_id_;
  event.row.thread_id = thread_id;
  waiting_.push_back(event);
  if (waiting_.size() == kWaiting) settle(kWaiting / 2);
}

void CudaMemory::settle(std::size_t count) {
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Event& a, const Event& b) { return a.row.begin_ns < b.row.begin_ns; });
  for (std::size_t i = 0; i < count; ++i) {
    const Event& event = waiting_[i];
    event.frees ? free(*event.row.address, event.row.begin_ns) : allocate(event.row);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
}

// An address that is handed out again was freed in between, whether or not that was seen.
void CudaMemory::allocate(const trace::AllocationRow& row) {
  free(*row.address, row.begin_ns);
  trace::AllocationRow numbered = row;
  numbered.id = next_id_++;
  if (open_.size() == kMostOpen) return writer_.add(numbered);
  open_[*row.address] = numbered;
}

// What was allocated before the recording began is not known.
void CudaMemory::free(std::int64_t address, std::int64_t ts_ns) {
  const auto found = open_.find(address);
  if (found == open_.end()) return;
  found->second.end_ns = ts_ns;
  writer_.add(found->second);
  open_.erase(found);
}

void CudaMemory::finish() {
  settle(waiting_.size());
  for (const auto& [address, row] : open_) writer_.add(row);
  open_.clear();
}

}  // namespace llmprof::record
