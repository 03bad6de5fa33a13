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

}  // namespace

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

std::vector<Piece> Lanes::work_of(std::int64_t device_id) const {
  std::vector<Piece> work;
  const std::size_t device = facts_.tracks.device(device_id);
  for (const auto& entry : mergers_) {
    if (!entry.first.device || entry.first.group != device || entry.first.source < Source::kKernels) continue;
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
  if (key.source == Source::kIdle) lane.name = "idle in steps";
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

std::int32_t TextColumn::number(const trace::ColumnChunk& chunk, std::size_t column, std::size_t row) {
  const auto code = static_cast<std::size_t>(chunk.values[column][row]);
  if (code >= numbers_.size()) numbers_.resize(chunk.names.size(), -1);
  if (numbers_[code] == -1) numbers_[code] = names_.number(code == 0 ? "(no name)" : chunk.names[code]);
  return numbers_[code];
}

std::string touching(const Lanes& lanes, std::string_view begin, std::string_view end) {
  if (lanes.is_whole()) return "true";
  return fmt::format("{} >= {} AND {} <= {}", end, lanes.window().begin_ns, begin, lanes.window().end_ns);
}

}  // namespace llmprof::pictures
