#include "analyze/counters/place.h"

#include <algorithm>

namespace llmprof::analyze::counters {
namespace {

bool covers(const MeasuredWindow& window, const std::string& name, const PlacedStep& step) {
  if (window.begin_ns <= step.begin_ns && step.host_end_ns <= window.end_ns) return true;
  if (step.range != name) return false;  // a part of the step
  const std::int64_t shared = std::min(window.end_ns, step.host_end_ns) - std::max(window.begin_ns, step.begin_ns);
  return 2 * shared >= step.host_end_ns - step.begin_ns;
}

}  // namespace

std::optional<CoveredSteps> covered(const MeasuredWindow& window, const std::string& name,
                                    const std::vector<PlacedStep>& steps) {
  const auto first_after =
      std::ranges::lower_bound(steps, std::pair(window.thread_id, window.end_ns), {},
                               [](const PlacedStep& step) { return std::pair(step.thread_id, step.begin_ns); });
  CoveredSteps out;
  // Steps of a thread do not overlap, but for nested ones: the first that ended before the window ends the search.
  for (auto at = first_after; at != steps.begin();) {
    --at;
    if (at->thread_id != window.thread_id || at->host_end_ns <= window.begin_ns) break;
    if (!covers(window, name, *at)) continue;
    if (out.steps > 0 && out.stage != at->stage) return std::nullopt;
    out.stage = at->stage;
    ++out.steps, out.flops += at->flops, out.bytes += at->bytes;
  }
  return out.steps > 0 ? std::optional(out) : std::nullopt;
}

}  // namespace llmprof::analyze::counters
