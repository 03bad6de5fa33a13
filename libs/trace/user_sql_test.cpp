// What a user's SQL may do, and what it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "trace/run.h"
#include "trace/test_run.h"

namespace llmprof::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UserSql : public ::testing::Test {
 protected:
  UserSql() {
    make_small_run(folder_ / "r.llmprof");
    std::ofstream(folder_ / "secret.csv") << "a,b\n1,2\n";
    std::ofstream(folder_ / "r.llmprof/notes.csv") << "a,b\n1,2\n";
    auto run = trace::Run::open(folder_ / "r");
    EXPECT_TRUE(run) << run.error().message;
    run_.emplace(std::move(*run));
  }
  std::string answer(const std::string& sql) {
    const auto table = run_->user_query(sql);
    if (!table) return "error: " + table.error().message;
    std::string out;
    for (const auto& row : table->rows) {
      for (const Value& value : row) {
        out += value.is_null()                      ? "NULL"
               : value.type == Value::Type::kText   ? value.text
               : value.type == Value::Type::kDouble ? std::to_string(value.real)
                                                    : std::to_string(value.integer);
        out += ' ';
      }
    }
    return out;
  }
  TestFolder folder_;
  std::optional<trace::Run> run_;
};

TEST_F(UserSql, Selects) {
  EXPECT_EQ(answer("SELECT name, count(*) FROM kernel GROUP BY name ORDER BY name"), "gemm 2 softmax 1 ");
  EXPECT_EQ(answer("FROM kernel SELECT max(end_ns);  -- trailing comment"), "3500 ");
  EXPECT_EQ(answer("WITH k AS (SELECT * FROM kernel) SELECT count(*) FROM k"), "3 ");
  EXPECT_THAT(answer("DESCRIBE kernel"), HasSubstr("begin_ns BIGINT"));
  EXPECT_THAT(answer("SUMMARIZE SELECT id FROM kernel"), HasSubstr("id BIGINT 10 12 3"));  // min, max, distinct
  EXPECT_EQ(answer("SELECT * FROM unnest([4, 5]), range(1)"), "4 0 5 0 ");
}

TEST_F(UserSql, EveryTableNeedsNoQuotes) {
  for (const Table* table : tables()) {
    EXPECT_THAT(answer("SELECT count(*) FROM " + std::string(table->name)), ::testing::Not(HasSubstr("error")))
        << table->name;
    for (const Column& column : table->columns) {
      const std::string sql = "SELECT " + std::string(column.name) + ", t." + std::string(column.name) + " FROM " +
                              std::string(table->name) + " AS t";
      EXPECT_THAT(answer(sql), ::testing::Not(HasSubstr("error"))) << sql;
    }
  }
}

TEST_F(UserSql, PlainTypesStayAndTheRestIsText) {
  EXPECT_EQ(answer("SELECT 1::TINYINT, 2::HUGEINT, 2.5::DECIMAL(10, 3), 1.5::FLOAT, true, NULL"),
            "1 2 2.500000 1.500000 1 NULL ");
  EXPECT_EQ(answer("SELECT [1, 2], {'a': 1}, DATE '2024-02-29', 'x' -- comment"), "[1, 2] {'a': 1} 2024-02-29 x ");
  EXPECT_EQ(answer("SELECT 18446744073709551615::UBIGINT"), "18446744073709551615 ");  // does not fit: exact as text
  EXPECT_EQ(answer("SELECT i, [i] FROM range(3) t(i) ORDER BY i DESC"), "2 [2] 1 [1] 0 [0] ");
}

TEST_F(UserSql, KeepsColumnNames) {
  const auto table = run_->user_query("SELECT 1 AS a, 2 AS a, [3] AS \"x \"\"y\"");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_THAT(table->columns, ElementsAre("a", "a", "x \"y"));
}

TEST_F(UserSql, ReadsNothingButTheRun) {
  const std::string outside = folder_ / "secret.csv";
  for (const std::string& sql : std::vector<std::string>{
           "SELECT * FROM read_csv('/etc/passwd')",
           "SELECT * FROM read_text('/etc/passwd')",
           "SELECT * FROM read_blob('/etc/passwd')",
           "SELECT * FROM '/etc/passwd'",
           "SELECT * FROM glob('/etc/*')",
           "SELECT * FROM glob('" + folder_ / "*')",
           "SELECT * FROM read_csv('" + outside + "')",
           "SELECT * FROM '" + outside + "'",
           "SELECT * FROM read_csv('" + folder_ / "r.llmprof/../secret.csv')",
           "SELECT * FROM read_csv('" + folder_ / "r.llmprof/notes.csv')",
           "SELECT * FROM sniff_csv('" + outside + "')",
           "SELECT * FROM read_json('" + folder_ / "r.llmprof/run.json')",
           "SELECT * FROM read_parquet('https://example.org/x.parquet')",
           "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
           "SELECT * FROM parquet_schema('/etc/passwd')",
           "SELECT getenv('HOME')",
           "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
           "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''/etc/passwd'')'))",
       }) {
    EXPECT_THAT(answer(sql), HasSubstr("error")) << sql;
  }
}

TEST_F(UserSql, ChangesNothing) {
  const std::string out = folder_ / "out.csv";
  for (const std::string& sql : std::vector<std::string>{
           "COPY kernel TO '" + out + "'",
           "COPY (SELECT 1) TO '" + folder_ / "r.llmprof/tables/x.csv'",
           "ATTACH ':memory:' AS x",
           "ATTACH '" + folder_ / "x.db'",
           "INSTALL httpfs",
           "LOAD httpfs",
           "SET memory_limit = '100GB'",
           "SET enable_external_access = true",
           "RESET lock_configuration",
           "PRAGMA enable_profiling",
           "CREATE TABLE x AS SELECT 1",
           "CREATE VIEW x AS SELECT 1",
           "CREATE MACRO x() AS 1",
           "CREATE SECRET x (TYPE s3)",
           "DROP VIEW kernel",
           "INSERT INTO kernel VALUES (1)",
           "DELETE FROM kernel",
           "UPDATE kernel SET id = 1",
           "EXPORT DATABASE '/tmp/x'",
           "IMPORT DATABASE '/tmp/x'",
           "CALL enable_logging()",
           "CHECKPOINT",
           "VACUUM",
           "BEGIN",
           "USE memory",
           "PREPARE x AS SELECT 1",
           "EXPLAIN ANALYZE SELECT 1",
           "DETACH memory",
           "SET VARIABLE x = 1",
       }) {
    EXPECT_THAT(answer(sql), HasSubstr("error")) << sql;
  }
  EXPECT_FALSE(base::is_file(out));
  EXPECT_EQ(answer("SELECT count(*) FROM kernel"), "3 ");
}

TEST_F(UserSql, FunctionsWithEffectsAreRefused) {
  for (const std::string& sql : std::vector<std::string>{
           "SELECT * FROM enable_logging()",
           "SELECT * FROM enable_logging(storage_path='" + folder_ / "log', storage='file')",
           "SELECT * FROM arrow_scan(1::UBIGINT::POINTER, 1::UBIGINT::POINTER, 1::UBIGINT::POINTER)",
           "SELECT * FROM arrow_scan(1, 1, 1)",
           "SELECT * FROM llmprof_chunks(1::UBIGINT)",
       }) {
    EXPECT_THAT(answer(sql), HasSubstr("error")) << sql;
  }
  EXPECT_FALSE(base::is_directory(folder_ / "log"));
}

TEST_F(UserSql, IsOneStatement) {
  EXPECT_THAT(answer("SELECT 1; SELECT 2"), HasSubstr("2 statements: only one SELECT"));
  EXPECT_THAT(answer("SELECT 1; COPY kernel TO 'x'"), HasSubstr("only one SELECT"));
  EXPECT_THAT(answer(""), HasSubstr("no statement"));
  EXPECT_THAT(answer("-- nothing"), HasSubstr("no statement"));
  EXPECT_THAT(answer("SELECT ?"), HasSubstr("open parameters"));
  EXPECT_THAT(answer("SELEC 1"), HasSubstr("syntax error"));
  EXPECT_THAT(answer("SELECT nothing FROM kernel"), HasSubstr("nothing"));
  EXPECT_THAT(answer(std::string("SELECT 1\0; COPY", 15)), HasSubstr("NUL"));
  EXPECT_THAT(answer("SELECT [1]) FROM (SELECT 2"), HasSubstr("error"));
}

TEST_F(UserSql, StopsAtTheLimit) {
  const auto table = run_->user_query("SELECT * FROM range(1000000000000)", {.max_rows = 5});  // 8 TB if it did not
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->rows.size(), 5u);
  std::int64_t seen = 0;
  const auto walked = run_->user_query_each(
      "SELECT * FROM range(1000000000000)", [](const auto&) {}, [&](const auto&) { return ++seen < 100000; });
  ASSERT_TRUE(walked) << walked.error().message;
  EXPECT_EQ(seen, 100000);
}

TEST_F(UserSql, MemoryIsBounded) {
  run_->limit_user_memory("20MB");
  const auto table = run_->user_query("SELECT list(i) FROM range(100000000) t(i)");  // 800 MB
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("Out of Memory"));
  EXPECT_THAT(table.error().hint, HasSubstr("--memory"));
}

TEST_F(UserSql, MemoryMustBeASize) {
  run_->limit_user_memory("much");
  EXPECT_THAT(answer("SELECT 1"), HasSubstr("error"));
}

TEST_F(UserSql, ErrorsInTheMiddleOfAStream) {
  EXPECT_THAT(answer("SELECT CASE WHEN i = 500000 THEN error('half way') ELSE i END FROM range(1000000) t(i)"),
              HasSubstr("half way"));
}

TEST_F(UserSql, ParquetIsWrittenOutside) {
  const std::string file = folder_ / "out.parquet";
  const auto rows =
      run_->user_query_to_parquet("SELECT i, 'name ' || i AS name, [i, NULL] AS list FROM range(5000) t(i)", file);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows, 5000);
  const auto back = run_->query("SELECT count(*), sum(i), max(name), count(list[2]) FROM read_parquet('" + file + "')");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->rows[0][0].as_int(), 5000);
  EXPECT_EQ(back->rows[0][1].as_int(), 4999 * 2500);
  EXPECT_EQ(back->rows[0][2].text, "name 999");
  EXPECT_EQ(back->rows[0][3].as_int(), 0);
}

TEST_F(UserSql, ParquetErrorsLeaveNothingBehind) {
  EXPECT_FALSE(run_->user_query_to_parquet("COPY kernel TO 'x'", folder_ / "a.parquet"));
  EXPECT_FALSE(run_->user_query_to_parquet("SELECT 1", folder_ / "missing/a.parquet"));
  EXPECT_FALSE(run_->user_query_to_parquet(
      "SELECT CASE WHEN i = 500000 THEN error('half way') ELSE i END FROM range(1000000) t(i)", folder_ / "a.parquet"));
  EXPECT_THAT(base::list_directory(folder_ / ""), ElementsAre("r.llmprof", "secret.csv"));
}

}  // namespace
}  // namespace llmprof::trace
