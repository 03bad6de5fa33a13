#pragma once
// What CudaIngest keeps of a process until it can be joined: launches, estimated kernels, shapes, matrix products and
// allocations.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/log/names.h"
#include "trace/join.h"
#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::record {

struct CudaLaunch : trace::Launch {  // thread_id 0: there is no launch
  std::uint32_t correlation = 0;
  std::uint16_t number = 0;  // LaunchRecord::number
  bool used = false;
  bool estimated = false;  // what it ran was not recorded in time
};

// Launches of a process by CUPTI's correlation id, until what they launched is seen. The ids count up, so the table is
// a ring over the newest of them: it grows while launches that nothing has used yet would be overwritten, up to a
// limit; then the oldest give way.
class CudaLaunches {
 public:
  void add(const CudaLaunch& launch) {
    if (slots_.empty()) slots_.resize(kFirst);
    while (in_the_way(launch) && slots_.size() < kMost) grow();
    slot(launch.correlation) = launch;
  }

  const CudaLaunch* use(std::uint32_t correlation) {
    if (slots_.empty()) return nullptr;
    CudaLaunch& found = slot(correlation);
    if (found.thread_id == 0 || found.correlation != correlation) return nullptr;
    found.used = true;
    return &found;
  }

  // What it ran was not recorded, or does not count any more.
  void estimate(std::uint32_t correlation) {
    CudaLaunch& found = slot(correlation);
    if (found.correlation == correlation) found.used = found.estimated = true;
  }

 private:
  static constexpr std::size_t kFirst = 1u << 12, kMost = 1u << 19;

  CudaLaunch& slot(std::uint32_t correlation) { return slots_[correlation & (slots_.size() - 1)]; }
  bool in_the_way(const CudaLaunch& launch) {
    const CudaLaunch& old = slot(launch.correlation);
    return old.thread_id != 0 && !old.used && old.correlation != launch.correlation;
  }
  void grow() {
    std::vector<CudaLaunch> before(2 * slots_.size());
    before.swap(slots_);
    for (const CudaLaunch& launch : before) {
      if (launch.thread_id != 0) slot(launch.correlation) = launch;
    }
  }

  std::vector<CudaLaunch> slots_;
};

// Kernels whose launch was noted and whose times were not recorded: the same launch ran at other times, so it took as
// long as it did lately there. It began when the device had ended what was before it on its stream, or, where there was
// nothing, as long after its launch as it did there. Durations are means, so that sums are right.
//
// Records of kernels come later than those of launches, so launches wait here, and are looked at in their order.
class CudaEstimates {
 public:
  // A launch with a number, in the order of the log.
  void launched(const CudaLaunch& launch, bool noted);
  // What it ran, as recorded.
  void ran(const CudaLaunch& launch, const trace::KernelRow& row);

  struct Estimate {
    CudaLaunch launch;
    std::optional<trace::KernelRow> row;  // none: the same launch was never recorded
  };
  // The next of the noted launches that have waited long enough, or until `before_ns`; none: there is none yet.
  std::optional<Estimate> next(std::int64_t before_ns = INT64_MIN);

 private:
  static constexpr std::int64_t kPatienceNs = 2'000'000'000;
  static constexpr std::size_t kMostWaiting = 1u << 20;

  // Of the newest, so that times that grow with the run are followed.
  struct Mean {
    double value = 0;
    double count = 0;
    void add(std::int64_t sample);
    std::int64_t rounded() const { return static_cast<std::int64_t>(value + 0.5); }
  };
  struct Known {
    trace::KernelRow row;  // the last one: its name, its size, where it ran
    Mean duration, after_launch, after_last;
  };
  struct Waiting {
    CudaLaunch launch;
    bool noted = false;
    std::optional<trace::KernelRow> row;
  };
  using Stream = std::pair<trace::Id, std::int64_t>;

  static Stream stream_of(const trace::KernelRow& row) { return {row.device_id, row.stream.value_or(0)}; }
  void learn(const CudaLaunch& launch, const trace::KernelRow& row);
  std::optional<trace::KernelRow> estimate(const CudaLaunch& launch);

  std::deque<Waiting> waiting_;
  std::uint64_t first_ = 0;                                  // number of waiting_.front()
  std::unordered_map<std::uint32_t, std::uint64_t> places_;  // by correlation
  std::unordered_map<std::uint32_t, Known> known_;           // by number of the launch; a collector has 8192
  std::map<Stream, std::int64_t> ended_ns_;                  // when the last kernel of a stream did
  std::int64_t newest_ns_ = INT64_MIN;
};

// What kernels and GPU matrix products of one log were launched with, as its definitions say. Numbers belong to one
// log; what they stand for is kept as long as the process is read, each once.
//
// The columns of a kernel that its shape gives.
struct KernelShape {
  trace::Name name;
  std::int32_t grid_x, grid_y, grid_z;
  std::int32_t block_x, block_y, block_z;
  std::int32_t registers;
  std::int32_t shared_bytes;
};

// The columns of a product that its shape gives.
struct GemmShape {
  trace::Name function, library, algorithm, epilogue, scaling;
  trace::Name type_a, type_b, type_c, compute_type;
  wire::Layout layout;
  wire::Transpose transpose_a, transpose_b;
};

// Definitions of one kind: by number in the log, and each content once.
template <class Shape>
class ShapeTable {
 public:
  static constexpr std::size_t kMost = 1u << 18;  // a collector has half of it

  void define(wire::DefinitionId id, const Shape& shape) {
    const std::string key(reinterpret_cast<const char*>(&shape), sizeof shape);
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (shapes_.size() == kMost) return;
      shapes_.push_back(shape);
      found = known_.emplace(key, &shapes_.back()).first;
    }
    if (numbers_.size() < kMost) numbers_[id] = found->second;
  }
  const Shape* find(wire::DefinitionId id) const {
    const auto found = numbers_.find(id);
    return found == numbers_.end() ? nullptr : found->second;
  }
  void next_log() { numbers_.clear(); }

 private:
  std::deque<Shape> shapes_;  // a deque: pointers into it stay valid
  std::unordered_map<std::string, const Shape*> known_;
  std::unordered_map<wire::DefinitionId, const Shape*> numbers_;
};

KernelShape to_shape(const wire::KernelShapeRecord& record, LogNames& names);
GemmShape to_shape(const wire::GemmShapeRecord& record, LogNames& names);

// The GPU matrix products of a process: what was launched, or captured, inside a call belongs to it. The newest calls
// are kept until what they launched has been seen; then they become rows, each with the longest of its kernels.

}  // namespace llmprof::record

namespace llmprof::trace {

class RunWriter;
}

namespace llmprof::record {

class CudaGemms {
 public:
  static constexpr std::size_t kKept = 1u << 16;

  explicit CudaGemms(trace::RunWriter& writer);

  // `arrived` is when in the log, for those who wait for it.
  void add(trace::Id id, const wire::GpuGemmRecord& record, const GemmShape* shape, trace::Id thread_id,
           std::uint64_t arrived);
  bool full() const { return calls_.size() >= kKept; }
  std::uint64_t oldest() const { return calls_.front().arrived; }
  std::int64_t oldest_end_ns() const { return calls_.front().row.end_ns; }
  void write_oldest();
  void write_all();

  // The innermost call of the thread that was going on at this time; nullptr if none.
  struct Call {
    trace::GemmRow row;
    std::int64_t kernel_ns = -1;  // duration of row.kernel_id
    std::uint64_t arrived = 0;
  };
  Call* at(trace::Id thread_id, std::int64_t ts_ns);
  static void ran(Call& call, trace::Id kernel_id, std::int64_t duration_ns);

 private:
  // Calls of a thread in the order they ended, which is the order they are in the log.
  using Calls = std::deque<std::uint64_t>;

  Call& call(std::uint64_t number) { return calls_[number - first_]; }

  trace::RunWriter& writer_;
  LayoutNames layouts_;
  std::deque<Call> calls_;
  std::uint64_t first_ = 0;  // number of calls_.front()
  std::unordered_map<trace::Id, Calls> threads_;
};

}  // namespace llmprof::record

namespace llmprof::record {

// Allocations of a process: an allocation and the free of the same address meet. They may be of different threads,
// whose records come in any order, so the newest wait and are put in order of time first.

}  // namespace llmprof::record

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

namespace llmprof::record {}  // namespace llmprof::record
