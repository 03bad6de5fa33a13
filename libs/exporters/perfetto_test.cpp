// The file is decoded again by a reader of its own: every slice is there once, with its time, on its track.
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "exporters/exporter.h"
#include "exporters/lanes.h"
#include "exporters/proto_writer.h"
#include "exporters/test_proto.h"
#include "exporters/test_random_run.h"

namespace llmprof::exporters {
namespace {

TEST(ProtoWriter, WritesWhatAReaderReads) {
  ProtoWriter writer;
  writer.integer(1, std::uint64_t{300});
  writer.integer(2, std::int64_t{-1});
  const std::size_t body = writer.begin(3);
  writer.text(1, std::string(200, 'x'));  // its length takes two bytes, as does that of the message around it
  writer.end(body);
  writer.real(4, 1.5);
  const auto fields = proto_fields(writer.bytes());
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(writer.bytes().substr(0, 3), "\x08\xAC\x02");  // 300 in the encoding's own documentation
  EXPECT_EQ(fields[0].value, 300u);
  EXPECT_EQ(static_cast<std::int64_t>(fields[1].value), -1);
  EXPECT_EQ(fields[2].bytes.size(), 203u);
  EXPECT_EQ(proto_fields(fields[2].bytes)[0].bytes, std::string(200, 'x'));
  EXPECT_EQ(std::bit_cast<double>(fields[3].value), 1.5);
}

TEST(Lanes, WhatDoesNotNestGetsALaneOfItsOwn) {
  Lanes lanes;
  std::vector<std::pair<std::size_t, std::int64_t>> closed;
  const auto close = [&](std::size_t lane, std::int64_t at) { closed.emplace_back(lane, at); };
  EXPECT_EQ(lanes.place(0, 100, true, close), 0u);
  EXPECT_EQ(lanes.place(10, 50, true, close), 0u);   // inside
  EXPECT_EQ(lanes.place(20, 60, true, close), 1u);   // ends after what holds it
  EXPECT_EQ(lanes.place(50, 100, true, close), 0u);  // after the second, inside the first
  EXPECT_EQ(closed, (std::vector<std::pair<std::size_t, std::int64_t>>{{0, 50}}));
  closed.clear();
  EXPECT_EQ(lanes.place(100, 100, false, close), 0u);  // both ended
  EXPECT_EQ(closed, (std::vector<std::pair<std::size_t, std::int64_t>>{{0, 100}, {0, 100}}));
  Lanes kernels;
  kernels.place(0, 100, false, close);
  EXPECT_EQ(kernels.place(10, 20, false, close), 1u);  // a kernel holds none, even if it would fit
}

// Slices by the name of the thread track they are on, or by tid where it has no name.
struct Decoded {
  std::map<std::string, Sum> tracks;
  std::multiset<std::uint64_t> flows, ended_flows;
  std::set<std::string> names;
  std::int64_t instants = 0;
};

class Decoder {
 public:
  Decoded decode(std::string_view bytes) {
    for (const ProtoField& packet : proto_fields(bytes)) {
      EXPECT_EQ(packet.number, 1u);
      take(proto_fields(packet.bytes));
    }
    for (const auto& [track, open] : open_) EXPECT_TRUE(open.empty()) << "a slice of track " << track << " never ends";
    return std::move(out_);
  }

 private:
  struct Sequence {
    std::uint64_t track = 0;
    std::int64_t now = -1;
    std::map<std::uint64_t, std::string> names;
    bool cleared = false;
  };

  void take(const std::vector<ProtoField>& packet) {
    Sequence& sequence = sequences_[find_field(packet, 10)->value];
    const ProtoField* flags = find_field(packet, 13);
    if (flags != nullptr && (flags->value & 1) != 0) sequence.cleared = true;
    if (const auto* defaults = find_field(packet, 59)) take_defaults(sequence, proto_fields(defaults->bytes));
    if (const auto* snapshot = find_field(packet, 6)) take_clock(sequence, proto_fields(snapshot->bytes));
    if (const auto* descriptor = find_field(packet, 60)) take_track(proto_fields(descriptor->bytes));
    if (const auto* interned = find_field(packet, 12)) {
      for (const ProtoField& entry : proto_fields(interned->bytes)) {
        const auto fields = proto_fields(entry.bytes);
        if (entry.number == 2) sequence.names[find_field(fields, 1)->value] = find_field(fields, 2)->bytes;
      }
    }
    if (const auto* event = find_field(packet, 11)) {
      ASSERT_TRUE(sequence.cleared);
      ASSERT_EQ(flags->value, 2u);
      sequence.now += static_cast<std::int64_t>(find_field(packet, 8)->value);
      take_event(sequence, proto_fields(event->bytes));
    }
  }
  void take_defaults(Sequence& sequence, const std::vector<ProtoField>& fields) {
    EXPECT_EQ(find_field(fields, 58)->value, 64u);  // the incremental clock
    sequence.track = find_field(proto_fields(find_field(fields, 11)->bytes), 11)->value;
  }
  void take_clock(Sequence& sequence, const std::vector<ProtoField>& fields) {
    for (const ProtoField& clock : fields) {
      if (clock.number != 1) continue;
      const auto one = proto_fields(clock.bytes);
      if (find_field(one, 1)->value == 64) sequence.now = static_cast<std::int64_t>(find_field(one, 2)->value);
    }
  }
  void take_track(const std::vector<ProtoField>& fields) {
    const std::uint64_t uuid = find_field(fields, 1)->value;
    if (const auto* thread = find_field(fields, 4)) {
      const auto one = proto_fields(thread->bytes);
      const auto* name = find_field(one, 5);
      titles_[uuid] = name != nullptr ? std::string(name->bytes) : std::to_string(find_field(one, 2)->value);
    } else if (const auto* parent = find_field(fields, 5)) {
      titles_[uuid] = titles_.contains(parent->value) ? titles_[parent->value] : "";  // a further lane
    }
  }
  void take_event(const Sequence& sequence, const std::vector<ProtoField>& event) {
    const std::uint64_t type = find_field(event, 9)->value;
    std::vector<std::int64_t>& open = open_[sequence.track];
    if (type == 1) {
      const auto name = sequence.names.find(find_field(event, 10)->value);
      ASSERT_NE(name, sequence.names.end());
      out_.names.insert(name->second);
      open.push_back(sequence.now);
      for (const ProtoField& field : event) {
        if (field.number == 47) out_.flows.insert(field.value);
        if (field.number == 48) out_.ended_flows.insert(field.value);
      }
    } else if (type == 2) {
      ASSERT_FALSE(open.empty());
      Sum& sum = out_.tracks[titles_[sequence.track]];
      ++sum.count;
      sum.ns += sequence.now - open.back();
      open.pop_back();
    } else if (type == 3) {
      ++out_.instants;
    }
  }

  std::map<std::uint64_t, Sequence> sequences_;
  std::map<std::uint64_t, std::string> titles_;
  std::map<std::uint64_t, std::vector<std::int64_t>> open_;
  Decoded out_;
};

std::string written_as(const std::string& format, const trace::Run& run, const Selection& selection = {}) {
  const std::string file = run.folder() + "." + format;
  const auto written = find_exporter(format)->write({.run = run, .selection = selection, .output = file, .tables = {}});
  EXPECT_TRUE(written) << written.error().message;
  auto bytes = base::read_file(file, 1u << 30);
  EXPECT_TRUE(bytes);
  return bytes ? *bytes : "";
}

TEST(Perfetto, EverySliceComesBackWhateverOverlaps) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    trace::TestFolder folder;
    RandomRun made;
    made.write(folder / "x.llmprof", seed, 400);
    const auto run = trace::Run::open(folder / "x");
    ASSERT_TRUE(run) << run.error().message;
    const Decoded decoded = Decoder().decode(written_as("perfetto", *run));
    for (const auto& [stream, sum] : made.streams)
      EXPECT_EQ(decoded.tracks.at("stream " + std::to_string(stream)), sum);
    // A launch that another call of the same time holds counts once; random launches of one thread seldom coincide.
    std::int64_t on_threads = 0, expected = 0;
    for (const char* tid : {"4242", "4243"}) on_threads += decoded.tracks.at(tid).count;
    for (const auto& [thread, sum] : made.threads) expected += sum.count;
    EXPECT_LE(on_threads, expected);
    EXPECT_GE(on_threads, expected - 40);
    EXPECT_EQ(static_cast<std::int64_t>(decoded.flows.size()), made.flows);
    EXPECT_EQ(decoded.flows, decoded.ended_flows);  // every launch leads somewhere
    EXPECT_TRUE(decoded.names.contains("new\nline \"quoted\" \\ \x01"));
  }
}

TEST(Perfetto, AnEmptyRunIsAValidFile) {
  trace::TestFolder folder;
  auto writer = trace::RunWriter::create(folder / "x.llmprof");
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->finish({.environment = "{}", .source = "test"}));
  const auto run = trace::Run::open(folder / "x");
  ASSERT_TRUE(run);
  EXPECT_TRUE(Decoder().decode(written_as("perfetto", *run)).tracks.empty());
}

TEST(Perfetto, AWindowKeepsWhatOverlapsItWhole) {
  trace::TestFolder folder;
  trace::make_small_run(folder / "x.llmprof");
  const auto run = trace::Run::open(folder / "x");
  ASSERT_TRUE(run);
  const Decoded decoded =
      Decoder().decode(written_as("perfetto", *run, {.begin_ns = 2500, .end_ns = 2600, .stage = ""}));
  EXPECT_EQ(decoded.tracks.at("stream 7"), (Sum{1, 900}));  // the gemm of 2000 to 2900, not the softmax of 3000
}

}  // namespace
}  // namespace llmprof::exporters
