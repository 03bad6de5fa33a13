#pragma once
// Kernels whose launch was noted and whose times were not recorded: the same launch ran at other times, so it took as
// long as it did lately there. It began when the device had ended what was before it on its stream, or, where there was
// nothing, as long after its launch as it did there. Durations are means, so that sums are right.
//
// Records of kernels come later than those of launches, so launches wait here, and are looked at in their order.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "record/cuda_launches.h"
#include "trace/rows.h"

namespace llmprof::record {

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

}  // namespace llmprof::record
