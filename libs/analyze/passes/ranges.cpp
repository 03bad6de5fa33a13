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

void permute(std::vector<std::int64_t>& column, const std::vector<std::uint32_t>& order) {
  std::vector<std::int64_t> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
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

}  // namespace llmprof::analyze
