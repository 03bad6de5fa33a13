#pragma once
// What CudaIngest keeps of a process until it can be joined: launches, estimated kernels, shapes, matrix products and
// allocations.

#include <algorithm>
#include <cstdint>
#include <cstring>
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
#include "trace/run_writer.h"
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
  void launched(const CudaLaunch& launch, bool noted) {
    places_[launch.correlation] = first_ + waiting_.size();
    waiting_.push_back({launch, noted, {}});
    newest_ns_ = std::max(newest_ns_, launch.begin_ns);
  }

  // What it ran, as recorded.
  void ran(const CudaLaunch& launch, const trace::KernelRow& row) {
    const auto place = places_.find(launch.correlation);
    if (place != places_.end()) waiting_[place->second - first_].row = row;
  }

  struct Estimate {
    CudaLaunch launch;
    std::optional<trace::KernelRow> row;  // none: the same launch was never recorded
  };
  // The next of the noted launches that have waited long enough, or until `before_ns`; none: there is none yet.
  std::optional<Estimate> next(std::int64_t before_ns = INT64_MIN) {
    while (!waiting_.empty()) {
      const Waiting& oldest = waiting_.front();
      const bool is_due = oldest.row || oldest.launch.begin_ns < newest_ns_ - kPatienceNs ||
                          oldest.launch.begin_ns < before_ns || waiting_.size() > kMostWaiting;
      if (!is_due) return std::nullopt;
      const Waiting waiting = oldest;
      places_.erase(waiting.launch.correlation);
      waiting_.pop_front();
      ++first_;
      if (waiting.row) {
        learn(waiting.launch, *waiting.row);
      } else if (waiting.noted) {
        return Estimate{waiting.launch, estimate(waiting.launch)};
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::int64_t kPatienceNs = 2'000'000'000;
  static constexpr std::size_t kMostWaiting = 1u << 20;

  // Of the newest, so that times that grow with the run are followed.
  struct Mean {
    double value = 0;
    double count = 0;
    void add(std::int64_t sample) {
      constexpr double kNewest = 32;
      count = std::min(count + 1, kNewest);
      value += (static_cast<double>(sample) - value) / count;
    }
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
  void learn(const CudaLaunch& launch, const trace::KernelRow& row) {
    Known& known = known_[launch.number];
    std::int64_t& ended_ns = ended_ns_[stream_of(row)];
    known.row = row;
    known.duration.add(row.end_ns - row.begin_ns);
    if (ended_ns <= launch.begin_ns) {
      known.after_launch.add(row.begin_ns - launch.begin_ns);
    } else if (row.begin_ns >= ended_ns) {
      known.after_last.add(row.begin_ns - ended_ns);
    }
    ended_ns = std::max(ended_ns, row.end_ns);
  }

  std::optional<trace::KernelRow> estimate(const CudaLaunch& launch) {
    const auto found = known_.find(launch.number);
    if (found == known_.end()) return std::nullopt;
    const Known& known = found->second;
    trace::KernelRow row = known.row;
    std::int64_t& ended_ns = ended_ns_[stream_of(row)];
    row.begin_ns = launch.begin_ns + std::max<std::int64_t>(known.after_launch.rounded(), 0);
    if (ended_ns > launch.begin_ns) row.begin_ns = std::max(row.begin_ns, ended_ns + known.after_last.rounded());
    row.end_ns = row.begin_ns + known.duration.rounded();
    row.estimated = true;
    ended_ns = std::max(ended_ns, row.end_ns);
    return row;
  }

  std::deque<Waiting> waiting_;
  std::uint64_t first_ = 0;                                  // number of waiting_.front()
  std::unordered_map<std::uint32_t, std::uint64_t> places_;  // by correlation
  std::unordered_map<std::uint32_t, Known> known_;           // by number of the launch; a collector has 8192
  std::map<Stream, std::int64_t> ended_ns_;                  // when the last kernel of a stream did
  std::int64_t newest_ns_ = INT64_MIN;
};

// What kernels and GPU matrix products of one log were launched with, as its definitions say. Numbers belong to one
// log; what they stand for is kept as long as the process is read, each once.
// The columns of a kernel or a product that its shape gives are a row of which the rest is empty.

// Definitions of one kind: by number in the log, and each content once.
template <class Row>
class ShapeTable {
 public:
  static constexpr std::size_t kMost = 1u << 18;  // a collector has half of it

  void define(wire::DefinitionId id, const Row& shape) {
    const std::string key(reinterpret_cast<const char*>(&shape), sizeof shape);
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (shapes_.size() == kMost) return;
      shapes_.push_back(shape);
      found = known_.emplace(key, &shapes_.back()).first;
    }
    if (numbers_.size() < kMost) numbers_[id] = found->second;
  }

  const Row* find(wire::DefinitionId id) const {
    const auto found = numbers_.find(id);
    return found == numbers_.end() ? nullptr : found->second;
  }

  void next_log() { numbers_.clear(); }

 private:
  std::deque<Row> shapes_;  // a deque: pointers into it stay valid
  std::unordered_map<std::string, const Row*> known_;
  std::unordered_map<wire::DefinitionId, const Row*> numbers_;
};

// Rows are told apart by their bytes (ShapeTable): those between the fields, too.
template <class Row>
Row zeroed() {
  Row row;
  std::memset(static_cast<void*>(&row), 0, sizeof row);
  return row;
}

inline trace::KernelRow to_row(const wire::KernelShapeRecord& record, LogNames& names) {
  auto row = zeroed<trace::KernelRow>();
  fill(row, record);
  row.id = 0;  // of the definition
  row.name = names.gpu_kernel_name(record.name);
  row.shared_bytes = static_cast<std::int32_t>(
      std::min<std::uint64_t>(std::uint64_t{record.static_shared_bytes} + record.dynamic_shared_bytes, INT32_MAX));
  return row;
}

inline trace::GemmRow to_row(const wire::GemmShapeRecord& record, LogNames& names, const LayoutNames& layouts) {
  auto row = zeroed<trace::GemmRow>();
  fill(row, record, &names);
  row.id = 0;  // of the definition
  layouts.set(row, record);
  return row;
}

// The GPU matrix products of a process: what was launched, or captured, inside a call belongs to it. The newest calls
// are kept until what they launched has been seen; then they become rows, each with the longest of its kernels.
class CudaGemms {
 public:
  static constexpr std::size_t kKept = 1u << 16;

  explicit CudaGemms(trace::RunWriter& writer) : writer_(writer) {}

  // `arrived` is when in the log, for those who wait for it.
  void add(trace::Id id, const wire::GpuGemmRecord& record, const trace::GemmRow* shape, trace::Id thread_id,
           std::uint64_t arrived) {
    Call call{.row = shape != nullptr ? *shape : trace::GemmRow(), .arrived = arrived};
    fill(call.row, record);
    call.row.id = id;
    call.row.thread_id = thread_id;
    threads_[thread_id].push_back(first_ + calls_.size());
    calls_.push_back(call);
  }

  bool full() const { return calls_.size() >= kKept; }
  std::uint64_t oldest() const { return calls_.front().arrived; }
  std::int64_t oldest_end_ns() const { return calls_.front().row.end_ns; }
  void write_oldest() {
    const trace::GemmRow& row = calls_.front().row;
    writer_.add(row);
    const auto thread = threads_.find(row.thread_id);
    thread->second.pop_front();
    if (thread->second.empty()) threads_.erase(thread);
    calls_.pop_front();
    ++first_;
  }

  void write_all() {
    while (!calls_.empty()) write_oldest();
  }

  // The innermost call of the thread that was going on at this time; nullptr if none.
  struct Call {
    trace::GemmRow row;
    std::int64_t kernel_ns = -1;  // duration of row.kernel_id
    std::uint64_t arrived = 0;
  };
  Call* at(trace::Id thread_id, std::int64_t ts_ns) {
    constexpr int kDeepest = 4;  // calls inside calls
    const auto thread = threads_.find(thread_id);
    if (thread == threads_.end()) return nullptr;
    const Calls& calls = thread->second;
    auto found = std::lower_bound(calls.begin(), calls.end(), ts_ns, [&](std::uint64_t number, std::int64_t time) {
      return call(number).row.end_ns < time;
    });
    for (int i = 0; i < kDeepest && found != calls.end(); ++i, ++found) {
      if (call(*found).row.begin_ns <= ts_ns) return &call(*found);
    }
    return nullptr;
  }

  static void ran(Call& call, trace::Id kernel_id, std::int64_t duration_ns) {
    if (duration_ns <= call.kernel_ns) return;
    call.kernel_ns = duration_ns;
    call.row.kernel_id = kernel_id;
  }

 private:
  // Calls of a thread in the order they ended, which is the order they are in the log.
  using Calls = std::deque<std::uint64_t>;

  Call& call(std::uint64_t number) { return calls_[number - first_]; }

  trace::RunWriter& writer_;
  std::deque<Call> calls_;
  std::uint64_t first_ = 0;  // number of calls_.front()
  std::unordered_map<trace::Id, Calls> threads_;
};

// Allocations of a process: an allocation and the free of the same address meet. They may be of different threads,
// whose records come in any order, so the newest wait and are put in order of time first.
class CudaMemory {
 public:
  CudaMemory(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id)
      : writer_(writer), process_id_(process_id), next_id_(next_id) {
    constexpr const char* kKinds[] = {"device", "pinned", "managed", "pool", "mapped"};
    for (std::size_t i = 0; i < std::size(kinds_); ++i) kinds_[i] = writer.strings().intern(kKinds[i]);
  }

  void take(const wire::DeviceMemoryRecord& record, trace::OptionalId device_id, trace::Id thread_id,
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

  void finish() {
    settle(waiting_.size());
    for (const auto& [address, row] : open_) writer_.add(row);
    open_.clear();
  }

 private:
  static constexpr std::size_t kWaiting = 1u << 16, kMostOpen = 1u << 20;

  struct Event {
    trace::AllocationRow row;  // begin_ns is the time of a free too
    bool frees;
  };
  void settle(std::size_t count) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Event& a, const Event& b) { return a.row.begin_ns < b.row.begin_ns; });
    for (std::size_t i = 0; i < count; ++i) {
      const Event& event = waiting_[i];
      event.frees ? free(*event.row.address, event.row.begin_ns) : allocate(event.row);
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // An address that is handed out again was freed in between, whether or not that was seen.
  void allocate(const trace::AllocationRow& row) {
    free(*row.address, row.begin_ns);
    trace::AllocationRow numbered = row;
    numbered.id = next_id_++;
    if (open_.size() == kMostOpen) return writer_.add(numbered);
    open_[*row.address] = numbered;
  }

  // What was allocated before the recording began is not known.
  void free(std::int64_t address, std::int64_t ts_ns) {
    const auto found = open_.find(address);
    if (found == open_.end()) return;
    found->second.end_ns = ts_ns;
    writer_.add(found->second);
    open_.erase(found);
  }

  trace::RunWriter& writer_;
  trace::Id process_id_;
  trace::Id& next_id_;
  trace::Name kinds_[5];
  std::vector<Event> waiting_;
  std::unordered_map<std::int64_t, trace::AllocationRow> open_;  // by address
};

}  // namespace llmprof::record
