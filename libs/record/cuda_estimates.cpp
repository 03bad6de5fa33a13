#include "record/cuda_estimates.h"

#include <algorithm>

namespace llmprof::record {

void CudaEstimates::Mean::add(std::int64_t sample) {
  constexpr double kNewest = 32;
  count = std::min(count + 1, kNewest);
  value += (static_cast<double>(sample) - value) / count;
}

void CudaEstimates::launched(const CudaLaunch& launch, bool noted) {
  places_[launch.correlation] = first_ + waiting_.size();
  waiting_.push_back({launch, noted, {}});
  newest_ns_ = std::max(newest_ns_, launch.begin_ns);
}

void CudaEstimates::ran(const CudaLaunch& launch, const trace::KernelRow& row) {
  const auto place = places_.find(launch.correlation);
  if (place != places_.end()) waiting_[place->second - first_].row = row;
}

std::optional<CudaEstimates::Estimate> CudaEstimates::next(std::int64_t before_ns) {
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

void CudaEstimates::learn(const CudaLaunch& launch, const trace::KernelRow& row) {
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

std::optional<trace::KernelRow> CudaEstimates::estimate(const CudaLaunch& launch) {
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

}  // namespace llmprof::record
