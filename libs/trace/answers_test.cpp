#include "trace/answers.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "trace/test_files.h"
#include "trace/test_run.h"

namespace llmprof::trace {
namespace {

Value text(const std::string& value) { return {.type = Value::Type::kText, .text = value}; }
Value integer(std::int64_t value) { return {.type = Value::Type::kInt, .integer = value}; }
Value real(double value) { return {.type = Value::Type::kDouble, .real = value}; }

ResultTable some_table() {
  return {{"name", "n"}, {{text("a\0b"), integer(INT64_MIN)}, {Value{}, real(0.1)}, {text(""), integer(INT64_MAX)}}};
}

Columns some_columns() {
  Columns columns;
  columns.names_of_columns = {"begin_ns", "name"};
  columns.values = {{5, Columns::kNull, INT64_MAX}, {0, 1, 1}};
  columns.names = {"", "gemm"};
  return columns;
}

class AnswersTest : public ::testing::Test {
 protected:
  AnswersTest() { ::setenv("LLMPROF_CACHE_DIR", (folder_ / "cache").c_str(), 1); }
  ~AnswersTest() override { ::unsetenv("LLMPROF_CACHE_DIR"); }

  // Writes one answer of each kind.
  void write() {
    Answers answers(file_, "basis");
    EXPECT_FALSE(answers.believed());
    answers.keep("SELECT 1", some_table());
    answers.keep("SELECT 2", some_columns());
    const auto recorder = answers.recorder("SELECT 3", [](const ColumnChunk&) { return true; });
    ColumnChunk chunk;
    chunk.names_of_columns = {"x", "y"};
    chunk.names = {""};
    chunk.count = 2;
    chunk.values = {{1, 2}, {}};
    chunk.reals = {{}, {0.5, 1.5}};
    recorder.sink(chunk);
    chunk.values[0] = {3, 4};
    recorder.sink(chunk);
    recorder.all_came();
    answers.write();
  }

  TestFolder folder_;
  std::string file_ = folder_ / "answers";
};

TEST_F(AnswersTest, AreThoseThatWereKept) {
  write();
  const Answers answers(file_, "basis");
  ASSERT_TRUE(answers.believed());
  const auto table = answers.table("SELECT 1");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->columns, some_table().columns);
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[0][1].integer, INT64_MIN);
  EXPECT_TRUE(table->rows[1][0].is_null());
  EXPECT_EQ(table->rows[1][1].real, 0.1);
  EXPECT_EQ(table->rows[2][1].integer, INT64_MAX);
  const auto columns = answers.columns("SELECT 2");
  ASSERT_TRUE(columns);
  EXPECT_EQ(columns->values, some_columns().values);
  EXPECT_EQ(columns->names, some_columns().names);
  std::vector<std::int64_t> x;
  std::vector<double> y;
  EXPECT_TRUE(answers.chunks("SELECT 3", [&](const ColumnChunk& chunk) {
    x.insert(x.end(), chunk.values[0].begin(), chunk.values[0].end());
    y.insert(y.end(), chunk.reals[1].begin(), chunk.reals[1].end());
    return true;
  }));
  EXPECT_EQ(x, (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(y, (std::vector<double>{0.5, 1.5, 0.5, 1.5}));
  EXPECT_FALSE(answers.table("SELECT 2"));  // asked in another way
  EXPECT_FALSE(answers.table("SELECT 4"));
}

TEST_F(AnswersTest, OfAnotherBasisOrUserAreNotBelieved) {
  write();
  EXPECT_FALSE(Answers(file_, "another run.json").believed());
  EXPECT_TRUE(Answers(file_, "basis").believed());
  ::setenv("LLMPROF_CACHE_DIR", (folder_ / "elsewhere").c_str(), 1);
  EXPECT_FALSE(Answers(file_, "basis").believed());
}

TEST_F(AnswersTest, DamagedAnywhereAreNotBelieved) {
  write();
  const std::string good = read(file_);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    trace::write(file_, bad);
    EXPECT_FALSE(Answers(file_, "basis").believed()) << i;
    trace::write(file_, good.substr(0, i));
    EXPECT_FALSE(Answers(file_, "basis").believed()) << i;
  }
}

TEST_F(AnswersTest, LargeOnesAndThoseWithoutAPlaceAreNotKept) {
  Answers answers(file_, "basis");
  answers.keep("SELECT large", ResultTable{{"text"}, {{text(std::string(9u << 20, 'x'))}}});
  EXPECT_FALSE(answers.table("SELECT large"));
  answers.keep("SELECT small", some_table());
  EXPECT_TRUE(answers.table("SELECT small"));
  Answers nowhere(folder_ / "no/such/folder/answers", "basis");
  nowhere.keep("SELECT small", some_table());
  nowhere.write();
  EXPECT_FALSE(base::is_file(folder_ / "no/such/folder/answers"));
}

TEST_F(AnswersTest, OfARunAreGivenAgain) {
  make_small_run(folder_ / "a.llmprof");
  const std::string sql = "SELECT count(*) FROM kernel", kept = folder_ / "a.llmprof/derived/answers";
  ASSERT_TRUE(base::make_directories(folder_ / "a.llmprof/derived"));
  {
    auto run = Run::open(folder_ / "a");
    ASSERT_TRUE(run);
    ASSERT_TRUE(run->query(sql));
    run->keep_answers();
  }
  EXPECT_TRUE(Answers(kept, read(folder_ / "a.llmprof/run.json")).table(sql));
  for (const bool damaged : {false, true}) {
    if (damaged) trace::write(kept, read(kept).substr(0, 60));
    const auto run = Run::open(folder_ / "a");
    ASSERT_TRUE(run);
    const auto table = run->query(sql);
    ASSERT_TRUE(table);
    EXPECT_EQ(table->rows[0][0].integer, 3);
    EXPECT_TRUE(run->query("SELECT count(*) + 1 FROM kernel"));  // not asked before: the engine answers
    EXPECT_TRUE(run->user_query(sql));
  }
}

}  // namespace
}  // namespace llmprof::trace
