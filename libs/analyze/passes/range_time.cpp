#include "analyze/passes/range_time.h"

#include <algorithm>
#include <array>

#include "analyze/passes/operator_names.h"

namespace llmprof::analyze {
namespace {

// Of each range, the time that ranges directly inside it cover; start_end ranges beside each other may overlap.
std::vector<std::int64_t> time_inside(const Ranges& ranges, const Classified& classified) {
  std::vector<std::int64_t> inside_ns(ranges.size());
  std::vector<std::int64_t> covered_until_ns = ranges.begin_ns;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::int32_t parent = classified.places[i].parent;
    if (parent == kNone) continue;
    std::int64_t& covered = covered_until_ns[parent];
    inside_ns[parent] += std::max<std::int64_t>(0, ranges.end_ns[i] - std::max(ranges.begin_ns[i], covered));
    covered = std::max(covered, ranges.end_ns[i]);
  }
  return inside_ns;
}

}  // namespace

void for_each_range_time(const Ranges& ranges, const Classified& classified, const std::vector<std::int64_t>& kernel_ns,
                         trace::Strings& strings, const std::function<void(const trace::RangeTimeRow&)>& emit) {
  const std::array<trace::Name, 4> kinds{trace::Name{}, strings.intern("stage"), strings.intern("step"),
                                         strings.intern("module")};
  const std::vector<std::int64_t> inside_ns = time_inside(ranges, classified);
  OperatorNames operators(strings);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RangePlace& place = classified.places[i];
    trace::RangeTimeRow row{.range_id = ranges.id[i], .kind = kinds[static_cast<std::size_t>(place.kind)]};
    if (place.step != kNone) row.step_id = place.step + 1;
    row.stage = place.stage;
    row.module = place.module;
    row.op = operators.of(place.module);
    row.total_ns = ranges.end_ns[i] - ranges.begin_ns[i];
    row.self_ns = row.total_ns - inside_ns[i];
    row.kernel_ns = kernel_ns[i];
    emit(row);
  }
}

}  // namespace llmprof::analyze
