#pragma once
// The ranges of a run as the passes want them: one vector per column, in sweep order (thread, begin, longest first).
// Marks are left out: they have no inside.

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/nesting.h"
#include "trace/run.h"

namespace llmprof::analyze {

inline constexpr std::int64_t kNull = trace::Columns::kNull;
inline constexpr std::int32_t kNone = -1;  // no range, no step

using ProcessOfThread = std::unordered_map<std::int64_t, std::int64_t>;                     // ids
inline std::int64_t process_of(const ProcessOfThread& processes, std::int64_t thread_id) {  // 0: unknown
  const auto found = processes.find(thread_id);
  return found == processes.end() ? 0 : found->second;
}

// Puts the values of a column into this order.
template <class T>
void permute(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
}

// The value that this share of them does not exceed.
template <class T>
T quantile(std::vector<T> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

struct Ranges {
  std::vector<std::int64_t> id, begin_ns, end_ns, thread_id, process_id, depth;
  std::vector<std::int64_t> name, domain, category;  // codes into texts; 0 is NULL
  std::vector<std::int64_t> payload;                 // kNull if there is none
  std::vector<std::string> texts;

  std::size_t size() const { return id.size(); }
};

// Puts ranges that come in any order into sweep order. Linear when they are already sorted by begin, as files are.
void sort_for_sweep(Ranges& ranges);

// Calls visit(index, parent) in sweep order. The parent is the innermost range of the thread that contains this one
// wholly: ranges that merely overlap (start_end ranges may) are not each other's parents.
template <class Visit>
void sweep(const Ranges& ranges, Visit visit);

// ---- implementation of the template -------------------------------------------------------------------------

template <class Visit>
void sweep(const Ranges& ranges, Visit visit) {
  base::Nesting<std::int32_t> nesting;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0 && ranges.thread_id[i] != ranges.thread_id[i - 1]) nesting.clear();
    const auto* parent = nesting.around(ranges.begin_ns[i], ranges.end_ns[i]);
    visit(static_cast<std::int32_t>(i), parent == nullptr ? kNone : parent->item);
    nesting.open(ranges.end_ns[i], static_cast<std::int32_t>(i));
  }
}

// The innermost open range of every thread as a step function of time: built once from the ranges, then asked for
// millions of kernels. Also a general sorted-key lookup that is fast when questions come nearly in order, as traces do.

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
