#pragma once
// A Perfetto trace being written: track descriptors and track events. Every lane of slices is a packet sequence of its
// own, whose defaults name the track and an incremental clock, so that an event costs few bytes.
// docs/format/export-perfetto.md lists every field.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exporters/lanes.h"
#include "exporters/output_file.h"
#include "exporters/proto_writer.h"
#include "exporters/tracks.h"

namespace llmprof::exporters {

// Field numbers of protos/perfetto/trace/*.proto.
namespace trace_fields {
inline constexpr std::uint32_t kPacket = 1;
}
namespace packet {
inline constexpr std::uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                               kInternedData = 12, kSequenceFlags = 13, kSystemInfo = 45, kDefaults = 59,
                               kTrackDescriptor = 60;
inline constexpr int kStateCleared = 1, kNeedsState = 2;  // values of kSequenceFlags
}  // namespace packet
namespace clock_snapshot {
inline constexpr std::uint32_t kClock = 1, kPrimary = 2;
inline constexpr std::uint32_t kId = 1, kTimestamp = 2, kIsIncremental = 3;  // of a clock
inline constexpr int kRealtime = 1, kBoottime = 6, kIncremental = 64;        // ids; from 64 they belong to one sequence
}  // namespace clock_snapshot
namespace defaults {
inline constexpr std::uint32_t kTrackEvent = 11, kTimestampClock = 58;
}
namespace event_fields {
inline constexpr std::uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kName = 10, kTrack = 11, kFlow = 47,
                               kEndsFlow = 48, kRealCounter = 44;
}
namespace annotation_fields {
inline constexpr std::uint32_t kName = 1, kInteger = 4, kReal = 5, kText = 17;
}
namespace interned {
inline constexpr std::uint32_t kCategories = 1, kNames = 2, kAnnotationNames = 3, kTexts = 29;
inline constexpr std::uint32_t kId = 1, kText = 2;  // of an entry
}  // namespace interned
namespace descriptor {
inline constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
}

inline constexpr std::array<std::string_view, 9> kCategories{"range",  "op",   "api",  "launch", "graph",
                                                             "kernel", "copy", "step", "stage"};

// True the first time.
inline bool first_use(std::vector<bool>& seen, std::size_t number) {
  if (number >= seen.size()) seen.resize(number + 64);
  if (seen[number]) return false;
  seen[number] = true;
  return true;
}

inline std::size_t category_number(std::string_view category) {
  return static_cast<std::size_t>(std::ranges::find(kCategories, category) - kCategories.begin()) + 1;
}

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

  void clocks(std::int64_t at_ns, std::optional<std::int64_t> wall_ns) {
    packet(kDescriptors, [&] {
      proto_.message(packet::kClockSnapshot, [&] {
        clock(clock_snapshot::kBoottime, at_ns - origin_ns_);
        if (wall_ns) clock(clock_snapshot::kRealtime, *wall_ns);
        proto_.integer(clock_snapshot::kPrimary, clock_snapshot::kBoottime);
      });
    });
  }

  void system(std::string_view version) {
    constexpr std::uint32_t kServiceVersion = 4;
    packet(kDescriptors, [&] { proto_.message(packet::kSystemInfo, [&] { proto_.text(kServiceVersion, version); }); });
  }

  std::uint64_t process(std::int64_t pid, std::string_view name, std::string_view command) {
    constexpr std::uint32_t kPid = 1, kCommand = 2, kName = 6;
    return describe([&] {
      proto_.message(descriptor::kProcess, [&] {
        proto_.integer(kPid, pid);
        if (!command.empty()) proto_.text(kCommand, command);
        proto_.text(kName, name);
      });
    });
  }

  std::uint64_t thread(std::int64_t pid, std::int64_t tid, std::string_view name) {
    constexpr std::uint32_t kPid = 1, kTid = 2, kName = 5;
    return describe([&] {
      proto_.message(descriptor::kThread, [&] {
        proto_.integer(kPid, pid);
        proto_.integer(kTid, tid);
        if (!name.empty()) proto_.text(kName, name);
      });
    });
  }

  std::uint64_t track(std::uint64_t parent, std::string_view name) {
    return describe([&] {
      proto_.integer(descriptor::kParent, parent);
      proto_.text(descriptor::kName, name);
    });
  }

  std::uint64_t counter(std::uint64_t parent, std::string_view name, std::string_view unit) {
    constexpr std::uint32_t kUnit = 3, kUnitName = 6;
    constexpr int kBytes = 3;
    return describe([&] {
      proto_.integer(descriptor::kParent, parent);
      proto_.text(descriptor::kName, name);
      proto_.message(descriptor::kCounter, [&] {
        const bool bytes = unit == "B" || unit == "bytes";
        if (bytes) proto_.integer(kUnit, kBytes);
        if (!bytes && !unit.empty()) proto_.text(kUnitName, unit);
      });
    });
  }

  Sequence sequence(std::uint64_t track, std::int64_t begin_ns) {
    Sequence sequence{++sequences_, track, begin_ns, {}, {}, {}, {}};
    packet(sequence.id, [&] {
      proto_.integer(packet::kSequenceFlags, packet::kStateCleared);
      proto_.message(packet::kDefaults, [&] {
        proto_.message(defaults::kTrackEvent, [&] { proto_.integer(event_fields::kTrack, track); });
        proto_.integer(defaults::kTimestampClock, clock_snapshot::kIncremental);
      });
    });
    packet(sequence.id, [&] {
      proto_.message(packet::kClockSnapshot, [&] {
        for (const int id : {clock_snapshot::kBoottime, clock_snapshot::kIncremental}) clock(id, begin_ns - origin_ns_);
      });
    });
    return sequence;
  }

  // The number of a name, from 1.
  std::int64_t name(std::string_view text) {
    const auto [found, is_new] = numbers_.try_emplace(std::string(text), static_cast<std::int64_t>(names_.size()));
    if (is_new) names_.emplace_back(text);
    return found->second;
  }

  void open(Sequence& sequence, std::int64_t at_ns, const Event& event) { write(sequence, at_ns, kBegin, event); }
  void instant(Sequence& sequence, std::int64_t at_ns, const Event& event) { write(sequence, at_ns, kInstant, event); }
  void close(Sequence& sequence, std::int64_t at_ns) {
    event_packet(sequence, at_ns, kEnd, nullptr, [] {});
  }

  void count(Sequence& sequence, std::int64_t at_ns, double value) {
    event_packet(sequence, at_ns, kCounter, nullptr,
                 [&] { proto_.real(event_fields::kRealCounter, std::isfinite(value) ? value : 0); });
  }

  bool failed() const { return out_.failed(); }

 private:
  enum Type : std::uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
  static constexpr std::uint32_t kDescriptors = 1;  // the sequence of what describes tracks
  template <class Fill>
  void packet(std::uint32_t sequence, const Fill& fill) {
    proto_.message(trace_fields::kPacket, [&] {
      proto_.integer(packet::kSequenceId, std::uint64_t{sequence});
      fill();
    });
    out_.write(proto_.bytes());
    proto_.clear();
  }

  // The packet that describes a new track; `fill` says what is special about it.
  template <class Fill>
  std::uint64_t describe(const Fill& fill) {
    packet(kDescriptors, [&] {
      proto_.message(packet::kTrackDescriptor, [&] {
        proto_.integer(descriptor::kUuid, ++tracks_);
        fill();
      });
    });
    return tracks_;
  }

  // An event at a time, in the packet of its sequence, with the entries that it needs first.
  template <class Fill>
  void event_packet(Sequence& sequence, std::int64_t at_ns, Type type, const Event* event, const Fill& fill) {
    packet(sequence.id, [&] {
      proto_.integer(packet::kTimestamp, at_ns - sequence.last_ns);
      sequence.last_ns = at_ns;
      proto_.integer(packet::kSequenceFlags, packet::kNeedsState);
      if (event != nullptr) intern(sequence, *event);
      proto_.message(packet::kTrackEvent, [&] {
        proto_.integer(event_fields::kType, type);
        fill();
      });
    });
  }

  void clock(int id, std::int64_t value) {
    proto_.message(clock_snapshot::kClock, [&] {
      proto_.integer(clock_snapshot::kId, id);
      proto_.integer(clock_snapshot::kTimestamp, value);
      if (id == clock_snapshot::kIncremental) proto_.integer(clock_snapshot::kIsIncremental, 1);
    });
  }

  void write(Sequence& sequence, std::int64_t at_ns, Type type, const Event& event) {
    event_packet(sequence, at_ns, type, &event, [&] {
      proto_.integer(event_fields::kName, event.name);
      if (!event.category.empty())
        proto_.integer(event_fields::kCategory, static_cast<std::uint64_t>(category_number(event.category)));
      for (const Annotation& annotation : event.notes) {
        proto_.message(event_fields::kAnnotation, [&] {
          proto_.integer(annotation_fields::kName, annotation.note + 1);
          proto_.integer(annotation.is_name ? annotation_fields::kText : annotation_fields::kInteger, annotation.value);
        });
      }
      for (const std::uint64_t flow : event.flows) proto_.fixed64(event_fields::kFlow, flow);
      if (event.ends_flow != 0) proto_.fixed64(event_fields::kEndsFlow, event.ends_flow);
    });
  }

  // Entries that the sequence does not have yet, in the packet of the event that needs them first.
  void intern(Sequence& sequence, const Event& event) {
    std::size_t data = 0;
    const auto entry = [&](std::uint32_t kind, std::size_t number, std::string_view text) {
      if (data == 0) data = proto_.begin(packet::kInternedData);
      proto_.message(kind, [&] {
        proto_.integer(interned::kId, static_cast<std::uint64_t>(number));
        proto_.text(interned::kText, text);
      });
    };
    const auto name = static_cast<std::size_t>(event.name);
    if (first_use(sequence.names, name)) entry(interned::kNames, name, names_[name]);
    if (!event.category.empty()) {
      const std::size_t number = category_number(event.category);
      if (first_use(sequence.categories, number)) entry(interned::kCategories, number, event.category);
    }
    for (const Annotation& annotation : event.notes) {
      if (first_use(sequence.notes, annotation.note))
        entry(interned::kAnnotationNames, annotation.note + 1, kNotes[annotation.note]);
      const auto text = static_cast<std::size_t>(annotation.value);
      if (annotation.is_name && first_use(sequence.texts, text)) entry(interned::kTexts, text, names_[text]);
    }
    if (data != 0) proto_.end(data);
  }

  OutputFile& out_;
  std::int64_t origin_ns_;
  ProtoWriter proto_;
  std::uint32_t sequences_ = kDescriptors;
  std::uint64_t tracks_ = 0;
  std::vector<std::string> names_ = {""};
  std::unordered_map<std::string, std::int64_t> numbers_;
};

// Slices of many tracks into a Perfetto file: each track has as many lanes as its slices need to nest.

class PerfettoSlices {
 public:
  explicit PerfettoSlices(PerfettoFile& file) : file_(file) {}

  // `uuid` is the track of the first lane; the further ones are made below it and named after `title`.
  std::size_t add_track(std::uint64_t uuid, std::string title) {
    tracks_.push_back({uuid, std::move(title)});
    return tracks_.size() - 1;
  }

  // Slices of one track come in order of their begin.
  void slice(std::size_t number, std::int64_t begin_ns, std::int64_t end_ns, bool may_hold,
             const PerfettoFile::Event& event) {
    Track& track = tracks_[number];
    const std::size_t lane = track.lanes.place(
        begin_ns, end_ns, may_hold,
        [&](std::size_t closing, std::int64_t at_ns) { file_.close(track.sequences[closing], at_ns); });
    file_.open(sequence(track, lane, begin_ns), begin_ns, event);
    ++written_;
  }

  void instant(std::size_t number, std::int64_t at_ns, const PerfettoFile::Event& event) {
    Track& track = tracks_[number];
    track.lanes.advance(0, at_ns, [&](std::size_t closing, std::int64_t closing_ns) {
      file_.close(track.sequences[closing], closing_ns);
    });
    file_.instant(sequence(track, 0, at_ns), at_ns, event);
    ++written_;
  }

  void finish() {
    for (Track& track : tracks_) {
      track.lanes.close_all([&](std::size_t lane, std::int64_t at_ns) { file_.close(track.sequences[lane], at_ns); });
    }
  }

  std::int64_t written() const { return written_; }

 private:
  struct Track {
    std::uint64_t uuid;
    std::string title;
    Lanes lanes = {};
    std::deque<PerfettoFile::Sequence> sequences = {};  // of the lanes
  };
  PerfettoFile::Sequence& sequence(Track& track, std::size_t lane, std::int64_t begin_ns) {
    if (lane == track.sequences.size()) {
      const std::uint64_t uuid =
          lane == 0 ? track.uuid : file_.track(track.uuid, fmt::format("{} ({})", track.title, lane + 1));
      track.sequences.push_back(file_.sequence(uuid, begin_ns));
    }
    return track.sequences[lane];
  }

  PerfettoFile& file_;
  std::deque<Track> tracks_;
  std::int64_t written_ = 0;
};

}  // namespace llmprof::exporters
