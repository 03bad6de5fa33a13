#include "pictures/timeline_lanes.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmprof::pictures {
namespace {

constexpr std::int64_t kNull = trace::Columns::kNull;
constexpr std::size_t kMostLanes = 80;

struct SourceTraits {
  Lane::Kind kind;
  const char* table;
  std::size_t rows;  // for slices that overlap
};
constexpr std::array<SourceTraits, static_cast<std::size_t>(Source::kCount)> kTraits = {{
    {Lane::Kind::kStages, "step", 1},
    {Lane::Kind::kRanges, "range", 2},
    {Lane::Kind::kRanges, "op", 1},
    {Lane::Kind::kApi, "api", 2},
    {Lane::Kind::kIdle, "", 1},
    {Lane::Kind::kGraphs, "graph_launch", 2},
    {Lane::Kind::kStream, "kernel", 4},
    {Lane::Kind::kCopies, "copy", 2},
}};
const SourceTraits& traits(Source source) { return kTraits[static_cast<std::size_t>(source)]; }

std::string thread_title(const exporters::HostThread& thread) {
  return thread.name.empty() ? fmt::format("thread {}", thread.tid) : fmt::format("{} {}", thread.name, thread.tid);
}

// Those with the least in them go first.
void limit_lanes(Timeline& timeline) {
  if (timeline.lanes.size() <= kMostLanes) return;
  std::vector<std::size_t> sizes;
  for (const Lane& lane : timeline.lanes) sizes.push_back(lane.slices.size());
  std::nth_element(sizes.begin(), sizes.begin() + kMostLanes, sizes.end(), std::greater<>());
  const std::size_t least = sizes[kMostLanes];
  const std::size_t before = timeline.lanes.size();
  std::erase_if(timeline.lanes, [&](const Lane& lane) { return lane.slices.size() <= least; });
  timeline.lanes_left_out = static_cast<std::int64_t>(before - timeline.lanes.size());
}

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

Lanes::Lanes(TimelineFacts& facts, Window window, const TimelineRequest& request)
    : facts_(facts),
      window_(window),
      width_(request.width),
      is_whole_(window.begin_ns <= facts.bounds.begin_ns && window.end_ns >= facts.bounds.end_ns),
      pixel_ns_(Merger(window, request.width).pixel_ns()) {
  if (!request.stage.empty()) stage_ = facts.names.number(request.stage);
}

std::int64_t Lanes::stream_or_thread(std::int64_t stream, std::int64_t thread_id) {
  return stream != kNull ? stream : -1 - thread_id;
}

Merger& Lanes::merger(Source source, std::int64_t owner, std::int64_t place) {
  Last& last = last_[static_cast<std::size_t>(source)];
  if (last.merger != nullptr && last.owner == owner && last.place == place) return *last.merger;
  Key key{source >= Source::kIdle, 0, 0, source, place};
  if (key.device) {
    key.group = facts_.tracks.device(owner);
  } else {
    key.thread = facts_.tracks.thread(owner);
    key.group = facts_.tracks.threads[key.thread].process;
  }
  Merger& found = mergers_.try_emplace(key, window_, width_).first->second;
  last = {owner, place, &found};
  return found;
}

void Lanes::add(Source source, std::int64_t owner, std::int64_t place, const Piece& piece) {
  if (stage_ != -1 && piece.slice.stage != stage_) return;
  if (piece.slice.end_ns < window_.begin_ns || piece.slice.begin_ns > window_.end_ns) return;
  merger(source, owner, place).add(piece);
}

std::vector<std::int64_t> Lanes::gpus() const {
  std::vector<std::int64_t> ids;
  for (const auto& entry : mergers_) {
    if (!entry.first.device) continue;
    const exporters::Device& device = facts_.tracks.devices[entry.first.group];
    if (device.is_gpu && (ids.empty() || ids.back() != device.id)) ids.push_back(device.id);
  }
  return ids;
}

std::vector<Piece> Lanes::work_of(std::int64_t device_id, std::optional<Source> only) const {
  std::vector<Piece> work;
  const std::size_t device = facts_.tracks.device(device_id);
  for (const auto& entry : mergers_) {
    if (!entry.first.device || entry.first.group != device || entry.first.source < Source::kKernels) continue;
    if (only && entry.first.source != *only) continue;
    const std::vector<Piece> pieces = entry.second.pieces();
    work.insert(work.end(), pieces.begin(), pieces.end());
  }
  std::sort(work.begin(), work.end(),
            [](const Piece& a, const Piece& b) { return a.slice.begin_ns < b.slice.begin_ns; });
  return work;
}

Lane Lanes::titled(const Key& key) const {
  Lane lane{.kind = traits(key.source).kind, .group = {}, .name = {}, .table = traits(key.source).table, .slices = {}};
  if (!key.device) {
    const exporters::HostProcess& process = facts_.tracks.processes[key.group];
    const std::string thread = thread_title(facts_.tracks.threads[key.thread]);
    lane.group = fmt::format("{} {}", process.name, process.pid);
    if (key.source == Source::kSteps) lane.name = "steps, " + thread;
    if (key.source == Source::kRanges) lane.name = fmt::format("ranges, {}, depth {}", thread, key.place);
    if (key.source == Source::kOps) lane.name = fmt::format("operators, {}, depth {}", thread, key.place);
    if (key.source == Source::kApi) lane.name = "calls, " + thread;
    return lane;
  }
  lane.group = facts_.tracks.devices[key.group].title;
  std::string stream = fmt::format("stream {}", key.place);
  if (key.place < 0 && key.source != Source::kIdle)
    stream = thread_title(facts_.tracks.threads[facts_.tracks.thread(-1 - key.place)]);
  if (key.source == Source::kIdle) lane.name = "gaps in steps";
  if (key.source == Source::kGraphs) lane.name = "graph launches, " + stream;
  if (key.source == Source::kKernels) lane.name = "kernels, " + stream;
  if (key.source == Source::kCopies) lane.name = "copies, " + stream;
  return lane;
}

void Lanes::finish(Timeline& out) const {
  for (const auto& [key, merger] : mergers_) {
    if (key.source != Source::kIdle) out.slices_in_window += merger.added();
    std::vector<std::vector<Slice>> rows = in_rows(merger.pieces(), traits(key.source).rows);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Lane lane = titled(key);
      if (row > 0) lane.name += fmt::format(" ({})", row + 1);
      lane.slices = std::move(rows[row]);
      out.lanes.push_back(std::move(lane));
    }
  }
  limit_lanes(out);
}

std::int32_t TextColumn::number(const trace::ChunkRow& row, std::size_t column) {
  const auto code = static_cast<std::size_t>(row[column]);
  if (code >= numbers_.size()) numbers_.resize(row.chunk.names.size(), -1);
  if (numbers_[code] == -1) numbers_[code] = names_.number(code == 0 ? "(no name)" : row.text(column));
  return numbers_[code];
}

std::string touching(const Lanes& lanes, std::string_view begin, std::string_view end) {
  if (lanes.is_whole()) return "true";
  return fmt::format("{} >= {} AND {} <= {}", end, lanes.window().begin_ns, begin, lanes.window().end_ns);
}

}  // namespace llmprof::pictures
