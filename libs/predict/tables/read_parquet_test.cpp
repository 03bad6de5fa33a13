#include "predict/tables/read_parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "predict/tables/read_tables.h"
#include "trace/run_writer.h"
#include "trace/test_run.h"

namespace llmprof::predict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kMost = 1 << 20;

class ReadParquet : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = trace::RunWriter::create(folder_ / "x.llmprof");
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE(writer->finish({}));
  }

  // The rows of a SELECT as a file of this name.
  std::string made(const std::string& name, const std::string& sql) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const auto run = trace::Run::open(folder_ / "x.llmprof");
    EXPECT_TRUE(run);
    const auto rows = run->user_query_to_parquet(sql, path);
    EXPECT_TRUE(rows) << (rows ? "" : rows.error().message);
    return path;
  }

  trace::TestFolder folder_;
};

constexpr const char* kDense =
    "SELECT * FROM (VALUES ('qkv_proj', 1, 2.5::DOUBLE), ('qkv_proj', 8, 0.1::DOUBLE)) t(layer, tokens, time_us)";

TEST_F(ReadParquet, AsText) {
  const auto text = parquet_as_csv(made("dense.parquet", kDense), kMost);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "layer,tokens,time_us\nqkv_proj,1,2.5\nqkv_proj,8,0.1\n");
}

TEST_F(ReadParquet, TablesOfBothKinds) {
  made("t/dense.parquet", kDense);
  std::ofstream(folder_ / "t/per_sequence.csv") << "layer,sequences,time_us\nlm_head,1,7\n";
  auto tables = read_tables(folder_ / "t", 1);
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_THAT(tables->operators(), ElementsAre("lm_head", "qkv_proj"));
  EXPECT_EQ(tables->source.files.front().path, "dense.parquet");
  EXPECT_EQ(tables->source.files.front().rows, 2);
}

TEST_F(ReadParquet, LargeTablesComeWhole) {
  const auto text = parquet_as_csv(
      made("dense.parquet", "SELECT 'act_fn' AS layer, range AS tokens, 1.5::DOUBLE AS time_us FROM range(20000)"),
      kMost);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(std::ranges::count(*text, '\n'), 20001);
  const auto too_large = parquet_as_csv(folder_ / "dense.parquet", 1000);
  ASSERT_FALSE(too_large);
  EXPECT_THAT(too_large.error().message, HasSubstr("more than 1000 bytes"));
}

TEST_F(ReadParquet, BadFiles) {
  EXPECT_FALSE(parquet_as_csv(folder_ / "nowhere.parquet", kMost));
  std::ofstream(folder_ / "noise.parquet") << "PAR1 this is no table PAR1";
  const auto noise = parquet_as_csv(folder_ / "noise.parquet", kMost);
  ASSERT_FALSE(noise);
  EXPECT_THAT(noise.error().message, HasSubstr("noise.parquet"));
  // Every byte of a small file changed, one at a time: an error or other numbers, never a crash.
  const auto whole = base::read_file(made("dense.parquet", kDense), kMost);
  ASSERT_TRUE(whole);
  for (std::size_t i = 0; i < whole->size(); i += 37) {
    std::string damaged = *whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    std::ofstream(folder_ / "damaged.parquet", std::ios::binary) << damaged;
    (void)parquet_as_csv(folder_ / "damaged.parquet", kMost);
  }
}

TEST_F(ReadParquet, WhatCsvCannotHoldIsRefused) {
  const auto quoted = parquet_as_csv(made("q.parquet", "SELECT 'a,b' AS layer"), kMost);
  ASSERT_FALSE(quoted);
  EXPECT_THAT(quoted.error().message, HasSubstr("commas, quotes or line ends"));
}

}  // namespace
}  // namespace llmprof::predict
