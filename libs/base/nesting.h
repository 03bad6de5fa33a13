#pragma once
// The one nesting of intervals: which of them lies in which, on one thread. Intervals come in sweep order, by begin and,
// of those that begin together, the longer first.
//
//   Nesting<Id> nesting;
//   for (const Range& range : sorted) {
//     const auto* parent = nesting.around(range.begin_ns, range.end_ns);
//     nesting.open(range.end_ns, range.id);
//   }

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmprof::base {

template <class Item>
class Nesting {
 public:
  struct Open {
    std::int64_t end_ns;
    Item item;
  };

  // The innermost interval that is still open when one begins at `begin_ns`, whether or not it holds all of it; nullptr:
  // none is.
  const Open* at(std::int64_t begin_ns) {
    return at(begin_ns, [](const Open&) {});
  }
  // The same; `close` is called for those that ended until then, the innermost first.
  template <class Close>
  const Open* at(std::int64_t begin_ns, const Close& close) {
    while (!open_.empty() && open_.back().end_ns <= begin_ns) {
      close(open_.back());
      open_.pop_back();
    }
    return open_.empty() ? nullptr : &open_.back();
  }
  // The innermost one that holds the interval wholly: intervals that merely overlap are not each other's parents.
  const Open* around(std::int64_t begin_ns, std::int64_t end_ns) {
    at(begin_ns);
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->end_ns >= end_ns) return &*open;
    }
    return nullptr;
  }
  void open(std::int64_t end_ns, Item item) { open_.push_back({end_ns, item}); }
  std::size_t depth() const { return open_.size(); }
  void clear() { open_.clear(); }  // the next thread begins

 private:
  std::vector<Open> open_;  // the innermost last
};

}  // namespace llmprof::base
