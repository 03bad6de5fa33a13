#pragma once
// A Perfetto trace being written: track descriptors and track events. Every lane of slices is a packet sequence of its
// own, whose defaults name the track and an incremental clock, so that an event costs few bytes.
// docs/format/export-perfetto.md lists every field.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exporters/lanes.h"
#include "exporters/output_file.h"
#include "exporters/proto_writer.h"
#include "exporters/tracks.h"

namespace llmprof::exporters {

// What can be said about a slice beside its name.
inline constexpr std::array<std::string_view, 18> kNotes{
    "stage", "module", "op",     "grid",       "block", "registers", "shared_bytes", "m",      "n",
    "k",     "batch",  "source", "confidence", "bytes", "graph",     "number",       "tokens", "context"};
consteval std::size_t note(std::string_view name) {  // its place among them
  return static_cast<std::size_t>(std::ranges::find(kNotes, name) - kNotes.begin());
}
struct Annotation {
  std::size_t note = 0;    // into kNotes
  bool is_name = false;    // value is a number of PerfettoFile::name()
  std::int64_t value = 0;  // of "confidence": percent
};

class PerfettoFile {
 public:
  struct Sequence {
    std::uint32_t id = 0;
    std::uint64_t track = 0;
    std::int64_t last_ns = 0;
    std::vector<bool> names, texts, notes;  // what this sequence has interned
    std::vector<bool> categories;
  };
  struct Event {
    std::int64_t name = 0;
    std::string_view category;             // "" none
    std::span<const std::uint64_t> flows;  // that begin here
    std::uint64_t ends_flow = 0;           // 0: none
    std::span<const Annotation> notes = {};
  };

  // Times before `origin_ns` cannot be written (the format has no negative times).
  PerfettoFile(OutputFile& out, std::int64_t origin_ns) : out_(out), origin_ns_(origin_ns) {}

  void clocks(std::int64_t at_ns, std::optional<std::int64_t> wall_ns);
  void system(std::string_view version);
  std::uint64_t process(std::int64_t pid, std::string_view name, std::string_view command);
  std::uint64_t thread(std::int64_t pid, std::int64_t tid, std::string_view name);
  std::uint64_t track(std::uint64_t parent, std::string_view name);
  std::uint64_t counter(std::uint64_t parent, std::string_view name, std::string_view unit);

  Sequence sequence(std::uint64_t track, std::int64_t begin_ns);
  std::int64_t name(std::string_view text);  // its number, from 1

  void open(Sequence& sequence, std::int64_t at_ns, const Event& event) {
    event_packet(sequence, at_ns, kBegin, event);
  }
  void instant(Sequence& sequence, std::int64_t at_ns, const Event& event) {
    event_packet(sequence, at_ns, kInstant, event);
  }
  void close(Sequence& sequence, std::int64_t at_ns);
  void count(Sequence& sequence, std::int64_t at_ns, double value);

  bool failed() const { return out_.failed(); }

 private:
  enum Type : std::uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
  void event_packet(Sequence& sequence, std::int64_t at_ns, Type type, const Event& event);
  std::size_t begin_descriptor();
  std::size_t begin_event_packet(Sequence& sequence, std::int64_t at_ns);
  void intern(Sequence& sequence, const Event& event);
  void annotate(const Annotation& annotation);
  void finish_packet(std::size_t packet);

  OutputFile& out_;
  std::int64_t origin_ns_;
  ProtoWriter proto_;
  std::uint32_t sequences_ = 1;  // 1 is that of the descriptors
  std::uint64_t tracks_ = 0;
  std::vector<std::string> names_ = {""};
  std::unordered_map<std::string, std::int64_t> numbers_;
};

// Slices of many tracks into a Perfetto file: each track has as many lanes as its slices need to nest.

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
