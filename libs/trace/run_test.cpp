// What is written is read back.
#include "trace/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "base/file.h"
#include "trace/database.h"
#include "trace/table_files.h"
#include "trace/test_files.h"
#include "trace/test_run.h"

namespace llmprof::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Run, KeepsWhatWasWritten) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->info().source, "test");
  EXPECT_EQ(run->info().environment, R"({"cpu":"test"})");
  EXPECT_THAT(run->info().command, ElementsAre("serve", "--port", "1"));
  const auto kernels = run->columns("SELECT id, name, grid_x, stream FROM kernel");  // file order: thread, then begin
  ASSERT_TRUE(kernels) << kernels.error().message;
  EXPECT_THAT(kernels->values[0], ElementsAre(10, 11, 12));
  EXPECT_EQ(kernels->values[1][0], kernels->values[1][1]);
  EXPECT_EQ(kernels->names[static_cast<std::size_t>(kernels->values[1][2])], "softmax");
  EXPECT_THAT(kernels->values[2], ElementsAre(Columns::kNull, 128, Columns::kNull));
  EXPECT_THAT(kernels->values[3], ElementsAre(Columns::kNull, 7, 7));
}

TEST(Run, ColumnsComeInChunks) {
  TestFolder folder;
  make_small_run(folder / "x.llmprof");
  const auto run = Run::open(folder / "x");
  ASSERT_TRUE(run) << run.error().message;
  // 5000 rows are more than two chunks; names alternate, reals are NULL in every third row.
  const std::string sql =
      "SELECT i, CASE WHEN i % 2 = 0 THEN 'even and longer than inline' ELSE 'odd' END AS name, "
      "CASE WHEN i % 3 = 0 THEN NULL ELSE i / 4.0::DOUBLE END AS quarter FROM range(5000) AS t(i) ORDER BY i";
  std::int64_t rows = 0, nulls = 0, chunks = 0;
  const auto read = run->column_chunks(sql, [&](const ColumnChunk& chunk) {
    ++chunks;
    for (std::size_t i = 0; i < chunk.count; ++i, ++rows) {
      EXPECT_EQ(chunk.values[0][i], rows);
      EXPECT_EQ(chunk.names[static_cast<std::size_t>(chunk.values[1][i])],
                rows % 2 == 0 ? "even and longer than inline" : "odd");
      if (std::isnan(chunk.reals[2][i]))
        ++nulls;
      else
        EXPECT_EQ(chunk.reals[2][i], static_cast<double>(rows) / 4);
    }
    return true;
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(rows, 5000);
  EXPECT_EQ(nulls, 1667);
  EXPECT_GE(chunks, 3);
  chunks = 0;
  ASSERT_TRUE(run->column_chunks(sql, [&](const ColumnChunk&) { return ++chunks < 1; }));  // a sink may have enough
  EXPECT_EQ(chunks, 1);
  EXPECT_FALSE(run->column_chunks("SELECT [1, 2]", [](const ColumnChunk&) { return true; }));
}

TEST(Run, TablesWithoutRowsAreEmptyViews) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run);
  const auto counts =
      run->query("SELECT (SELECT count(*) FROM gemm), (SELECT sum(m) FROM gemm), (SELECT count(*) FROM attribution)");
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->rows[0][0].as_int(), 0);
  EXPECT_TRUE(counts->rows[0][1].is_null());
  EXPECT_FALSE(base::is_file(folder / "a.llmprof/tables/gemm.parquet"));
}

TEST(Run, WithoutAnyRow) {
  const TestFolder folder;
  auto writer = RunWriter::create(folder / "empty.llmprof");
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->finish({}));
  auto run = Run::open(folder / "empty");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->query("SELECT count(*) FROM kernel_all")->rows[0][0].as_int(), 0);
  EXPECT_TRUE(check_run(*run)->empty());
}

TEST(Run, EveryTypeAtItsEnds) {
  const TestFolder folder;
  auto writer = RunWriter::create(folder / "a.llmprof");
  ASSERT_TRUE(writer);
  const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
  writer->add(RangeRow{.id = INT64_MAX,
                       .begin_ns = INT64_MIN,
                       .end_ns = 0,
                       .name = name(""),
                       .depth = INT32_MIN,
                       .payload = INT64_MIN,
                       .payload_double = 1e308,
                       .closed = false});
  writer->add(RangeRow{.id = -1, .begin_ns = 0, .end_ns = INT64_MAX, .depth = INT32_MAX, .payload_double = -0.5});
  ASSERT_TRUE(writer->finish({}));
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run) << run.error().message;
  const auto rows = run->query(
      "SELECT id, begin_ns, end_ns, name, depth, payload, payload_double, closed FROM range ORDER BY begin_ns");
  ASSERT_TRUE(rows) << rows.error().message;
  const auto& first = rows->rows[0];
  EXPECT_EQ(first[0].as_int(), INT64_MAX);
  EXPECT_EQ(first[1].as_int(), INT64_MIN);
  EXPECT_EQ(first[3].type, Value::Type::kText);  // "" is a name, NULL is none
  EXPECT_EQ(first[3].text, "");
  EXPECT_EQ(first[4].as_int(), INT32_MIN);
  EXPECT_EQ(first[5].as_int(), INT64_MIN);
  EXPECT_EQ(first[6].as_double(), 1e308);
  EXPECT_EQ(first[7].type, Value::Type::kBool);
  EXPECT_EQ(first[7].as_int(), 0);
  const auto& second = rows->rows[1];
  EXPECT_TRUE(second[3].is_null());
  EXPECT_TRUE(second[5].is_null());
  EXPECT_EQ(second[6].as_double(), -0.5);
  EXPECT_EQ(second[7].as_int(), 1);
}

TEST(Run, HostileNamesSurvive) {
  const TestFolder folder;
  const std::vector<std::string> names{"'); DROP TABLE kernel; --",
                                       "\"quoted\"",
                                       "line\nbreak\ttab",
                                       "back\\slash",
                                       "NULL",
                                       "\xe2\x80\xae"
                                       "rtl",
                                       std::string(100'000, 'x'),
                                       "a",
                                       "A",
                                       " a ",
                                       "\xf0\x9f\x92\xa9",
                                       "%s%n{}"};
  auto writer = RunWriter::create(folder / "a.llmprof");
  ASSERT_TRUE(writer);
  for (std::size_t i = 0; i < names.size(); ++i) {
    writer->add(KernelRow{
        .id = static_cast<Id>(i), .begin_ns = static_cast<Id>(i), .name = writer->strings().intern(names[i])});
  }
  writer->add(KernelRow{.id = 99, .begin_ns = 99, .name = writer->strings().intern(std::string_view("nul\0\xff", 5))});
  ASSERT_TRUE(writer->finish({}));
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run) << run.error().message;
  const auto rows = run->query("SELECT name FROM kernel ORDER BY begin_ns");
  ASSERT_TRUE(rows) << rows.error().message;
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(rows->rows[i][0].text, names[i]);
  EXPECT_EQ(rows->rows.back()[0].text, "nul\\x00\\xff");
}

// The widths of ENUM codes change at 256 and 65536 members.
TEST(Run, ManyNames) {
  for (const std::int64_t count : {255, 256, 65535, 65536, 70000}) {
    const TestFolder folder;
    auto writer = RunWriter::create(folder / "a.llmprof");
    ASSERT_TRUE(writer);
    for (Id i = 0; i < count; ++i)
      writer->add(KernelRow{.id = i, .begin_ns = i, .name = writer->strings().intern(std::to_string(i))});
    ASSERT_TRUE(writer->finish({}));
    auto run = Run::open(folder / "a");
    ASSERT_TRUE(run) << run.error().message;
    const auto wrong = run->query("SELECT count(*), count(*) FILTER (WHERE name <> id::VARCHAR) FROM kernel");
    EXPECT_EQ(wrong->rows[0][0].as_int(), count);
    EXPECT_EQ(wrong->rows[0][1].as_int(), 0);
  }
}

TEST(Run, LargeTablesAreWrittenInParts) {
  const TestFolder folder;
  auto writer = RunWriter::create(folder / "a.llmprof");
  ASSERT_TRUE(writer);
  constexpr Id kRows = 1'300'000;  // a part holds at most 2^20 rows
  for (Id i = 0; i < kRows; ++i) {
    writer->add(StackRow{.stack_id = kRows - i, .depth = static_cast<std::int32_t>(i % 7), .frame_id = i});
  }
  ASSERT_TRUE(writer->finish({}));
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->info().files.size(), 2u);
  EXPECT_EQ(run->info().files[1].file, "tables/stack.1.parquet");
  EXPECT_EQ(run->info().files[0].rows, 1 << 20);
  const auto sums = run->query("SELECT count(*), sum(stack_id + frame_id), count(DISTINCT stack_id) FROM stack");
  EXPECT_EQ(sums->rows[0][0].as_int(), kRows);
  EXPECT_EQ(sums->rows[0][1].as_int(), kRows * kRows);  // stack_id + frame_id is kRows in every row
  EXPECT_EQ(sums->rows[0][2].as_int(), kRows);
  const auto order =
      run->columns("SELECT stack_id FROM stack LIMIT 1048576");  // the first part: sorted though added backwards
  EXPECT_TRUE(std::ranges::is_sorted(order->values[0]));
}

TEST(Run, FilesArePrivate) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  for (const char* name : {"", "/tables"}) {
    struct stat info {};
    ASSERT_EQ(::stat((folder / "a.llmprof" + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
  for (const char* name : {"/run.json", "/tables/kernel.parquet"}) {
    struct stat info {};
    ASSERT_EQ(::stat((folder / "a.llmprof" + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST(Run, PathsMayHoldAnything) {
  const TestFolder folder;
  for (const std::string name : {"with space", "quo'te", "glob[1]*?", "{a,b}", "\xc3\xa9"}) {
    make_small_run(folder / (name + ".llmprof"));
    auto run = Run::open(folder / name);
    ASSERT_TRUE(run) << name << ": " << run.error().message;
    EXPECT_EQ(run->query("SELECT count(*) FROM kernel")->rows[0][0].as_int(), 3) << name;
    const auto user = run->user_query("SELECT count(*) FROM kernel");
    ASSERT_TRUE(user) << name << ": " << user.error().message;
    EXPECT_EQ(user->rows[0][0].as_int(), 3) << name;
  }
}

TEST(Run, AnAbandonedWriterLeavesNoRun) {
  const TestFolder folder;
  {
    auto writer = RunWriter::create(folder / "a.llmprof");
    ASSERT_TRUE(writer);
    add_small_run(*writer);
  }
  EXPECT_THAT(why_not(folder / "a"), HasSubstr("no run.json"));
  EXPECT_THAT(base::list_directory(folder / "a.llmprof"), ElementsAre());
  make_small_run(folder / "a.llmprof");  // and the folder can be used again
  EXPECT_EQ(why_not(folder / "a"), "opened");
  EXPECT_FALSE(RunWriter::create(folder / "a.llmprof"));  // but not twice
}

TEST(Run, InterruptedWritersSaySo) {
  const TestFolder folder;
  auto writer = RunWriter::create(folder / "a.llmprof");
  ASSERT_TRUE(writer);
  for (Id i = 0; i < 400'000; ++i) writer->add(KernelRow{.id = i});
  const auto finished = writer->finish({}, [](const base::ProgressUpdate&) { return false; });
  // The work may be done before it is asked for progress; either way the run is whole or not there.
  EXPECT_EQ(finished ? "opened" : "not a run", why_not(folder / "a") == "opened" ? "opened" : "not a run");
}

// One launch of 100 ns whose two nodes were not recorded: of 0 to 0.4 and of 0.5 to 1 of it. 3 kernels are measured.
TEST(Run, KernelAllAndWorkHaveTheEstimates) {
  const TestFolder folder;
  auto writer = RunWriter::create(folder / "a.llmprof");
  ASSERT_TRUE(writer);
  add_small_run(*writer);
  writer->add(
      GraphLaunchRow{.id = 5, .begin_ns = 100, .end_ns = 200, .graph = 1, .device_id = 1, .stream = 9, .thread_id = 1});
  writer->add(GraphNodeRow{.id = 6, .graph = 1, .node = 1, .name = writer->strings().intern("node_gemm")});
  writer->add(GraphNodeRow{.id = 7, .graph = 1, .node = 2, .name = writer->strings().intern("node_norm")});
  ASSERT_TRUE(writer->finish({}));
  auto derived = DerivedWriter::create(folder / "a.llmprof", "v1-test");
  ASSERT_TRUE(derived) << derived.error().message;
  derived->add(NodeShareRow{.graph_node_id = 6, .begin_share = 0, .end_share = 0.4, .samples = 1, .confidence = 0.5});
  derived->add(NodeShareRow{.graph_node_id = 7, .begin_share = 0.5, .end_share = 1, .samples = 1, .confidence = 0.5});
  ASSERT_TRUE(derived->finish());
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->query("SELECT count(*) FROM kernel_all")->rows[0][0].as_int(), 3);
  ASSERT_TRUE(*run->use_derived("v1-test"));
  const auto rows = run->query(
      "SELECT name, stream, source, confidence, grid_x, begin_ns, end_ns FROM kernel_all "
      "WHERE source = 'estimated' ORDER BY begin_ns");
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->rows.size(), 2u);
  EXPECT_EQ(rows->rows[0][6].as_int(), 140);
  EXPECT_EQ(rows->rows[1][5].as_int(), 150);
  EXPECT_EQ(rows->rows[1][6].as_int(), 200);
  EXPECT_EQ(rows->rows[0][0].text, "node_gemm");
  EXPECT_EQ(rows->rows[0][1].as_int(), 9);
  EXPECT_EQ(rows->rows[0][3].as_double(), 0.5);
  EXPECT_TRUE(rows->rows[0][4].is_null());
  const auto sums =
      run->user_query("SELECT source, sum(executions), sum(time_ns) FROM work GROUP BY source ORDER BY source");
  ASSERT_TRUE(sums) << sums.error().message;  // users see it too
  ASSERT_EQ(sums->rows.size(), 2u);
  EXPECT_EQ(sums->rows[0][1].as_int(), 2);
  EXPECT_EQ(sums->rows[0][2].as_int(), 90);
  EXPECT_EQ(sums->rows[1][1].as_int(), 3);
}

TEST(Derived, IsThereOrNot) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  auto run = Run::open(folder / "a");
  ASSERT_TRUE(run);
  EXPECT_FALSE(*run->use_derived("k1"));
  std::vector<AttributionRow> rows;
  for (Id i = 0; i < 2'500'000; ++i) rows.push_back({.kernel_id = i});
  {
    auto writer = DerivedWriter::create(folder / "a.llmprof", "k1");
    ASSERT_TRUE(writer);
    rows[7].stage = writer->strings().intern("decode");
    writer->add_all(rows);
    EXPECT_FALSE(*run->use_derived("k1"));  // not before it is finished
    ASSERT_TRUE(writer->finish());
  }
  ASSERT_TRUE(*run->use_derived("k1"));
  const auto back = run->query(
      "SELECT count(*), max(kernel_id), any_value(kernel_id) FILTER (WHERE stage = 'decode') FROM attribution");
  EXPECT_EQ(back->rows[0][0].as_int(), 2'500'000);
  EXPECT_EQ(back->rows[0][1].as_int(), 2'499'999);
  EXPECT_EQ(back->rows[0][2].as_int(), 7);
  const std::string file = folder / "a.llmprof/derived/k1/attribution.parquet";
  write(file, read(file).substr(0, 100));
  EXPECT_FALSE(*run->use_derived("k1"));  // damaged: computed again
  auto again = DerivedWriter::create(folder / "a.llmprof", "k1");
  again->add(AttributionRow{.kernel_id = 1});
  ASSERT_TRUE(again->finish());
  EXPECT_TRUE(*run->use_derived("k1"));
  EXPECT_FALSE(DerivedWriter::create(folder / "a.llmprof", "../k"));
}

}  // namespace
}  // namespace llmprof::trace
