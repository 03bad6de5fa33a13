// What is not a whole run of ours is refused with a reason, and `check` finds what is wrong.
#include "trace/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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

void replace(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read(path);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  write(path, text.replace(at, from.size(), to));
}

TEST(NotARun, SaysWhy) {
  const TestFolder folder;
  EXPECT_THAT(why_not(folder / "nothing"), HasSubstr("no such run"));
  write(folder / "file", "x");
  EXPECT_THAT(why_not(folder / "file"), HasSubstr("it is a file"));
  ASSERT_TRUE(base::make_directories(folder / "b.llmprof"));
  EXPECT_THAT(why_not(folder / "b"), HasSubstr("it has no run.json"));
  write(folder / "b.llmprof/run.json", "not json");
  EXPECT_THAT(why_not(folder / "b"), HasSubstr("not valid JSON"));
  write(folder / "b.llmprof/run.json", "[]");
  EXPECT_THAT(why_not(folder / "b"), HasSubstr("not a JSON object"));
  write(folder / "b.llmprof/run.json", R"({"name": "package", "version": "1"})");
  EXPECT_THAT(why_not(folder / "b"), HasSubstr("does not say format llmprof-run"));
}

TEST(NotARun, OfANewerFormat) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  replace(folder / "a.llmprof/run.json", "\"format_version\": 1", "\"format_version\": 7");
  const auto run = Run::open(folder / "a");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(run.error().message, HasSubstr("with run format 7; this llmprof knows up to 1"));
  EXPECT_EQ(run.error().hint, "update llmprof");
}

TEST(Damage, RunJsonCutAnywhere) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  const std::string text = read(folder / "a.llmprof/run.json");
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {  // all but the last newline and brace
    EXPECT_FALSE(parse_run_info(text.substr(0, size), "run.json")) << size;
  }
  EXPECT_TRUE(parse_run_info(text, "run.json"));
}

TEST(Damage, RunJsonWithWrongValues) {
  const std::string entry =
      R"({"table": "kernel", "file": "tables/kernel.parquet", "rows": 1, "bytes": 2, "crc32c": "00000003"})";
  const auto parse = [](const std::string& files) {
    return parse_run_info(R"({"format": "llmprof-run", "format_version": 1, "files": )" + files + "}", "run.json");
  };
  EXPECT_TRUE(parse("[]"));
  EXPECT_TRUE(parse("[" + entry + "]"));
  EXPECT_FALSE(parse("[" + entry + "," + entry + "]"));  // listed twice
  EXPECT_FALSE(parse("{}"));
  EXPECT_FALSE(parse("[1]"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = entry;
    return parse("[" + changed.replace(changed.find(from), from.size(), to) + "]");
  };
  for (const char* path :
       {"../../etc/passwd", "tables/../kernel.parquet", "/tables/kernel.parquet", "tables/range.parquet",
        "tables/kernel.parquet/x", "tables/kernel..parquet", "tables/kernel.x.parquet", "tables//kernel.parquet",
        "tables/kernel.99999999999.parquet", "kernel.parquet", ""}) {
    EXPECT_FALSE(with("tables/kernel.parquet", path)) << path;
  }
  EXPECT_TRUE(with("tables/kernel.parquet", "tables/kernel.12.parquet"));
  EXPECT_FALSE(with(R"("rows": 1)", R"("rows": -1)"));
  EXPECT_FALSE(with(R"("rows": 1)", R"("rows": 1.5)"));
  EXPECT_FALSE(with(R"("rows": 1)", R"("rows": 18446744073709551615)"));
  EXPECT_FALSE(with(R"("bytes": 2)", R"("bytes": "2")"));
  EXPECT_FALSE(with("00000003", "3"));
  EXPECT_FALSE(with("00000003", "0000000g"));
  const auto unknown = with("\"kernel\"", "\"of_the_future\"");
  ASSERT_TRUE(unknown);  // a table added later is no damage
  EXPECT_TRUE(unknown->files.empty());
}

TEST(Damage, ParquetCutOrFlipped) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  const std::string file = folder / "a.llmprof/tables/kernel.parquet";
  const std::string bytes = read(file);
  for (std::size_t size = 0; size < bytes.size(); size += 97) {
    write(file, bytes.substr(0, size));
    EXPECT_THAT(why_not(folder / "a"), HasSubstr("bytes, its list says")) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); at += 31) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    write(file, flipped);
    EXPECT_THAT(why_not(folder / "a"), HasSubstr("do not match their checksum")) << at;
  }
  std::filesystem::remove(file);
  EXPECT_THAT(why_not(folder / "a"), HasSubstr("No such file"));
}

// A file whose checksum is right but which is not ours: what the metadata check is for.
class Foreign : public ::testing::Test {
 protected:
  Foreign() { make_small_run(folder_ / "a.llmprof"); }
  // Puts the result of a query in the place of the kernel table, with a matching entry in run.json.
  std::string open_with(const std::string& sql, const std::string& options = "COMPRESSION zstd") {
    const std::string file = folder_ / "a.llmprof/tables/kernel.parquet";
    auto database = Database::open();
    EXPECT_TRUE(database->connect()->run("COPY (" + sql + ") TO '" + file + "' (FORMAT parquet, " + options + ")"));
    auto info = *parse_run_info(read(folder_ / "a.llmprof/run.json"), "run.json");
    for (TableFile& entry : info.files) {
      if (entry.table != "kernel") continue;
      const auto stamp = *stamp_file(file);
      entry.rows = 1;
      entry.bytes = stamp.bytes;
      entry.crc32c = stamp.crc32c;
    }
    write(folder_ / "a.llmprof/run.json", format_run_info(info));
    return why_not(folder_ / "a");
  }
  TestFolder folder_;
};

TEST_F(Foreign, IsRefused) {
  EXPECT_EQ(open_with("SELECT 1::BIGINT AS id, 'x' AS name"), "opened");
  EXPECT_THAT(open_with("SELECT 'x' AS id"), HasSubstr("column id is VARCHAR, not BIGINT"));
  EXPECT_THAT(open_with("SELECT 1::INTEGER AS id"), HasSubstr("column id is INTEGER, not BIGINT"));
  EXPECT_THAT(open_with("SELECT 1::BIGINT AS unknown"), HasSubstr("no column of table kernel"));
  EXPECT_THAT(open_with("SELECT 1::BIGINT AS id, [1] AS list"), HasSubstr("nested"));
  EXPECT_THAT(open_with("SELECT i AS id FROM range(2) t(i)"), HasSubstr("row count is not 1"));
  EXPECT_THAT(open_with("SELECT 1::BIGINT AS id", "COMPRESSION brotli"), HasSubstr("compression BROTLI"));
  EXPECT_THAT(open_with("SELECT 1::BIGINT AS id", "COMPRESSION gzip"), HasSubstr("compression GZIP"));
}

TEST_F(Foreign, MissingColumnsAreNullAndNewOnesAreIgnored) {
  ASSERT_EQ(open_with("SELECT 5::BIGINT AS id, 1::BIGINT AS begin_ns, 2::BIGINT AS end_ns, true AS of_the_future"),
            "opened");
  auto run = Run::open(folder_ / "a");
  const auto rows = run->query("SELECT id, name, stream FROM kernel");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->rows[0][0].as_int(), 5);
  EXPECT_TRUE(rows->rows[0][1].is_null());
  EXPECT_FALSE(run->query("SELECT of_the_future FROM kernel"));
}

TEST_F(Foreign, NotEvenParquet) {
  const std::string file = folder_ / "a.llmprof/tables/kernel.parquet";
  std::string text = read(folder_ / "a.llmprof/run.json");
  auto info = *parse_run_info(text, "run.json");
  for (const std::string& bytes :
       {std::string("PAR1"), std::string("hello"), std::string(64, '\0'), "PAR1" + std::string(100, '\xff') + "PAR1"}) {
    write(file, bytes);
    for (TableFile& entry : info.files) {
      if (entry.table != "kernel") continue;
      const auto stamp = *stamp_file(file);
      entry.bytes = stamp.bytes;
      entry.crc32c = stamp.crc32c;
    }
    write(folder_ / "a.llmprof/run.json", format_run_info(info));
    EXPECT_THAT(why_not(folder_ / "a"), HasSubstr("cannot be read"));
  }
}

TEST(Check, FindsNothingInAGoodRun) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  auto run = Run::open(folder / "a");
  const auto findings = check_run(*run);
  ASSERT_TRUE(findings) << findings.error().message;
  for (const CheckFinding& finding : *findings) ADD_FAILURE() << finding.where << ": " << finding.what;
}

TEST(Check, FindsWhatIsWrong) {
  const TestFolder folder;
  auto writer = RunWriter::create(folder / "a.llmprof");
  add_small_run(*writer);
  writer->add(KernelRow{.id = 10,
                        .begin_ns = 500,
                        .end_ns = 400,
                        .device_id = 1,
                        .thread_id = 99});  // id again, backwards, no such thread
  writer->add(RangeRow{.id = 30, .process_id = 1, .thread_id = 1, .parent_id = 999});
  ASSERT_TRUE(writer->finish({}));
  auto run = Run::open(folder / "a");
  const auto findings = check_run(*run);
  ASSERT_TRUE(findings) << findings.error().message;
  std::vector<std::string> seen;
  for (const CheckFinding& finding : *findings)
    seen.push_back(finding.where + ": " + finding.what + (finding.fatal ? " (fatal)" : ""));
  EXPECT_THAT(seen,
              ElementsAre("kernel: 1 ids are there twice (fatal)", "kernel: 1 rows have end_ns before begin_ns (fatal)",
                          "kernel: 1 rows have a thread_id that is no thread",
                          "range: 1 rows have a parent_id that is no range"));
}

TEST(Check, SeesFilesThatChangedSinceOpening) {
  const TestFolder folder;
  make_small_run(folder / "a.llmprof");
  auto run = Run::open(folder / "a");
  const std::string file = folder / "a.llmprof/tables/kernel.parquet";
  std::string bytes = read(file);
  bytes[50] = static_cast<char>(bytes[50] ^ 1);
  write(file, bytes);
  const auto findings = check_run(*run);
  ASSERT_TRUE(findings);
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_TRUE(findings->front().fatal);
  EXPECT_THAT(findings->front().what, HasSubstr("checksum"));
}

TEST(Engine, MissingLibraryIsExplained) {
  EXPECT_THAT(library_folder(), HasSubstr("lib/llmprof"));
  ::setenv("LLMPROF_LIBDIR", "/nowhere", 1);
  EXPECT_EQ(library_folder(), "/nowhere");
  ::unsetenv("LLMPROF_LIBDIR");
}

TEST(Values, Convert) {
  EXPECT_EQ((Value{.type = Value::Type::kDouble, .real = 2.9}).as_int(), 2);
  EXPECT_EQ((Value{.type = Value::Type::kInt, .integer = 3}).as_double(), 3.0);
  EXPECT_EQ(Value{}.maybe_int(), std::nullopt);
  EXPECT_EQ((Value{.type = Value::Type::kInt, .integer = 3}).maybe_double(), 3.0);
}

}  // namespace
}  // namespace llmprof::trace
