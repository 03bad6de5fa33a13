// Databases that are damaged, disguised, of another version or not what they seem. Made here by SQLite itself; where a
// byte is changed, its place follows from the file format (sqlite.org/fileformat2.html).
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "importers/nsys_sqlite/host_calls.h"
#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using trace::Loss;

constexpr const char* kStrings =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, '_Z5scalePfi'), (3, 'scale(float *, int)');";
constexpr const char* kVersion =
    "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
    "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3');";
constexpr const char* kRuntime =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90, 95, 0, 11609833972, 7, 1);";  // process 692, thread 500
constexpr const char* kKernels =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, mangledName);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 130, 0, 7, 7, 11609833472, 2);";

std::string database(const std::string& sql) {
  sqlite3* connection = nullptr;
  sqlite3_open(":memory:", &connection);
  char* error = nullptr;
  sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error);
  EXPECT_EQ(error, nullptr) << error;
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(connection, "main", &size, 0);
  std::string content(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(connection);
  return content;
}
std::string good() { return std::string(kStrings) + kVersion + kRuntime + kKernels; }

struct Read : Imports {
  explicit Read(std::string bytes) : Imports("nsys", std::move(bytes)) {}
  std::size_t kernels() const { return sink.rows<trace::KernelRow>().size(); }
};

TEST(NsysBad, TheGoodOneIsGood) {
  const Read read(database(good()));
  ASSERT_TRUE(read.result) << read.error();
  const auto kernels = read.sink.rows<trace::KernelRow>();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(read.name(kernels[0].name), "scale");
  EXPECT_EQ(kernels[0].launch_begin_ns, 90);
  EXPECT_EQ(read.sink.rows<trace::ThreadRow>()[0].tid, 500);
  EXPECT_TRUE(read.sink.losses.empty());
}

TEST(NsysBad, NoDatabase) {
  EXPECT_THAT(Read("").error(), HasSubstr("byte 0: this is no SQLite database"));
  EXPECT_THAT(Read("SQLite format 3").error(), HasSubstr("byte 0: this is no SQLite database"));
  std::string odd_page = database(good());
  odd_page[16] = 0x11;
  EXPECT_THAT(Read(odd_page).error(), HasSubstr("byte 16: a page size of 4352 bytes"));
  EXPECT_THAT(Read(database("CREATE TABLE t (a)")).error(), HasSubstr("without table META_DATA_EXPORT"));
}

TEST(NsysBad, MissingTables) {
  EXPECT_THAT(Read(database(std::string(kVersion) + kKernels)).error(), HasSubstr("without table StringIds"));
  const Read read(database(std::string(kStrings) + kVersion + kRuntime));
  EXPECT_TRUE(read.result) << read.error();
  EXPECT_EQ(read.sink.lost(Loss::kNoDeviceWork), 1);
  EXPECT_THAT(Read(database(std::string(kStrings) + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, name)")).error(),
              HasSubstr("table CUPTI_ACTIVITY_KIND_KERNEL: it has no column end"));
}

TEST(NsysBad, ViewsAndOtherDisguises) {
  const std::string rest = std::string(kStrings) + kVersion + kRuntime;
  // An endless view: whoever counts its rows never returns.
  const Read view(database(rest +
                           "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL "
                           "SELECT start + 1 FROM n) SELECT start, start AS end FROM n"));
  EXPECT_EQ(view.error(), "table CUPTI_ACTIVITY_KIND_KERNEL: it is a view, not a table");
  EXPECT_EQ(Read(database(good() + "CREATE TRIGGER t AFTER INSERT ON CUPTI_ACTIVITY_KIND_KERNEL BEGIN SELECT 1; END"))
                .error(),
            "table CUPTI_ACTIVITY_KIND_KERNEL: it has a trigger (t)");
  EXPECT_EQ(Read(database(rest + "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start, end)")).error(),
            "table CUPTI_ACTIVITY_KIND_KERNEL: it is a virtual table, not a table");
  EXPECT_EQ(Read(database(rest + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end AS (start + 1))")).error(),
            "table CUPTI_ACTIVITY_KIND_KERNEL: it has generated columns");
  EXPECT_THAT(
      Read(database(rest + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start PRIMARY KEY, end) WITHOUT ROWID")).error(),
      HasSubstr("table CUPTI_ACTIVITY_KIND_KERNEL: no such column: _rowid_"));
  // A view that nobody needs is no harm.
  EXPECT_TRUE(Read(database(good() + "CREATE VIEW mine AS SELECT 1")).result);
}

TEST(NsysBad, Versions) {
  const auto with = [&](const std::string& version) {
    return Read(database(good() + "UPDATE META_DATA_EXPORT SET value = '" + version + "'"));
  };
  EXPECT_EQ(with("9.9.0").error(), "nsys export schema 9.9.0 not supported, only 3.x");
  EXPECT_EQ(with("2.1").error(), "nsys export schema 2.1 not supported, only 3.x");
  EXPECT_THAT(with("9.9.0").result.error().hint, HasSubstr("nsys export --type sqlite --output NEW.sqlite"));
  EXPECT_TRUE(with("3.0.1").result);
  EXPECT_TRUE(with("3.0.1").sink.rows<trace::NoteRow>().empty());
  const Read newer = with("3.27.0");
  EXPECT_EQ(newer.kernels(), 1u);
  EXPECT_THAT(newer.sink.details, Contains(HasSubstr("export schema 3.27.0 is newer than 3.20")));
  const Read unknown(database(std::string(kStrings) + kRuntime + kKernels));
  EXPECT_EQ(unknown.kernels(), 1u);
  EXPECT_THAT(unknown.name(unknown.sink.rows<trace::NoteRow>()[0].text), HasSubstr("does not say the version"));
}

TEST(NsysBad, TablesOfALaterForm) {
  std::string sql = good();
  for (std::size_t at = 0; (at = sql.find("KIND_KERNEL ", at)) != std::string::npos; at += 12)
    sql.insert(at + 11, "_V3");
  EXPECT_EQ(Read(database(sql)).kernels(), 1u);
  const Read both(database(sql + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL_V2 (start, end);"
                                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL_V2 VALUES (1, 2)"));
  EXPECT_EQ(both.sink.rows<trace::KernelRow>()[0].begin_ns, 100) << "the newest counts";
  EXPECT_THAT(both.sink.details, Contains(HasSubstr("rows of table CUPTI_ACTIVITY_KIND_KERNEL_V2")));
}

TEST(NsysBad, TimesThatCannotBe) {
  const Read read(database(good() + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end) VALUES (20, 10), (0, 0),"
                                    "(1, 9223372036854775807), (-9223372036854775808, 5);"
                                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (9, 8, 0, 1, 2, 1)"));
  EXPECT_EQ(read.kernels(), 1u);
  EXPECT_EQ(read.sink.lost(Loss::kBadTime), 4);
  EXPECT_EQ(read.sink.lost(Loss::kZeroTimes), 1);
  EXPECT_THAT(read.sink.details,
              Contains(HasSubstr("times in table CUPTI_ACTIVITY_KIND_KERNEL, at row 2, row 4, row 5")));
}

TEST(NsysBad, ValuesOfTheWrongType) {
  const Read read(database(good() +
                           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('soon', 140, 0, 7, 7, 0, 2),"
                           "(100, 140, 'GPU', 7, 7, 0, 2), (NULL, NULL, 0, 7, 7, 0, 2), (1.5, 2, 0, 7, 7, 0, 2);"
                           "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (x'00', 8, 0, 1, 2, 1)"));
  EXPECT_EQ(read.kernels(), 1u);
  EXPECT_EQ(read.sink.lost(Loss::kInputDamaged), 5);
}

TEST(NsysBad, NamesThatAreMissing) {
  const Read read(database(good() + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET mangledName = 77;"
                                    "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET nameId = -5"));
  ASSERT_EQ(read.kernels(), 1u);
  EXPECT_EQ(read.name(read.sink.rows<trace::KernelRow>()[0].name), "<missing name 77>");
  EXPECT_EQ(read.name(read.sink.rows<trace::ApiRow>()[0].name), "<missing name -5>");
  EXPECT_EQ(read.sink.lost(Loss::kLostName), 2);
}

TEST(NsysBad, LaunchesThatAreMissing) {
  const Read read(database(good() + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 8"));
  ASSERT_EQ(read.kernels(), 1u);
  EXPECT_EQ(read.sink.rows<trace::KernelRow>()[0].thread_id, 0);
  EXPECT_EQ(read.sink.lost(Loss::kLaunchLost), 1);
  // The same correlation id in another process is another call.
  const Read other(database(good() + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = 693 << 24"));
  EXPECT_EQ(other.sink.lost(Loss::kLaunchLost), 1);
}

TEST(NsysBad, ARowTooLarge) {
  // 20 MiB in one row, which is passed over; 100 KiB is a name that is cut
  const Read read(database(good() + "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text);"
                                    "INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, 11609833972, 'a'),"
                                    "(2, 5, 59, 11609833972, hex(zeroblob(10485760))), (3, 5, 59, 11609833972, 'c'),"
                                    "(4, 5, 59, 11609833972, hex(zeroblob(51200)))"));
  ASSERT_TRUE(read.result) << read.error();
  EXPECT_EQ(read.sink.rows<trace::RangeRow>().size(), 3u);
  EXPECT_EQ(read.sink.lost(Loss::kInputLimit), 1);
  EXPECT_EQ(read.sink.lost(Loss::kNameTruncated), 1);
  EXPECT_THAT(read.sink.details, Contains(HasSubstr("rows of more than 16 MiB in table NVTX_EVENTS, at row 2")));
}

// 2000 kernels on several pages of 4096 bytes.
std::string many() {
  return database(good() +
                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO "
                  "CUPTI_ACTIVITY_KIND_KERNEL SELECT 200 + i, 210 + i, 0, 7, 7, 11609833472, 2 FROM n");
}

TEST(NsysBad, ADamagedPageCostsTheRestOfItsTable) {
  std::string bytes = many();
  const std::size_t page = bytes.size() / 4096 - 3;  // a leaf of the table that was filled last
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page * 4096), 4096, '\x55');
  const Read read(bytes);
  ASSERT_TRUE(read.result) << read.error();
  EXPECT_GT(read.kernels(), 1000u);
  EXPECT_LT(read.kernels(), 2001u);
  EXPECT_EQ(read.sink.lost(Loss::kInputDamaged), 1);
  EXPECT_THAT(read.sink.details, Contains(HasSubstr("the rest of table CUPTI_ACTIVITY_KIND_KERNEL: database disk image "
                                                    "is malformed")));
}

TEST(NsysBad, ACutFileIsReadUpToTheCut) {
  const std::string bytes = many();
  const Read read(bytes.substr(0, bytes.size() - 3 * 4096));
  ASSERT_TRUE(read.result) << read.error();
  EXPECT_GT(read.kernels(), 1000u);
  EXPECT_LT(read.kernels(), 2001u);
  EXPECT_EQ(read.sink.lost(Loss::kInputTruncated), 1);
  EXPECT_EQ(read.sink.lost(Loss::kInputDamaged), 1);
}

TEST(NsysBad, PagesThatPointBackEnd) {
  std::string bytes = many();
  // The interior page of the table: type 5; its cells are 4 bytes of child page and a varint. All point at one leaf
  // now.
  std::size_t interior = 0;
  for (std::size_t at = 4096; at < bytes.size(); at += 4096) {
    if (bytes[at] == 5) interior = at;
  }
  ASSERT_NE(interior, 0u);
  const std::size_t cells = static_cast<unsigned char>(bytes[interior + 4]);
  const auto cell = [&](std::size_t i) {
    return interior + static_cast<unsigned char>(bytes[interior + 12 + 2 * i]) * 256u +
           static_cast<unsigned char>(bytes[interior + 13 + 2 * i]);
  };
  ASSERT_GT(cells, 3u);
  for (std::size_t i = 1; i < cells; ++i) bytes.replace(cell(i), 4, bytes.substr(cell(0), 4));
  const Read read(bytes);
  ASSERT_TRUE(read.result) << read.error();
  EXPECT_THAT(read.sink.details, Contains(HasSubstr("its rows are out of order")));
}

TEST(NsysBad, FreePagesThatPointAtThemselvesAreNotRead) {
  std::string bytes =
      database(good() + "CREATE TABLE junk (x); INSERT INTO junk VALUES (zeroblob(20000)); DROP TABLE junk");
  const auto trunk = static_cast<unsigned char>(bytes[35]);  // bytes 32…35: first page of the list of free pages
  ASSERT_GT(trunk, 0);
  const std::size_t at = (trunk - 1u) * 4096u;
  bytes[at + 3] = static_cast<char>(trunk);
  const Read read(bytes);
  EXPECT_EQ(read.kernels(), 1u);
  EXPECT_TRUE(read.sink.losses.empty());
}

TEST(NsysBad, AListOfTablesThatCannotBeRead) {
  std::string bytes = database(good());
  std::fill_n(bytes.begin() + 100, 200, '\x77');
  EXPECT_THAT(Read(bytes).error(), HasSubstr("byte 0: the list of tables cannot be read"));
  std::string bad_sql = database(good());
  bad_sql.replace(bad_sql.find("CREATE TABLE CUPTI"), 12, "CREATE TABEL");
  EXPECT_THAT(Read(bad_sql).error(), AnyOf(HasSubstr("malformed database schema"), HasSubstr("the list of tables")));
}

TEST(NsysBad, WalModeIsSaid) {
  std::string bytes = database(good());
  bytes[18] = bytes[19] = 2;
  const Read read(bytes);
  EXPECT_EQ(read.kernels(), 1u) << read.error();
  EXPECT_THAT(read.sink.details,
              Contains(HasSubstr("the database is in WAL mode: a file -wal beside it was not read")));
}

TEST(NsysBad, WhatNsightSaysItLost) {
  const Read read(database(good() + "CREATE TABLE DIAGNOSTIC_EVENT (timestamp, severity, text);"
                                    "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 1, 'all lost, but only for information'),"
                                    "(2, 2, 'Some CUDA events were dropped.'), (3, 3, 'Cannot read /proc')"));
  EXPECT_EQ(read.sink.lost(Loss::kToolLost), 1);
  EXPECT_THAT(read.sink.details, Contains("tool_lost 1: Some CUDA events were dropped."));
  ASSERT_EQ(read.sink.rows<trace::NoteRow>().size(), 1u);
  EXPECT_EQ(read.name(read.sink.rows<trace::NoteRow>()[0].text), "error: Cannot read /proc");
}

TEST(NsysBad, RangesThatOverlapOrNeverEnd) {
  const Read read(
      database(good() + "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text);"
                        "INSERT INTO NVTX_EVENTS VALUES (50, 60, 59, 11609833972, 'inner'), (10, 100, 59, 11609833972, "
                        "'outer'), (90, 120, 59, 11609833972, 'across'), (95, 98, 59, 11609833972, 'in both'), (20, "
                        "NULL, 59, 11609833972, 'open'), (5, 5, 99, 11609833972, 'what')"));
  std::map<std::string, trace::RangeRow> ranges;
  for (const auto& row : read.sink.rows<trace::RangeRow>()) ranges[read.name(row.name)] = row;
  ASSERT_EQ(ranges.size(), 5u);
  EXPECT_EQ(ranges["open"].end_ns, 130) << "the last thing its process did";
  EXPECT_FALSE(ranges["open"].closed);
  EXPECT_EQ(read.sink.lost(Loss::kOpenRange), 1);
  EXPECT_EQ(ranges["inner"].parent_id, ranges["open"].id);
  EXPECT_EQ(ranges["across"].parent_id, ranges["open"].id);
  EXPECT_EQ(ranges["in both"].parent_id, ranges["across"].id);
  EXPECT_EQ(ranges["in both"].depth, 2);
  EXPECT_FALSE(ranges["outer"].parent_id);
  EXPECT_EQ(read.sink.lost(Loss::kInputIgnored), 1);
}

TEST(NsysBad, StopsWhenAsked) {
  Input input = Input::of_text("x", database(good()));
  MemorySink sink;
  sink.stop_after = 0;
  const auto done = find_importer("nsys")->parse(input, sink);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInterrupted);
}

TEST(NsysBad, ReportsAreAnsweredWithTheCommand) {
  Input report = Input::of_text("a/my run.nsys-rep", "NVIDIA Tegra Profiler Report 36398880.");
  MemorySink sink;
  EXPECT_EQ(sniff(*report.head()), find_importer("nsys-rep"));
  EXPECT_EQ(find_importer("nsys-rep")->parse(report, sink).error().hint,
            "export it and import that: nsys export --type sqlite --output 'a/my run.sqlite' 'a/my run.nsys-rep'");
  Input compute = Input::of_text("k.ncu-rep", std::string("NVR\0\1\0\0\0", 8));
  EXPECT_EQ(find_importer("nsys-rep")->parse(compute, sink).error().hint,
            "make a table of it and import that: ncu --import k.ncu-rep --csv --page raw > k.csv");
}

TEST(NsysLaunches, AreFoundInAnyOrder) {
  nsys::Launches launches;
  for (std::uint32_t i = 0; i < 1000; ++i)
    launches.add(static_cast<std::uint16_t>(1 + i % 2), (i * 577) % 1000, {i, i + 5'000'000'000, 3, 4});
  launches.sort();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto call = launches.find(static_cast<std::uint16_t>(1 + i % 2), (i * 577) % 1000);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->begin_ns, i);
    EXPECT_EQ(call->end_ns, i + 5'000'000'000) << "longer than 4.29 s";
  }
  EXPECT_FALSE(launches.find(1, 1000));
  EXPECT_FALSE(launches.find(3, 0));
}

}  // namespace
}  // namespace llmprof::importers
