#pragma once
// Energy over windows of time, from a counter that is read now and then, or from readings of power.

#include <cstdint>
#include <vector>

#include "analyze/passes/busy.h"

namespace llmprof::analyze {

struct SeriesPoint {
  std::int64_t ts_ns = 0;
  double value = 0;
};
using Series = std::vector<SeriesPoint>;  // in order of time

// Between two readings the power is taken as even.
struct EnergySegment {
  std::int64_t begin_ns = 0, end_ns = 0;
  double joules = 0;
};

struct EnergySegments {
  std::vector<EnergySegment> segments;  // in order of time; a time without readings is in none
  // How long what was read stays the same, or is not read: what happened inside so long a time cannot be told apart.
  std::int64_t blur_ns = 0;
};
// A counter that falls started again: what it missed is in no segment.
EnergySegments segments_of_counter(const Series& joules);
EnergySegments segments_of_power(const Series& watts);

struct EnergyOver {
  double joules = 0;
  // Where a window begins or ends inside a blur, up to half of it may belong to the other side, with another power.
  // Edges are independent of each other, so their errors add up as squares. The power of the whole run is the range.
  double error_j = 0;
  std::int64_t covered_ns = 0;  // of the windows
};
// `windows` are disjoint and in order of time.
EnergyOver energy_over(const EnergySegments& energy, const std::vector<Window>& windows);

// The same of many windows one by one, without their errors: by begin, and they may overlap.
class EnergyCursor {
 public:
  explicit EnergyCursor(const EnergySegments& energy) : energy_(&energy) {}
  EnergyOver over(const Window& window);

 private:
  const EnergySegments* energy_;
  std::size_t next_ = 0;  // segments before it end before the last window
};

}  // namespace llmprof::analyze
