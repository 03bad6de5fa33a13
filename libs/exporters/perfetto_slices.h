#pragma once
// Slices of many tracks into a Perfetto file: each track has as many lanes as its slices need to nest.

#include <deque>
#include <string>
#include <vector>

#include "exporters/lanes.h"
#include "exporters/perfetto_file.h"

namespace llmprof::exporters {

class PerfettoSlices {
 public:
  explicit PerfettoSlices(PerfettoFile& file) : file_(file) {}

  // `uuid` is the track of the first lane; the further ones are made below it and named after `title`.
  std::size_t add_track(std::uint64_t uuid, std::string title);
  // Slices of one track come in order of their begin.
  void slice(std::size_t track, std::int64_t begin_ns, std::int64_t end_ns, bool may_hold,
             const PerfettoFile::Event& event);
  void instant(std::size_t track, std::int64_t at_ns, const PerfettoFile::Event& event);
  void finish();
  std::int64_t written() const { return written_; }

 private:
  struct Track {
    std::uint64_t uuid;
    std::string title;
    Lanes lanes = {};
    std::deque<PerfettoFile::Sequence> sequences = {};  // of the lanes
  };
  PerfettoFile::Sequence& sequence(Track& track, std::size_t lane, std::int64_t begin_ns);

  PerfettoFile& file_;
  std::deque<Track> tracks_;
  std::int64_t written_ = 0;
};

}  // namespace llmprof::exporters
