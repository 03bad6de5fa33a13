#include "view/lane_index.h"

#include <algorithm>
#include <numeric>

namespace llmprof::view {
namespace {

constexpr std::size_t kMostRows = 64;  // what overlaps more slices than that is not drawn

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

// By a quarter: doubling would need twice the memory while the last lane grows.
template <class T>
void push(std::vector<T>& values, T value) {
  if (values.size() == values.capacity()) values.reserve(values.size() + values.size() / 4 + 64);
  values.push_back(value);
}

std::uint32_t narrow(std::int64_t value, std::size_t at, std::unordered_map<std::size_t, std::int64_t>& others,
                     std::uint32_t mark) {
  if (value >= 0 && value < mark) return static_cast<std::uint32_t>(value);
  others.emplace(at, value);
  return mark;
}

}  // namespace

void NarrowColumn::add(std::uint32_t value) {
  if (count_ == 0) same_ = value;
  if (each_.empty() && value != same_) each_.assign(count_, same_);
  if (value != same_ || !each_.empty()) push(each_, value);
  ++count_;
}

void LaneIndex::add(const IndexedSlice& slice) {
  const std::size_t at = begins_.size();
  push(begins_, slice.begin_ns);
  durations_.add(narrow(std::max<std::int64_t>(slice.end_ns - slice.begin_ns, 0), at, long_, kFar));
  labels_.add(slice.label);
  ids_.add(narrow(slice.id, at, far_, kFar));
  const std::int64_t wait =
      slice.launch_ns == kNoLaunch ? kFar : std::clamp<std::int64_t>(slice.begin_ns - slice.launch_ns, 0, kFar - 1);
  waits_.add(static_cast<std::uint32_t>(wait));
}

std::int64_t LaneIndex::launch(std::size_t at) const {
  return waits_[at] == kFar ? kNoLaunch : begins_[at] - waits_[at];
}

IndexedSlice LaneIndex::at(std::size_t at) const {
  return {begins_[at], end(at), labels_[at], ids_[at] == kFar ? far_.at(at) : ids_[at], launch(at)};
}

bool LaneIndex::is_in_order() const {
  for (std::size_t i = 1; i < size(); ++i)
    if (begins_[i] < end(i - 1)) return false;
  return true;
}

// Of slices that begin together the longest first, so that it lies in the upper row.
std::vector<std::uint32_t> LaneIndex::by_begin() const {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return begins_[a] != begins_[b] ? begins_[a] < begins_[b] : duration(a) > duration(b);
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::stable_sort(order.begin(), order.end(), before);
  return order;
}

std::vector<LaneIndex> LaneIndex::in_rows(LaneIndex lane) {
  std::vector<LaneIndex> rows;
  if (lane.is_in_order()) {
    rows.push_back(std::move(lane));
  } else {
    Rows places;
    for (const std::uint32_t i : lane.by_begin()) {
      const std::size_t row = std::min(places.place(lane.begins_[i], lane.end(i)), kMostRows);
      if (row == kMostRows) continue;
      if (row >= rows.size()) rows.resize(row + 1);
      rows[row].add(lane.at(i));
    }
  }
  for (LaneIndex& row : rows) row.finish();
  return rows;
}

void LaneIndex::finish() {
  begins_.shrink_to_fit();
  for (NarrowColumn* column : {&durations_, &labels_, &ids_, &waits_}) column->shrink();
  if (size() < kFanout) return;
  sums_.emplace_back(size() / kFanout);  // whole groups only
  for (std::size_t i = 0; i < sums_[0].size(); ++i) add_slices(i * kFanout, (i + 1) * kFanout, sums_[0][i]);
  while (sums_.back().size() >= kFanout) {
    const std::vector<Sum>& below = sums_.back();
    std::vector<Sum> level(below.size() / kFanout);
    for (std::size_t i = 0; i < level.size() * kFanout; ++i) level[i / kFanout].add(below[i]);
    sums_.push_back(std::move(level));
  }
}

std::size_t LaneIndex::bytes() const {
  std::size_t bytes = bytes_of(begins_) + durations_.bytes() + labels_.bytes() + ids_.bytes() + waits_.bytes();
  for (const std::vector<Sum>& level : sums_) bytes += bytes_of(level);
  return bytes + (long_.size() + far_.size()) * 48;
}

void LaneIndex::add_slices(std::size_t from, std::size_t to, Sum& sum) const {
  for (std::size_t i = from; i < to; ++i) {
    const std::int64_t ns = duration(i);
    sum.busy_ns += ns;
    sum.labels.add(labels_[i], ns + 1);  // as view::Merger weighs them
  }
}

// Slices up to the next whole group, then ever larger groups, then smaller ones again.
void LaneIndex::add_range(std::size_t from, std::size_t to, Sum& sum) const {
  std::size_t level = 0, width = 1;  // at `level` groups of `width` are added; level 0 is slices
  while (from < to) {
    while (level < sums_.size() && from % (width * kFanout) == 0 && from + width * kFanout <= to)
      ++level, width *= kFanout;
    while (from + width > to) --level, width /= kFanout;
    if (level == 0) {
      const std::size_t until = std::min(to, (from / kFanout + 1) * kFanout);
      add_slices(from, until, sum);
      from = until;
    } else {
      sum.add(sums_[level - 1][from / width]);
      from += width;
    }
  }
}

void LaneIndex::emit_group(std::size_t from, std::size_t to, const Emit& emit) const {
  if (from == to) return;
  if (to - from == 1) {
    const IndexedSlice one = at(from);
    emit({one.begin_ns, one.end_ns, one.end_ns - one.begin_ns, 1, one.id, one.label, one.launch_ns});
    return;
  }
  Sum sum;
  add_range(from, to, sum);
  emit({begins_[from], end(to - 1), sum.busy_ns, static_cast<std::int64_t>(to - from), 0, sum.labels.label(),
        launch(from)});
}

std::size_t LaneIndex::first_from(std::int64_t ts_ns, std::size_t from) const {
  std::size_t step = 1;  // what is looked for is usually near
  while (from + step < size() && begins_[from + step] < ts_ns) step *= 2;
  const auto begin = begins_.begin() + static_cast<std::ptrdiff_t>(from + step / 2);
  const auto end = begins_.begin() + static_cast<std::ptrdiff_t>(std::min(size(), from + step + 1));
  return static_cast<std::size_t>(std::lower_bound(begin, end, ts_ns) - begins_.begin());
}

std::size_t LaneIndex::first_in(const pictures::Window& window, std::int64_t pixel) const {
  const std::int64_t begin_ns = pixel_of(window.begin_ns, pixel) * pixel;
  const auto found = std::lower_bound(begins_.begin(), begins_.end(), begin_ns);
  auto at = static_cast<std::size_t>(found - begins_.begin());
  // The one before may reach into the window; others of its pixel then come with it.
  if (at == 0 || end(at - 1) <= window.begin_ns) return at;
  const std::int64_t its_pixel = pixel_of(begins_[at - 1], pixel) * pixel;
  if (duration(at - 1) >= pixel) return at - 1;
  return static_cast<std::size_t>(std::lower_bound(begins_.begin(), found, its_pixel) - begins_.begin());
}

std::int64_t LaneIndex::merge(const pictures::Window& window, std::int64_t pixel, const Emit& emit) const {
  const std::size_t first = first_in(window, pixel);
  std::size_t at = first;
  while (at < size() && begins_[at] < window.end_ns) {
    const std::int64_t next_pixel = (pixel_of(begins_[at], pixel) + 1) * pixel;
    const std::size_t next = first_from(next_pixel, at);
    // Only the last slice that begins in a pixel can be as long as one.
    const bool alone = duration(next - 1) >= pixel;
    emit_group(at, alone ? next - 1 : next, emit);
    if (alone) emit_group(next - 1, next, emit);
    at = next;
  }
  return static_cast<std::int64_t>(at - first);
}

}  // namespace llmprof::view
