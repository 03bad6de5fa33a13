#include "exporters/perfetto_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace llmprof::exporters {

namespace {

// Field numbers of protos/perfetto/trace/*.proto.
namespace trace_fields {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                        kSequenceFlags = 13, kSystemInfo = 45, kDefaults = 59, kTrackDescriptor = 60;
constexpr int kStateCleared = 1, kNeedsState = 2;  // values of kSequenceFlags
}  // namespace packet
namespace clock_snapshot {
constexpr std::uint32_t kClock = 1, kPrimary = 2;
constexpr std::uint32_t kId = 1, kTimestamp = 2, kIsIncremental = 3;  // of a clock
constexpr int kRealtime = 1, kBoottime = 6, kIncremental = 64;        // ids; from 64 they belong to one sequence
}  // namespace clock_snapshot
namespace defaults {
constexpr std::uint32_t kTrackEvent = 11, kTimestampClock = 58;
}
namespace event_fields {
constexpr std::uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kName = 10, kTrack = 11, kFlow = 47, kEndsFlow = 48,
                        kRealCounter = 44;
}
namespace annotation_fields {
constexpr std::uint32_t kName = 1, kInteger = 4, kReal = 5, kText = 17;
}
namespace interned {
constexpr std::uint32_t kCategories = 1, kNames = 2, kAnnotationNames = 3, kTexts = 29;
constexpr std::uint32_t kId = 1, kText = 2;  // of an entry
}  // namespace interned
namespace descriptor {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
}

constexpr std::array<std::string_view, 9> kCategories{"range",  "op",   "api",  "launch", "graph",
                                                      "kernel", "copy", "step", "stage"};

// True the first time.
bool first_use(std::vector<bool>& seen, std::size_t number) {
  if (number >= seen.size()) seen.resize(number + 64);
  if (seen[number]) return false;
  seen[number] = true;
  return true;
}

std::size_t category_number(std::string_view category) {
  return static_cast<std::size_t>(std::ranges::find(kCategories, category) - kCategories.begin()) + 1;
}

}  // namespace

void PerfettoFile::finish_packet(std::size_t packet) {
  proto_.end(packet);
  out_.write(proto_.bytes());
  proto_.clear();
}

void PerfettoFile::clocks(std::int64_t at_ns, std::optional<std::int64_t> wall_ns) {
  const std::size_t body = begin_descriptor();
  const std::size_t snapshot = proto_.begin(packet::kClockSnapshot);
  const auto clock = [&](int id, std::int64_t value) {
    const std::size_t entry = proto_.begin(clock_snapshot::kClock);
    proto_.integer(clock_snapshot::kId, id);
    proto_.integer(clock_snapshot::kTimestamp, value);
    proto_.end(entry);
  };
  clock(clock_snapshot::kBoottime, at_ns - origin_ns_);
  if (wall_ns) clock(clock_snapshot::kRealtime, *wall_ns);
  proto_.integer(clock_snapshot::kPrimary, clock_snapshot::kBoottime);
  proto_.end(snapshot);
  finish_packet(body);
}

void PerfettoFile::system(std::string_view version) {
  constexpr std::uint32_t kServiceVersion = 4;
  const std::size_t body = begin_descriptor();
  const std::size_t info = proto_.begin(packet::kSystemInfo);
  proto_.text(kServiceVersion, version);
  proto_.end(info);
  finish_packet(body);
}

std::size_t PerfettoFile::begin_descriptor() {
  const std::size_t body = proto_.begin(trace_fields::kPacket);
  proto_.integer(packet::kSequenceId, 1);
  return body;
}

std::uint64_t PerfettoFile::process(std::int64_t pid, std::string_view name, std::string_view command) {
  constexpr std::uint32_t kPid = 1, kCommand = 2, kName = 6;
  const std::size_t body = begin_descriptor(), track = proto_.begin(packet::kTrackDescriptor);
  proto_.integer(descriptor::kUuid, ++tracks_);
  const std::size_t process = proto_.begin(descriptor::kProcess);
  proto_.integer(kPid, pid);
  if (!command.empty()) proto_.text(kCommand, command);
  proto_.text(kName, name);
  proto_.end(process);
  proto_.end(track);
  finish_packet(body);
  return tracks_;
}

std::uint64_t PerfettoFile::thread(std::int64_t pid, std::int64_t tid, std::string_view name) {
  constexpr std::uint32_t kPid = 1, kTid = 2, kName = 5;
  const std::size_t body = begin_descriptor(), track = proto_.begin(packet::kTrackDescriptor);
  proto_.integer(descriptor::kUuid, ++tracks_);
  const std::size_t thread = proto_.begin(descriptor::kThread);
  proto_.integer(kPid, pid);
  proto_.integer(kTid, tid);
  if (!name.empty()) proto_.text(kName, name);
  proto_.end(thread);
  proto_.end(track);
  finish_packet(body);
  return tracks_;
}

std::uint64_t PerfettoFile::track(std::uint64_t parent, std::string_view name) {
  const std::size_t body = begin_descriptor(), track = proto_.begin(packet::kTrackDescriptor);
  proto_.integer(descriptor::kUuid, ++tracks_);
  proto_.integer(descriptor::kParent, parent);
  proto_.text(descriptor::kName, name);
  proto_.end(track);
  finish_packet(body);
  return tracks_;
}

std::uint64_t PerfettoFile::counter(std::uint64_t parent, std::string_view name, std::string_view unit) {
  constexpr std::uint32_t kUnit = 3, kUnitName = 6;
  constexpr int kBytes = 3;
  const std::size_t body = begin_descriptor(), track = proto_.begin(packet::kTrackDescriptor);
  proto_.integer(descriptor::kUuid, ++tracks_);
  proto_.integer(descriptor::kParent, parent);
  proto_.text(descriptor::kName, name);
  const std::size_t counter = proto_.begin(descriptor::kCounter);
  if (unit == "B" || unit == "bytes") {
    proto_.integer(kUnit, kBytes);
  } else if (!unit.empty()) {
    proto_.text(kUnitName, unit);
  }
  proto_.end(counter);
  proto_.end(track);
  finish_packet(body);
  return tracks_;
}

PerfettoFile::Sequence PerfettoFile::sequence(std::uint64_t track, std::int64_t begin_ns) {
  Sequence sequence{++sequences_, track, begin_ns, {}, {}, {}, {}};
  const std::size_t first = proto_.begin(trace_fields::kPacket);
  proto_.integer(packet::kSequenceId, static_cast<std::uint64_t>(sequence.id));
  proto_.integer(packet::kSequenceFlags, packet::kStateCleared);
  const std::size_t settings = proto_.begin(packet::kDefaults);
  const std::size_t event = proto_.begin(defaults::kTrackEvent);
  proto_.integer(event_fields::kTrack, track);
  proto_.end(event);
  proto_.integer(defaults::kTimestampClock, clock_snapshot::kIncremental);
  proto_.end(settings);
  finish_packet(first);

  const std::size_t second = proto_.begin(trace_fields::kPacket);
  proto_.integer(packet::kSequenceId, static_cast<std::uint64_t>(sequence.id));
  const std::size_t snapshot = proto_.begin(packet::kClockSnapshot);
  for (const int id : {clock_snapshot::kBoottime, clock_snapshot::kIncremental}) {
    const std::size_t entry = proto_.begin(clock_snapshot::kClock);
    proto_.integer(clock_snapshot::kId, id);
    proto_.integer(clock_snapshot::kTimestamp, begin_ns - origin_ns_);
    if (id == clock_snapshot::kIncremental) proto_.integer(clock_snapshot::kIsIncremental, 1);
    proto_.end(entry);
  }
  proto_.end(snapshot);
  finish_packet(second);
  return sequence;
}

std::int64_t PerfettoFile::name(std::string_view text) {
  const auto [found, is_new] = numbers_.try_emplace(std::string(text), static_cast<std::int64_t>(names_.size()));
  if (is_new) names_.emplace_back(text);
  return found->second;
}

std::size_t PerfettoFile::begin_event_packet(Sequence& sequence, std::int64_t at_ns) {
  const std::size_t packet = proto_.begin(trace_fields::kPacket);
  proto_.integer(packet::kTimestamp, at_ns - sequence.last_ns);
  sequence.last_ns = at_ns;
  proto_.integer(packet::kSequenceId, static_cast<std::uint64_t>(sequence.id));
  proto_.integer(packet::kSequenceFlags, packet::kNeedsState);
  return packet;
}

// Entries that the sequence does not have yet, in the packet of the event that needs them first.
void PerfettoFile::intern(Sequence& sequence, const Event& event) {
  std::size_t data = 0;
  const auto entry = [&](std::uint32_t kind, std::size_t number, std::string_view text) {
    if (data == 0) data = proto_.begin(packet::kInternedData);
    const std::size_t body = proto_.begin(kind);
    proto_.integer(interned::kId, static_cast<std::uint64_t>(number));
    proto_.text(interned::kText, text);
    proto_.end(body);
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

void PerfettoFile::annotate(const Annotation& annotation) {
  const std::size_t body = proto_.begin(event_fields::kAnnotation);
  proto_.integer(annotation_fields::kName, annotation.note + 1);
  proto_.integer(annotation.is_name ? annotation_fields::kText : annotation_fields::kInteger, annotation.value);
  proto_.end(body);
}

void PerfettoFile::event_packet(Sequence& sequence, std::int64_t at_ns, Type type, const Event& event) {
  const std::size_t packet = begin_event_packet(sequence, at_ns);
  intern(sequence, event);
  const std::size_t body = proto_.begin(packet::kTrackEvent);
  proto_.integer(event_fields::kType, type);
  proto_.integer(event_fields::kName, event.name);
  if (!event.category.empty()) {
    proto_.integer(event_fields::kCategory, static_cast<std::uint64_t>(category_number(event.category)));
  }
  for (const Annotation& annotation : event.notes) annotate(annotation);
  for (const std::uint64_t flow : event.flows) proto_.fixed64(event_fields::kFlow, flow);
  if (event.ends_flow != 0) proto_.fixed64(event_fields::kEndsFlow, event.ends_flow);
  proto_.end(body);
  finish_packet(packet);
}

void PerfettoFile::close(Sequence& sequence, std::int64_t at_ns) {
  const std::size_t packet = begin_event_packet(sequence, at_ns);
  const std::size_t body = proto_.begin(packet::kTrackEvent);
  proto_.integer(event_fields::kType, kEnd);
  proto_.end(body);
  finish_packet(packet);
}

void PerfettoFile::count(Sequence& sequence, std::int64_t at_ns, double value) {
  const std::size_t packet = begin_event_packet(sequence, at_ns);
  const std::size_t body = proto_.begin(packet::kTrackEvent);
  proto_.integer(event_fields::kType, kCounter);
  proto_.real(event_fields::kRealCounter, std::isfinite(value) ? value : 0);
  proto_.end(body);
  finish_packet(packet);
}

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
