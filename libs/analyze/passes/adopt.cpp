#include "analyze/passes/classify.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyze/passes/attribute.h"

namespace llmprof::analyze {
namespace {

struct Outermost {  // modules of one thread that lie in no other, by begin
  std::vector<std::int64_t> begin_ns;
  std::vector<std::size_t> rank;  // by the first time that its name was seen: the order of a pass
};

class Thread {
 public:
  Thread(const Ranges& ranges, Classified& classified, std::size_t begin, std::size_t end)
      : ranges_(ranges), classified_(classified), begin_(begin), end_(end) {
    for (std::size_t i = 0; i < classified.steps.size(); ++i) {
      if (classified.steps[i].thread_id == ranges.thread_id[begin] && !classified.steps[i].declared())
        steps_.push_back(static_cast<std::int32_t>(i));
    }
  }

  void adopt() {
    if (steps_.empty()) return;
    find_outermost();
    for (std::size_t i = 0; i < steps_.size(); ++i) begin_with_first_module(i);
    for (std::size_t i = begin_; i < end_; ++i) take_in(i);
  }

 private:
  Step& step(std::size_t i) { return classified_.steps[static_cast<std::size_t>(steps_[i])]; }

  void find_outermost() {
    std::map<std::uint32_t, std::size_t> ranks;
    for (std::size_t i = begin_; i < end_; ++i) {
      const RangePlace& place = classified_.places[i];
      if (place.kind != RangeKind::kModule) continue;
      if (place.parent != kNone && classified_.places[place.parent].module.id != 0) continue;
      outermost_.begin_ns.push_back(ranges_.begin_ns[i]);
      outermost_.rank.push_back(ranks.try_emplace(place.module.id, ranks.size()).first->second);
    }
  }

  // From the module that holds the first product back to those before it, as long as they come in the order of a pass.
  void begin_with_first_module(std::size_t i) {
    const std::int64_t earliest = i > 0 ? step(i - 1).begin_ns : INT64_MIN;
    const auto after = std::ranges::upper_bound(outermost_.begin_ns, step(i).begin_ns);
    auto at = static_cast<std::size_t>(after - outermost_.begin_ns.begin());
    if (at == 0 || outermost_.begin_ns[at - 1] <= earliest) return;
    --at;
    while (at > 0 && outermost_.rank[at - 1] < outermost_.rank[at] && outermost_.begin_ns[at - 1] > earliest) --at;
    step(i).begin_ns = std::min(step(i).begin_ns, outermost_.begin_ns[at]);
    if (i > 0) step(i - 1).end_ns = std::min(step(i - 1).end_ns, step(i).begin_ns);
  }

  void take_in(std::size_t i) {
    RangePlace& place = classified_.places[i];
    if (place.step != kNone || place.kind == RangeKind::kStage || place.kind == RangeKind::kStep) return;
    const std::int64_t at_ns = ranges_.begin_ns[i];
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), at_ns, [&](std::int64_t ns, std::int32_t index) {
      return ns < classified_.steps[static_cast<std::size_t>(index)].begin_ns;
    });
    if (after == steps_.begin()) return;
    const Step& found = classified_.steps[static_cast<std::size_t>(*std::prev(after))];
    if (at_ns >= found.end_ns) return;
    place.step = *std::prev(after);
    place.stage = found.stage;
  }

  const Ranges& ranges_;
  Classified& classified_;
  std::size_t begin_, end_;
  std::vector<std::int32_t> steps_;  // inferred ones of the thread, by begin
  Outermost outermost_;
};

// A thread without steps works for those of others: PyTorch's engine runs the backward pass that another thread waits
// for. Its ranges belong to the step of the process that lasts then.
void adopt_by_time(const Ranges& ranges, const StepWindows& windows, std::size_t begin, std::size_t end,
                   Classified& classified) {
  for (std::size_t i = begin; i < end; ++i) {
    RangePlace& place = classified.places[i];
    if (place.step != kNone || place.kind != RangeKind::kModule) continue;
    place.step = windows.containing(ranges.process_id[i], ranges.begin_ns[i]);
    if (place.step != kNone) place.stage = classified.steps[static_cast<std::size_t>(place.step)].stage;
  }
}

}  // namespace

void adopt_ranges(const Ranges& ranges, Classified& classified) {
  for (std::size_t begin = 0, end = 0; begin < ranges.size(); begin = end) {
    for (end = begin; end < ranges.size() && ranges.thread_id[end] == ranges.thread_id[begin];) ++end;
    Thread(ranges, classified, begin, end).adopt();
  }
  const StepWindows windows(classified.steps);
  std::set<std::int64_t> own;  // threads with steps
  for (const Step& step : classified.steps) own.insert(step.thread_id);
  for (std::size_t begin = 0, end = 0; begin < ranges.size(); begin = end) {
    for (end = begin; end < ranges.size() && ranges.thread_id[end] == ranges.thread_id[begin];) ++end;
    if (!own.contains(ranges.thread_id[begin])) adopt_by_time(ranges, windows, begin, end, classified);
  }
}

}  // namespace llmprof::analyze
