#include "report/bars.h"

namespace llmprof::report {

Bars waterfall_bars(const Drop& whole, const std::vector<Drop>& drops) {
  Bars bars;
  bars.bars.push_back({whole.label, {{whole.kind, 0, whole.value}}, whole.text});
  double level = whole.value;
  for (const Drop& drop : drops) {
    bars.bars.push_back({drop.label, {{drop.kind, level, level - drop.value}}, drop.text});
    level -= drop.value;
  }
  return bars;
}

std::vector<double> stretch_ends(const Bars& bars) {
  std::vector<double> ends = {0};
  for (const Bar& bar : bars.bars) {
    for (const Stretch& stretch : bar.stretches) ends.insert(ends.end(), {stretch.begin, stretch.end});
  }
  return ends;
}

bool drawable(const Stretch& stretch, const AxisMap& axis) {
  return axis.drawable(stretch.begin) && axis.drawable(stretch.end);
}

}  // namespace llmprof::report
