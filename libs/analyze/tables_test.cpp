#include "analyze/tables.h"
#include "analyze/questions.h"

#include <gtest/gtest.h>

#include <set>

#include "base/asset.h"

namespace llmprof::analyze {

std::span<const base::Asset> assets();

namespace {

TEST(Tables, EveryFileCanBeReadAndNothingIsDescribedTwice) {
  std::set<std::string> paths;
  std::size_t files = 0;
  for (const base::Asset& asset : assets()) {
    if (!asset.path.starts_with("tables/")) continue;
    ++files;
    const auto tables = parse_descriptions(asset.bytes, asset.path);
    ASSERT_TRUE(tables) << tables.error().message;
    for (const TableDescription& table : *tables) {
      EXPECT_TRUE(paths.insert(table.path).second) << table.path;
      EXPECT_FALSE(table.columns.empty()) << table.path;
    }
  }
  EXPECT_GE(files, 8U);
}

TEST(Tables, NestedRowsAndObjectsAreDescribed) {
  for (const TableDescription& table : table_descriptions()) {
    for (const ColumnDescription& column : table.columns) {
      if (table.path.find('#') != std::string::npos) continue;
      const std::string inside = table.path + "." + column.key;
      const bool rows = column.format == "rows";
      if (!rows && column.format != "object") continue;
      EXPECT_NE(find_description(inside + (rows ? "[]" : "")), nullptr) << inside;
    }
  }
}

TEST(Tables, AFormatIsReadWithItsUnitAndWords) {
  const auto tables = parse_descriptions(
      "# file\n## a[]: Title\nWhat it is.\n| key | title | format | meaning |\n|---|---|---|---|\n"
      "| x_ns | x | ns ~y of coverage.wall_ns if gpu | X. |\n| y | | giga FLOP/s wide nonzero | Y. |\n"
      "- rows: things\n- note: (if gpu) Note.\n```sql all\n| SELECT 1\n```\n"
      "## a[]#view: Other\n| x_ns | again | unless cpu |\n",
      "file");
  ASSERT_TRUE(tables) << tables.error().message;
  const TableDescription& a = tables->front();
  EXPECT_EQ(a.title, "Title");
  EXPECT_EQ(a.meaning, "What it is.");
  EXPECT_EQ(a.rows, "things");
  EXPECT_EQ(a.columns.size(), 2U);  // SQL is no column
  EXPECT_EQ(a.columns[0].estimate, "y");
  EXPECT_EQ(a.columns[0].of, "coverage.wall_ns");
  EXPECT_EQ(a.columns[0].only_if, "gpu");
  EXPECT_EQ(a.columns[1].unit, "FLOP/s");
  EXPECT_TRUE(a.columns[1].wide && a.columns[1].nonzero);
  const ColumnDescription& shown = tables->back().columns.front();
  EXPECT_EQ(shown.title, "again");
  EXPECT_EQ(shown.format, "ns");
  EXPECT_EQ(shown.unless, "cpu");
}

TEST(Questions, AreFoundInTablesAndInFilesOfSql) {
  EXPECT_NE(sql_of("kernels").find("SELECT name, stage"), std::string_view::npos);  // tables/gpu.md
  EXPECT_TRUE(sql_of("kernels").ends_with(";\n"));
  EXPECT_NE(sql_of("pass_calls").find("FROM gemm"), std::string_view::npos);  // sql/passes.sql
  EXPECT_EQ(sql_of("pass_calls").find("pass_captured_calls"), std::string_view::npos);
  EXPECT_EQ(sql_of("no such question"), "");
}

TEST(Tables, ValuesMayStandElsewhereAndViewsMayShowThoseOfObjectsInside) {
  const auto tables = parse_descriptions(
      "## llmprof.x.rows[]\n| ns | | ns =floor.ns | Floor. |\n| how | | text terminal left | Made of others. |\n"
      "## llmprof.x.rows[].work\n| flops | | amount FLOP | F. |\n"
      "## llmprof.x.rows[]#view\n| work.flops | FLOPs |\n| ns | floor |\n",
      "file");
  ASSERT_TRUE(tables) << tables.error().message;
  const TableDescription& rows = tables->front();
  EXPECT_EQ(rows.columns[0].place, "floor.ns");
  EXPECT_TRUE(rows.columns[1].terminal && rows.columns[1].left && !rows.columns[0].terminal);
  const ColumnDescription& inside = tables->back().columns.front();
  EXPECT_EQ(inside.key, "work.flops");
  EXPECT_EQ(inside.title + " " + inside.format, "FLOPs amount");
}

TEST(Tables, WhatIsMissingIsAnError) {
  EXPECT_FALSE(parse_descriptions("## a[]\n| x | x | | no format |\n", "f"));
  EXPECT_FALSE(parse_descriptions("## a[]#view\n| x | x |\n", "f"));
  EXPECT_FALSE(parse_descriptions("## a[]\n- columns of: b\n", "f"));
}

}  // namespace
}  // namespace llmprof::analyze
