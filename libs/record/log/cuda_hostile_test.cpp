// GPU records of any content: the run stays consistent, whatever they say. And what only the recorder's machine can
// add: functions of native frames.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "record/log/stacks.h"
#include "record/testing/cuda_log_builder.h"
#include "record/testing/recording.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;

// Numbers from a few, so that they meet; times mostly of the recording.
wire::Record any_record(wire::RecordKind kind, std::mt19937_64& random) {
  wire::Record record = LogBuilder::make(kind);
  const wire::FieldList fields = wire::fields_of(static_cast<std::uint64_t>(kind));
  for (std::size_t f = 0; f < fields.count; ++f) {
    const bool small = random() % 4 != 0;
    const std::uint64_t value = small ? random() % 20 : random() >> (random() % 64);
    const auto bits = static_cast<unsigned>(8 * fields.fields[f].width);
    wire::store_field(record, fields.fields[f], bits == 64 ? value : value & ((1ull << bits) - 1));
  }
  const std::uint64_t begin_ns = kBegin + random() % 1000;
  if (random() % 8 != 0 && fields.fields[0].width == 8) wire::store_field(record, fields.fields[0], begin_ns);
  if (random() % 8 != 0 && fields.fields[1].width == 8) wire::store_field(record, fields.fields[1], begin_ns + 50);
  return record;
}

TEST(CudaIngest, AnyRecordsMakeAConsistentRun) {
  LogBuilder log(77);
  log.thread(1, 77, "main", kBegin);
  log.thread(2, 78, "other", kBegin);
  for (int i = 0; i < 10; ++i) log.name("name " + std::to_string(i));
  std::mt19937_64 random(1);
  constexpr int kFirst = static_cast<int>(wire::RecordKind::kDevice), kLast = static_cast<int>(wire::RecordKind::kGap);
  for (int i = 0; i < 20'000; ++i) {
    auto kind = static_cast<wire::RecordKind>(kFirst + static_cast<int>(random() % (kLast - kFirst + 1)));
    if (i % 16 == 0) kind = wire::RecordKind::kFrame;
    if (i % 16 == 8) kind = wire::RecordKind::kStack;
    if (i % 16 == 4) kind = wire::RecordKind::kCounterWindow;
    if (i % 16 == 5) kind = wire::RecordKind::kCounter;
    if (i % 16 == 6) kind = wire::RecordKind::kStall;
    log.add(static_cast<std::uint32_t>(random() % 3), {any_record(kind, random)});
  }
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  for (const std::string table : {"kernel", "copy", "graph_launch", "graph_node", "gemm", "allocation", "api",
                                  "counter_window", "counter", "stall"}) {
    EXPECT_THAT(recording.rows("SELECT count(*) > 10 FROM \"" + table + "\""), ElementsAre("true")) << table;
  }
  const auto findings = check_run(recording.run());
  ASSERT_TRUE(findings);
  for (const auto& finding : *findings) ADD_FAILURE() << finding.where << ": " << finding.what;
}

extern "C" [[gnu::noinline]] int llmprof_test_place(int value) { return value + 1; }

TEST(LogFrames, FindTheFunctionsOfNativePlaces) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&llmprof_test_place), &info), 0);
  const auto address = reinterpret_cast<std::uintptr_t>(&llmprof_test_place);
  const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  for (const bool open_files : {true, false}) {
    TestFolder root;
    auto writer = trace::RunWriter::create(root / "x.llmprof");
    ASSERT_TRUE(writer);
    LogFrames frames;
    trace::Id next_id = 1;
    trace::FrameRow row;
    row.kind = writer->strings().intern("native");
    row.file = writer->strings().intern("/proc/self/exe");
    const trace::Id id = frames.id(row, address - base, next_id);
    EXPECT_EQ(frames.id(row, address - base, next_id), id);  // the same place again
    frames.finish(*writer, open_files);
    ASSERT_TRUE(writer->finish({}));
    const auto run = trace::Run::open(root / "x.llmprof");
    ASSERT_TRUE(run);
    const auto table = run->query("SELECT function FROM frame");
    ASSERT_TRUE(table);
    ASSERT_EQ(table->rows.size(), 1u);
    EXPECT_THAT(table->rows[0][0].text, testing::StartsWith(open_files ? "llmprof_test_place" : "0x"));
  }
}

}  // namespace
}  // namespace llmprof::record
