#include "analyze/passes/ranges.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace llmprof::analyze {

namespace {

// Indices grouped by thread, the order within a thread kept.
std::vector<std::uint32_t> group_by_thread(const std::vector<std::int64_t>& thread_id) {
  std::map<std::int64_t, std::size_t> next;  // first the number of ranges of a thread, then where the next one goes
  for (const std::int64_t thread : thread_id) ++next[thread];
  std::size_t begin = 0;
  for (auto& [thread, count] : next) begin += std::exchange(count, begin);
  std::vector<std::uint32_t> order(thread_id.size());
  for (std::size_t i = 0; i < thread_id.size(); ++i) order[next[thread_id[i]]++] = static_cast<std::uint32_t>(i);
  return order;
}

}  // namespace

void sort_for_sweep(Ranges& ranges) {
  if (ranges.size() < 2) return;
  std::vector<std::uint32_t> order = group_by_thread(ranges.thread_id);
  // Equal begin and end: depth tells the outer one; an inner range is logged first, so the id does not.
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(ranges.thread_id[a], ranges.begin_ns[a], ranges.end_ns[b], ranges.depth[a], ranges.id[a]) <
           std::tie(ranges.thread_id[b], ranges.begin_ns[b], ranges.end_ns[a], ranges.depth[b], ranges.id[b]);
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  for (auto* column : {&ranges.id, &ranges.begin_ns, &ranges.end_ns, &ranges.thread_id, &ranges.process_id,
                       &ranges.depth, &ranges.name, &ranges.domain, &ranges.category, &ranges.payload}) {
    permute(*column, order);
  }
}

std::size_t find_last_at_most(const std::int64_t* keys, std::size_t count, std::int64_t wanted, std::size_t& cursor) {
  if (count == 0 || keys[0] > wanted) return kNotFound;
  std::size_t low = std::min(cursor, count - 1);
  if (keys[low] > wanted) low = 0;  // the question went back in time
  std::size_t step = 1;
  while (low + step < count && keys[low + step] <= wanted) {
    low += step;
    step *= 2;
  }
  const std::int64_t* const end = keys + std::min(low + step, count);
  cursor = static_cast<std::size_t>(std::upper_bound(keys + low, end, wanted) - keys) - 1;
  return cursor;
}

void Timelines::change(std::size_t first, std::int64_t at_ns, std::int32_t range) {
  if (at_.size() > first && at_.back() == at_ns) {
    range_.back() = range;
  } else {
    at_.push_back(at_ns);
    range_.push_back(range);
  }
}

Timelines::Timelines(const Ranges& ranges) {
  at_.reserve(ranges.size() * 2);
  range_.reserve(ranges.size() * 2);
  std::vector<std::int32_t> open;
  std::size_t first = 0;  // where this thread's part begins
  // Closes, in order of time, whatever ends by `until`; what a closed range leaves on top may have ended before it.
  const auto close = [&](std::int64_t until) {
    while (!open.empty() && ranges.end_ns[open.back()] <= until) {
      const std::int64_t end = ranges.end_ns[open.back()];
      while (!open.empty() && ranges.end_ns[open.back()] <= end) open.pop_back();
      change(first, end, open.empty() ? kNone : open.back());
    }
  };
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    close(ranges.begin_ns[i]);
    if (ranges.end_ns[i] > ranges.begin_ns[i]) {
      change(first, ranges.begin_ns[i], static_cast<std::int32_t>(i));
      open.push_back(static_cast<std::int32_t>(i));
    }
    if (i + 1 == ranges.size() || ranges.thread_id[i + 1] != ranges.thread_id[i]) {
      close(INT64_MAX);
      threads_[ranges.thread_id[i]] = {first, at_.size() - first, 0};
      first = at_.size();
    }
  }
}

std::int32_t Timelines::innermost(std::int64_t thread_id, std::int64_t at_ns) {
  const auto found = threads_.find(thread_id);
  if (found == threads_.end()) return kNone;
  Thread& thread = found->second;
  const std::size_t place = find_last_at_most(at_.data() + thread.begin, thread.count, at_ns, thread.cursor);
  return place == kNotFound ? kNone : range_[thread.begin + place];
}

}  // namespace llmprof::analyze
