// Real snapshots (tests/imports) against numbers that Python's pickle module and PyTorch's memory_summary give.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"

namespace llmprof::importers {
namespace {

using namespace trace;

struct Read {
  MemorySink sink;
  Result<void> result;
};

void read_into(const std::string& name, Read& read) {
  auto input = Input::open(std::string(LLMPROF_SOURCE_DIR) + "/tests/imports/" + name);
  ASSERT_TRUE(input) << input.error().message;
  const auto head = input->head();
  ASSERT_TRUE(head);
  const Importer* importer = sniff(*head);
  ASSERT_NE(importer, nullptr);
  EXPECT_EQ(importer->name, "memory-snapshot");
  read.result = importer->parse(*input, read.sink);
  read.sink.flush();
}

struct Curve {
  std::int64_t peak = 0, peak_ns = 0, end = 0;
};
Curve curve_of(const MemorySink& sink, std::string_view kind) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> changes;  // frees of a moment first
  for (const AllocationRow& row : sink.rows<AllocationRow>()) {
    if (sink.text(row.kind) != kind) continue;
    changes[{row.begin_ns, 1}] += row.bytes;
    if (row.end_ns) changes[{*row.end_ns, 0}] -= row.bytes;
  }
  Curve curve;
  for (const auto& [key, bytes] : changes) {
    curve.end += bytes;
    if (curve.end > curve.peak) curve.peak = curve.end, curve.peak_ns = key.first;
  }
  return curve;
}

std::int64_t count_of(const MemorySink& sink, std::string_view kind) {
  const auto rows = sink.rows<AllocationRow>();
  return std::ranges::count_if(rows, [&](const AllocationRow& row) { return sink.text(row.kind) == kind; });
}

// One program, one object, six protocols: everything must be the same.
TEST(Snapshot, everyProtocolOfThePickleGivesTheSame) {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    Read read;
    ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_protocol" + std::to_string(protocol) + ".pickle.gz", read));
    ASSERT_TRUE(read.result) << protocol << ": " << read.result.error().message;
    EXPECT_TRUE(read.sink.losses.empty()) << read.sink.details.front();
    // Python: len(segments), sum(total_size), sum(allocated_size), blocks.
    const auto segments = read.sink.rows<MemorySegmentRow>();
    ASSERT_EQ(segments.size(), 11u);
    std::int64_t reserved = 0, allocated = 0;
    for (const auto& segment : segments) reserved += segment.bytes, allocated += segment.allocated_bytes;
    EXPECT_EQ(reserved, 249561088);
    EXPECT_EQ(allocated, 212525056);
    EXPECT_EQ(read.sink.rows<MemoryBlockRow>().size(), 37u);
    // 154 allocs, 124 of them freed; 14 segments taken, 3 given back.
    EXPECT_EQ(count_of(read.sink, "tensor"), 154);
    EXPECT_EQ(count_of(read.sink, "segment"), 14);
    // memory_summary of the program: requested memory at most 220676 KiB, now 206518; reserved at most 270336 KiB.
    const Curve tensors = curve_of(read.sink, "tensor"), held = curve_of(read.sink, "segment");
    EXPECT_EQ(tensors.peak / 1024, 220676);
    EXPECT_EQ(tensors.end / 1024, 206518);
    EXPECT_EQ(held.peak / 1024, 270336);
    EXPECT_EQ(held.end, reserved);
  }
}

TEST(Snapshot, outOfMemoryAndSettingsAreNoted) {
  Read read;
  ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_protocol4.pickle.gz", read));
  std::string notes;
  for (const NoteRow& note : read.sink.rows<NoteRow>()) {
    notes += std::string(read.sink.text(note.subject)) + ": " + std::string(read.sink.text(note.text)) + "\n";
  }
  // The event: size 1363148800, device_free 137972219904 bytes.
  EXPECT_NE(notes.find("out of memory: PyTorch could not get 1.36 GB of device memory; 138 GB"), std::string::npos)
      << notes;
  EXPECT_NE(notes.find("expandable_segments=False"), std::string::npos) << notes;
}

TEST(Snapshot, stacksAreSharedAndBeginAtTheInnermostFrame) {
  Read read;
  ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_protocol4.pickle.gz", read));
  // Python: distinct lists of frames in events, blocks and segments, and their frames.
  std::set<Id> stacks;
  for (const StackRow& row : read.sink.rows<StackRow>()) stacks.insert(row.stack_id);
  EXPECT_EQ(stacks.size(), 14u);
  const auto frames = read.sink.rows<FrameRow>();
  EXPECT_EQ(frames.size(), 16u);
  std::map<Id, FrameRow> by_id;
  for (const FrameRow& frame : frames) by_id[frame.id] = frame;
  const auto rows = read.sink.rows<AllocationRow>();
  const auto first = std::ranges::min_element(rows, {}, [](const AllocationRow& row) { return row.begin_ns; });
  for (const StackRow& row : read.sink.rows<StackRow>()) {
    if (row.stack_id != first->stack_id || row.depth != 0) continue;
    EXPECT_EQ(read.sink.text(by_id[row.frame_id].function), "weights");
    EXPECT_EQ(read.sink.text(by_id[row.frame_id].kind), "python");
    EXPECT_EQ(by_id[row.frame_id].line, 10);
  }
}

TEST(Snapshot, expandableSegmentsAreMappedAndUnmappedInPieces) {
  Read read;
  ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_expandable.pickle.gz", read));
  ASSERT_TRUE(read.result) << read.result.error().message;
  EXPECT_TRUE(read.sink.losses.empty()) << read.sink.details.front();
  const Curve tensors = curve_of(read.sink, "tensor"), held = curve_of(read.sink, "segment");
  EXPECT_EQ(tensors.peak, 225972568);  // Python, over the events
  EXPECT_EQ(held.peak, 278921216);
  EXPECT_EQ(held.end, 236978176);  // total_size of the 3 segments: unmapping took parts of what was mapped
  ASSERT_TRUE(read.sink.rows<MemorySegmentRow>().front().ts_ns);
  EXPECT_EQ(*read.sink.rows<MemorySegmentRow>().front().ts_ns, 1794770753062301000);  // of the event "snapshot"
}

// History began when 2048 bytes were about to be allocated, long after the weights: those are there from then on.
TEST(Snapshot, whatIsOlderThanTheHistoryIsThereFromItsFirstEventOn) {
  Read read;
  ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_train.pickle.gz", read));
  ASSERT_TRUE(read.result) << read.result.error().message;
  EXPECT_EQ(count_of(read.sink, "tensor"), 1187 + 42);
  const Curve tensors = curve_of(read.sink, "tensor");
  EXPECT_EQ(tensors.peak, 1173449860);
  EXPECT_EQ(tensors.peak_ns, 1794708031005151000);
  EXPECT_EQ(tensors.end, 730912896);
  EXPECT_EQ(curve_of(read.sink, "segment").end, 1239416832);
  ASSERT_EQ(read.sink.rows<DeviceRow>().size(), 1u);
  EXPECT_EQ(read.sink.rows<DeviceRow>().front().ordinal, 0);
  EXPECT_EQ(read.sink.clock.wall_of_zero_ns, 0);
  const auto ranges = read.sink.rows<RangeRow>();
  ASSERT_EQ(ranges.size(), 9u);  // 18 annotations
  EXPECT_EQ(read.sink.text(ranges.front().name), "prefill");
  EXPECT_EQ(ranges.front().end_ns - ranges.front().begin_ns, (1794708030657565 - 1794708030645293) * 1000);
}

TEST(Snapshot, withoutHistoryThereAreSegmentsOnly) {
  Read read;
  ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_no_history.pickle.gz", read));
  ASSERT_TRUE(read.result) << read.result.error().message;
  EXPECT_EQ(read.sink.rows<MemorySegmentRow>().size(), 11u);
  EXPECT_TRUE(read.sink.rows<AllocationRow>().empty());
  EXPECT_FALSE(read.sink.rows<MemorySegmentRow>().front().ts_ns);
}

TEST(Snapshot, nativeFramesKeepTheirNames) {
  Read read;
  ASSERT_NO_FATAL_FAILURE(read_into("memory_snapshot_native_frames.pickle.gz", read));
  ASSERT_TRUE(read.result) << read.result.error().message;
  const auto frames = read.sink.rows<FrameRow>();
  EXPECT_TRUE(std::ranges::any_of(frames, [&](const FrameRow& frame) {
    return read.sink.text(frame.function) == "at::cuda::getCurrentCUDABlasHandle()" && frame.file.id == 0 &&
           read.sink.text(frame.kind) == "native";
  }));
}

}  // namespace
}  // namespace llmprof::importers
