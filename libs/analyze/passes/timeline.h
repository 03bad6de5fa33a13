#pragma once
// The innermost open range of every thread as a step function of time: built once from the ranges, then asked for
// millions of kernels. Also a general sorted-key lookup that is fast when questions come nearly in order, as traces do.

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyze/passes/ranges.h"

namespace llmprof::analyze {

// Index of the last key <= wanted, or kNotFound. Starts at `cursor` and gallops; keys are ascending.
inline constexpr std::size_t kNotFound = static_cast<std::size_t>(-1);
std::size_t find_last_at_most(const std::int64_t* keys, std::size_t count, std::int64_t wanted, std::size_t& cursor);

class Timelines {
 public:
  explicit Timelines(const Ranges& ranges);  // in sweep order

  // The innermost range open on the thread at this moment (half open: begin <= at < end), or kNone. A start_end range
  // counts for the thread that opened it. Not const: it remembers where each thread was.
  std::int32_t innermost(std::int64_t thread_id, std::int64_t at_ns);
  // Calls visit(ns, range) for each part of a stretch of time that has one innermost range, or none, in order.
  template <class Visit>
  void divide(std::int64_t thread_id, std::int64_t from_ns, std::int64_t to_ns, Visit visit);
  bool knows(std::int64_t thread_id) const { return threads_.contains(thread_id); }

 private:
  struct Thread {
    std::size_t begin = 0, count = 0, cursor = 0;
  };
  void change(std::size_t first, std::int64_t at_ns, std::int32_t range);

  std::vector<std::int64_t> at_;     // when the innermost range changes
  std::vector<std::int32_t> range_;  // to which one
  std::unordered_map<std::int64_t, Thread> threads_;
};

// ---- implementation of the template -------------------------------------------------------------------------

template <class Visit>
void Timelines::divide(std::int64_t thread_id, std::int64_t from_ns, std::int64_t to_ns, Visit visit) {
  const auto found = threads_.find(thread_id);
  if (found == threads_.end()) return visit(to_ns - from_ns, kNone);
  Thread& thread = found->second;
  const std::int64_t* const at = at_.data() + thread.begin;
  const std::size_t last = find_last_at_most(at, thread.count, from_ns, thread.cursor);
  std::size_t next = last == kNotFound ? 0 : last + 1;
  while (from_ns < to_ns) {
    const std::int64_t end_ns = next < thread.count ? std::min(at[next], to_ns) : to_ns;
    visit(end_ns - from_ns, next == 0 ? kNone : range_[thread.begin + next - 1]);
    from_ns = end_ns;
    ++next;
  }
}

}  // namespace llmprof::analyze
