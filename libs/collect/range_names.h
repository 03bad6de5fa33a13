#pragma once
// What the names of ranges mean to the collector: whether one is a step, opens the window, or declares what holds for the whole
// run. Each name is compared once. Used by the writer alone.

#include "collect/selection.h"
#include "collect/state.h"

namespace llmprof::collect {

class RangeNames {
 public:
  explicit RangeNames(Shared* shared) : shared_(shared) {}

  // Looks for new domains and categories. Before every batch.
  void refresh();

  bool is_step(const wire::RangeRecord& event) const {
    const bool declared = is_declared(event);
    if (declared && event.category == step_category_) return true;
    return (verdict(event.name) & (declared ? kStep : kStep | kPlainStep)) != 0;
  }
  bool is_awaited(const wire::RangeRecord& event) const { return (verdict(event.name) & kAwaited) != 0; }
  // Which declaration a mark makes: what the model is, or how ranks divide it.
  Declares declares(const wire::RangeRecord& event) const {
    if (!is_declared(event)) return Declares::kNothing;
    if (event.category == model_category_) return Declares::kModel;
    return event.category == parallel_category_ ? Declares::kParallel : Declares::kNothing;
  }

 private:
  enum : std::uint8_t { kKnown = 1, kStep = 2, kPlainStep = 4, kAwaited = 8 };

  bool is_declared(const wire::RangeRecord& event) const { return event.domain != 0 && event.domain == domain_; }
  std::uint8_t verdict(wire::StringId name) const {
    if (name == 0 || name >= StringTable::kMaxNames) return 0;
    if (shared_->name_verdicts[name] == 0) shared_->name_verdicts[name] = compare(name);
    return shared_->name_verdicts[name];
  }
  std::uint8_t compare(wire::StringId name) const;

  Shared* shared_;
  std::uint32_t definitions_seen_ = ~0u;
  std::uint32_t domain_ = 0;  // "llmprof"
  std::uint32_t step_category_ = ~0u;
  std::uint32_t model_category_ = ~0u;
  std::uint32_t parallel_category_ = ~0u;
};

}  // namespace llmprof::collect
