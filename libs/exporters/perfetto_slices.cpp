#include "exporters/perfetto_slices.h"

#include <fmt/format.h>

namespace llmprof::exporters {

std::size_t PerfettoSlices::add_track(std::uint64_t uuid, std::string title) {
  tracks_.push_back({uuid, std::move(title)});
  return tracks_.size() - 1;
}

PerfettoFile::Sequence& PerfettoSlices::sequence(Track& track, std::size_t lane, std::int64_t begin_ns) {
  if (lane == track.sequences.size()) {
    const std::uint64_t uuid =
        lane == 0 ? track.uuid : file_.track(track.uuid, fmt::format("{} ({})", track.title, lane + 1));
    track.sequences.push_back(file_.sequence(uuid, begin_ns));
  }
  return track.sequences[lane];
}

void PerfettoSlices::slice(std::size_t number, std::int64_t begin_ns, std::int64_t end_ns, bool may_hold,
                           const PerfettoFile::Event& event) {
  Track& track = tracks_[number];
  const std::size_t lane = track.lanes.place(begin_ns, end_ns, may_hold, [&](std::size_t closing, std::int64_t at_ns) {
    file_.close(track.sequences[closing], at_ns);
  });
  file_.open(sequence(track, lane, begin_ns), begin_ns, event);
  ++written_;
}

void PerfettoSlices::instant(std::size_t number, std::int64_t at_ns, const PerfettoFile::Event& event) {
  Track& track = tracks_[number];
  track.lanes.advance(0, at_ns, [&](std::size_t closing, std::int64_t closing_ns) {
    file_.close(track.sequences[closing], closing_ns);
  });
  file_.instant(sequence(track, 0, at_ns), at_ns, event);
  ++written_;
}

void PerfettoSlices::finish() {
  for (Track& track : tracks_) {
    track.lanes.close_all([&](std::size_t lane, std::int64_t at_ns) { file_.close(track.sequences[lane], at_ns); });
  }
}

}  // namespace llmprof::exporters
