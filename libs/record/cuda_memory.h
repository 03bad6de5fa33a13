#pragma once
// Allocations of a process: an allocation and the free of the same address meet. They may be of different threads,
// whose records come in any order, so the newest wait and are put in order of time first.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

class CudaMemory {
 public:
  CudaMemory(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id);

  void take(const wire::DeviceMemoryRecord& record, trace::OptionalId device_id, trace::Id thread_id,
            trace::OptionalId stack_id);
  void finish();

 private:
  static constexpr std::size_t kWaiting = 1u << 16, kMostOpen = 1u << 20;

  struct Event {
    trace::AllocationRow row;  // begin_ns is the time of a free too
    bool frees;
  };
  void settle(std::size_t count);
  void allocate(const trace::AllocationRow& row);
  void free(std::int64_t address, std::int64_t ts_ns);

  trace::RunWriter& writer_;
  trace::Id process_id_;
  trace::Id& next_id_;
  trace::Name kinds_[5];
  std::vector<Event> waiting_;
  std::unordered_map<std::int64_t, trace::AllocationRow> open_;  // by address
};

}  // namespace llmprof::record
