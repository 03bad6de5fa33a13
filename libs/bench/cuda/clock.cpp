#include "bench/cuda/clock.h"

#include <algorithm>
#include <vector>

#include "bench/cuda/sampler.h"

namespace llmprof::bench::cuda {

namespace {

constexpr std::uint32_t kMostMultiprocessors = 1024;
constexpr std::int64_t kHalfBytes = kMostMultiprocessors * sizeof(ClockStamp);

}  // namespace

Result<ClockProbe> ClockProbe::create(Context& context) {
  ClockProbe probe;
  probe.context_ = &context;
  LLMPROF_LET(probe.stamps_, context.allocate(2 * kHalfBytes));
  LLMPROF_TRY(context.set_bytes(probe.stamps_.pointer(), 0, 2 * kHalfBytes));
  return probe;
}

Result<void> ClockProbe::begin() {
  const Pointer nothing = 0;
  return context_->launch("llmprof_timing_stamp", {.grid_x = context_->properties().multiprocessors},
                          {stamps_.pointer(), nothing, kMostMultiprocessors});
}

Result<void> ClockProbe::end() {
  const Pointer end = stamps_.pointer() + kHalfBytes;
  return context_->launch("llmprof_timing_stamp", {.grid_x = context_->properties().multiprocessors},
                          {end, stamps_.pointer(), kMostMultiprocessors});
}

Result<double> ClockProbe::mhz() {
  std::vector<ClockStamp> stamps(2 * kMostMultiprocessors);
  LLMPROF_TRY(context_->copy_out(stamps.data(), stamps_.pointer(), 2 * kHalfBytes));
  return mhz_between(std::span(stamps).first(kMostMultiprocessors), std::span(stamps).last(kMostMultiprocessors));
}

Result<double> clock_mhz(Context& context) {
  LLMPROF_LET(ClockProbe probe, ClockProbe::create(context));
  LLMPROF_TRY(probe.begin());
  LLMPROF_TRY(probe.end());
  return probe.mhz();
}

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
