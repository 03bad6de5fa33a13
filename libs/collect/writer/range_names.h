#pragma once
// What names of ranges mean to the writer, and which logs of a flight recorder it deletes.

#include <cstdint>

#include "collect/state.h"
#include "collect/writer/selection.h"

namespace llmprof::collect {

// What the names of ranges mean to the collector: whether one is a step, opens the window, or declares what holds for
// the whole run. Each name is compared once. Used by the writer alone.
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

// Which logs of a process to delete when only the end of a recording is kept. Plain arithmetic; the writer asks.
class Segments {
 public:
  // The log with this number was begun. Numbers follow each other.
  void begun(std::uint32_t number, std::uint64_t ts_ns) {
    Begun& log = logs_[number % kMost];
    log = {ts_ns, 0};
    last_ = number;
  }
  void closed(std::uint64_t bytes) { logs_[last_ % kMost].bytes = bytes; }

  // The number of a log to delete, oldest first; kNone: all others are needed. A log is needed as long as the one
  // behind it began less than `keep_ns` ago, unless there is too much of them.
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t expired(std::uint64_t now_ns, std::uint64_t keep_ns, std::uint64_t most_bytes) {
    if (first_ == last_) return kNone;
    const std::uint64_t next_begun_ns = logs_[(first_ + 1) % kMost].ts_ns;
    const bool old = now_ns > keep_ns && next_begun_ns < now_ns - keep_ns;
    const bool many = last_ - first_ + 1 >= kMost;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = first_; i != last_; ++i) bytes += logs_[i % kMost].bytes;
    if (!old && !many && bytes <= most_bytes) return kNone;
    return first_++;
  }

 private:
  static constexpr std::uint32_t kMost = 64;
  struct Begun {
    std::uint64_t ts_ns, bytes;
  };
  Begun logs_[kMost] = {};
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace llmprof::collect
