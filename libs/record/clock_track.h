#pragma once
// From the clock on the wall to CLOCK_MONOTONIC_RAW, by pairs read from time to time: the wall's clock is steered, and
// may be set.

#include <cmath>
#include <cstdint>
#include <optional>

#include "record/capture_info.h"

namespace llmprof::record {

class ClockTrack {
 public:
  void add(const ClockPair& pair) {
    constexpr std::int64_t kLeastApartNs = 100'000'000;  // else the error of a pair shows in the rate
    if (!before_ || (last_ && pair.raw_ns - last_->raw_ns >= kLeastApartNs)) before_ = last_;
    last_ = pair;
  }

  // Between the last two pairs, or beside them.
  std::int64_t raw_ns(std::int64_t wall_ns) const {
    if (!last_) return wall_ns;
    return last_->raw_ns -
           static_cast<std::int64_t>(std::llround(static_cast<double>(last_->wall_ns - wall_ns) * rate()));
  }

 private:
  // Raw time per wall time. Clocks are steered by less than 0.1 %; more means that the wall's was set in between, and
  // then times follow the later pair.
  double rate() const {
    constexpr double kMostSteered = 1e-3;
    if (!before_ || last_->wall_ns <= before_->wall_ns) return 1;
    const double rate =
        static_cast<double>(last_->raw_ns - before_->raw_ns) / static_cast<double>(last_->wall_ns - before_->wall_ns);
    return std::abs(rate - 1) < kMostSteered ? rate : 1;
  }

  std::optional<ClockPair> before_, last_;
};

}  // namespace llmprof::record
