#include "pictures/merge.h"

#include <algorithm>

namespace llmprof::pictures {
namespace {

float share(std::int64_t part_ns, std::int64_t whole_ns) {
  if (whole_ns <= 0) return 1;
  return static_cast<float>(std::clamp(static_cast<double>(part_ns) / static_cast<double>(whole_ns), 0.0, 1.0));
}

std::int32_t as_count(std::int64_t count) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(count, INT32_MAX));
}

void widen(Slice& slice, const Piece& piece) {
  const double busy_ns = static_cast<double>(slice.busy) * static_cast<double>(slice.end_ns - slice.begin_ns);
  slice.end_ns = std::max(slice.end_ns, piece.slice.end_ns);
  slice.busy = share(static_cast<std::int64_t>(busy_ns) + piece.busy_ns, slice.end_ns - slice.begin_ns);
  slice.count = as_count(std::int64_t{slice.count} + piece.slice.count);
  slice.id = 0;
}

}  // namespace

void Heaviest::add(std::int32_t key, std::int64_t weight) {
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.weight += weight;
    return;
  }
  if (entries_.size() < kKept) return entries_.push_back({key, weight});
  Entry& lightest = *std::min_element(entries_.begin(), entries_.end(),
                                      [](const Entry& a, const Entry& b) { return a.weight < b.weight; });
  lightest = {key, lightest.weight + weight};
}

std::int32_t Heaviest::key() const {
  const auto found = std::max_element(entries_.begin(), entries_.end(),
                                      [](const Entry& a, const Entry& b) { return a.weight < b.weight; });
  return found == entries_.end() ? -1 : found->key;
}

Piece Piece::of(const Slice& slice, std::int64_t launch_ns) {
  const double length = static_cast<double>(slice.end_ns - slice.begin_ns);
  return {slice, static_cast<std::int64_t>(length * static_cast<double>(slice.busy)), launch_ns};
}

Merger::Merger(Window window, int width)
    : window_(window),
      pixel_ns_(std::max<std::int64_t>(1, (window.end_ns - window.begin_ns + width - 1) / std::max(1, width))) {}

void Merger::add(const Piece& piece) {
  added_ += piece.slice.count;
  if (piece.slice.end_ns - piece.slice.begin_ns >= pixel_ns_) return long_.push_back(piece);
  if (bins_.empty()) bins_.resize(static_cast<std::size_t>((window_.end_ns - window_.begin_ns) / pixel_ns_) + 1);
  const std::int64_t at = (piece.slice.begin_ns - window_.begin_ns) / pixel_ns_;
  put(bins_[static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, static_cast<std::int64_t>(bins_.size()) - 1))],
      piece);
}

void Merger::put(Bin& bin, const Piece& piece) {
  const Slice& slice = piece.slice;
  if (bin.count == 0 || slice.begin_ns < bin.begin_ns) {
    bin.begin_ns = slice.begin_ns;
    bin.launch_ns = piece.launch_ns;
  }
  bin.end_ns = bin.count == 0 ? slice.end_ns : std::max(bin.end_ns, slice.end_ns);
  bin.busy_ns += piece.busy_ns;
  if (slice.estimated) bin.estimated_ns += piece.busy_ns;
  bin.id = bin.count == 0 ? slice.id : 0;
  bin.count += slice.count;
  const std::int64_t weight = std::max<std::int64_t>(1, piece.busy_ns);  // marks have no length, and count too
  bin.names.add(slice.name, weight);
  bin.stages.add(slice.stage, weight);
}

Piece Merger::merged(const Bin& bin) {
  Piece piece;
  piece.slice = {.begin_ns = bin.begin_ns,
                 .end_ns = bin.end_ns,
                 .name = bin.names.key(),
                 .stage = bin.stages.key(),
                 .count = as_count(bin.count),
                 .busy = share(bin.busy_ns, bin.end_ns - bin.begin_ns),
                 .id = bin.id,
                 .estimated = bin.estimated_ns * 2 > bin.busy_ns};
  piece.busy_ns = bin.busy_ns;
  piece.launch_ns = bin.launch_ns;
  return piece;
}

std::vector<Piece> Merger::pieces() const {
  std::vector<Piece> all = long_;
  for (const Bin& bin : bins_)
    if (bin.count > 0) all.push_back(merged(bin));
  std::sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.slice.begin_ns, -a.slice.end_ns) < std::pair(b.slice.begin_ns, -b.slice.end_ns);
  });
  return all;
}

std::vector<std::vector<Slice>> in_rows(const std::vector<Piece>& pieces, std::size_t rows) {
  std::vector<std::vector<Slice>> out;
  for (const Piece& piece : pieces) {
    std::size_t row = 0;
    while (row < out.size() && out[row].back().end_ns > piece.slice.begin_ns) ++row;
    if (row == out.size() && row < rows) {
      out.push_back({piece.slice});
    } else if (row < out.size()) {
      out[row].push_back(piece.slice);
    } else {
      widen(out.back().back(), piece);
    }
  }
  return out;
}

}  // namespace llmprof::pictures
