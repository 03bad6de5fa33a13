#pragma once
// The GPU matrix products of a process: what was launched, or captured, inside a call belongs to it. The newest calls
// are kept until what they launched has been seen; then they become rows, each with the longest of its kernels.

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "record/cuda_shapes.h"
#include "trace/rows.h"
#include "wire/format.h"

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
  trace::Name layouts_[2], transposes_[3];
  std::deque<Call> calls_;
  std::uint64_t first_ = 0;  // number of calls_.front()
  std::unordered_map<trace::Id, Calls> threads_;
};

}  // namespace llmprof::record
