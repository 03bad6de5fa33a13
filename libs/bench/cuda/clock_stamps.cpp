#include "bench/cuda/clock_stamps.h"

#include <algorithm>
#include <vector>

namespace llmprof::bench::cuda {

double mhz_between(std::span<const ClockStamp> begin, std::span<const ClockStamp> end) {
  constexpr std::uint64_t kLeastNs = 40'000;  // a tick of 1 us on each side is 5 % then
  std::vector<double> mhz;
  for (std::size_t i = 0; i < std::min(begin.size(), end.size()); ++i) {
    const ClockStamp &a = begin[i], &b = end[i];
    if (a.nanoseconds == 0 || b.nanoseconds < a.nanoseconds + kLeastNs || b.cycles <= a.cycles) continue;
    mhz.push_back(static_cast<double>(b.cycles - a.cycles) * 1e3 / static_cast<double>(b.nanoseconds - a.nanoseconds));
  }
  if (mhz.empty()) return 0;
  const auto middle = mhz.begin() + static_cast<std::ptrdiff_t>(mhz.size() / 2);
  std::nth_element(mhz.begin(), middle, mhz.end());
  return *middle;
}

}  // namespace llmprof::bench::cuda
