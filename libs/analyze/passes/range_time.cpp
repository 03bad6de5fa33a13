#include "analyze/passes/range_time.h"

#include <array>

#include "analyze/passes/operator_names.h"

namespace llmprof::analyze {

std::vector<trace::RangeTimeRow> range_times(const Ranges& ranges, const Classified& classified,
                                             const std::vector<std::int64_t>& kernel_ns, trace::Strings& strings) {
  const std::array<trace::Name, 4> kinds{trace::Name{}, strings.intern("stage"), strings.intern("step"),
                                         strings.intern("module")};
  OperatorNames operators(strings);
  std::vector<trace::RangeTimeRow> rows(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RangePlace& place = classified.places[i];
    const std::int64_t total = ranges.end_ns[i] - ranges.begin_ns[i];
    rows[i].range_id = ranges.id[i];
    rows[i].kind = kinds[static_cast<std::size_t>(place.kind)];
    if (place.step != kNone) rows[i].step_id = place.step + 1;
    rows[i].stage = place.stage;
    rows[i].module = place.module;
    rows[i].op = operators.of(place.module);
    rows[i].total_ns = total;
    rows[i].self_ns += total;
    rows[i].kernel_ns = kernel_ns[i];
    if (place.parent != kNone) rows[place.parent].self_ns -= total;
  }
  return rows;
}

}  // namespace llmprof::analyze
