// Every member of every row type is described, and described in the terms docs/format/run.md promises.
#include "trace/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

#include "trace/rows.h"

namespace llmprof::trace {
namespace {

std::size_t value_bytes(ColumnType type) {
  switch (type) {
    case ColumnType::kInt64:
    case ColumnType::kDouble:
      return 8;
    case ColumnType::kInt32:
    case ColumnType::kName:
      return 4;
    case ColumnType::kBool:
      return 1;
  }
  return 0;
}

std::string label(const Table& table, const Column& column) {
  return std::string(table.name) + "." + std::string(column.name);
}

bool lower_snake(std::string_view name) {
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0 || name.back() == '_') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

TEST(Schema, HasEveryTableOnceFactsFirst) {
  std::set<std::string_view> names;
  TableKind last = TableKind::kFact;
  for (const Table* table : tables()) {
    EXPECT_TRUE(names.insert(table->name).second) << table->name;
    EXPECT_TRUE(lower_snake(table->name)) << table->name;
    EXPECT_LE(last, table->kind) << table->name;
    EXPECT_EQ(find_table(table->name), table);
    last = table->kind;
  }
  EXPECT_EQ(names.size(), 59u);  // the structs of rows.h
  EXPECT_EQ(find_table("no_such_table"), nullptr);
}

TEST(Schema, ColumnsDoNotOverlap) {
  for (const Table* table : tables()) {
    std::vector<bool> covered(table->row_bytes, false);
    for (const Column& column : table->columns) {
      for (std::size_t at = column.offset; at < column.offset + value_bytes(column.type); ++at) {
        ASSERT_LT(at, table->row_bytes) << label(*table, column);
        EXPECT_FALSE(covered[at]) << label(*table, column) << " is another column's member";
        covered[at] = true;
      }
    }
  }
}

TEST(Schema, DescriptionsAreWhole) {
  const std::set<std::string_view> units{"", "ns", "bytes", "MHz", "tokens", "FLOP", "fraction", "by row"};
  for (const Table* table : tables()) {
    EXPECT_FALSE(table->row.empty()) << table->name;
    EXPECT_TRUE(table->sort_by.empty() || table->find(table->sort_by) != nullptr) << table->name;
    EXPECT_FALSE(table->kind == TableKind::kFact && table->sort_by.empty()) << table->name << ": facts are sorted";
    std::set<std::string_view> names;
    for (const Column& column : table->columns) {
      EXPECT_TRUE(names.insert(column.name).second) << label(*table, column);
      EXPECT_TRUE(lower_snake(column.name)) << label(*table, column);
      EXPECT_TRUE(units.contains(column.unit)) << label(*table, column) << " has unit " << column.unit;
      EXPECT_THAT(std::string(column.meaning), ::testing::EndsWith(".")) << label(*table, column);
      EXPECT_EQ(column.meaning.find('|'), std::string_view::npos) << "a bar would break the page's table";
    }
  }
}

TEST(Schema, UnitsStandInTheNames) {
  for (const Table* table : tables()) {
    for (const Column& column : table->columns) {
      EXPECT_EQ(column.name.ends_with("_ns"), column.unit == "ns") << label(*table, column);
      EXPECT_EQ(column.name.ends_with("bytes"), column.unit == "bytes") << label(*table, column);
      EXPECT_TRUE(column.unit != "by row" || table->find("unit") != nullptr) << label(*table, column);
    }
  }
}

// "x_id" is the id of table x, of a kind of thing named in the list, or of what another column says.
TEST(Schema, ForeignKeysPointSomewhere) {
  const std::set<std::string_view> without_table{"parent_id", "scope_id", "pass_id", "stack_id"};
  for (const Table* table : tables()) {
    for (const Column& column : table->columns) {
      if (!column.name.ends_with("_id")) continue;
      EXPECT_EQ(column.type, ColumnType::kInt64) << label(*table, column);
      if (without_table.contains(column.name)) continue;
      const Table* target = find_table(column.name.substr(0, column.name.size() - 3));
      ASSERT_NE(target, nullptr) << label(*table, column);
      EXPECT_NE(target->find("id"), nullptr) << label(*table, column);
    }
  }
}

TEST(Schema, ColumnTypesFollowTheMembers) {
  const Table& kernel = table_of<KernelRow>();
  EXPECT_EQ(kernel.find("begin_ns")->type, ColumnType::kInt64);
  EXPECT_FALSE(kernel.find("begin_ns")->nullable);
  EXPECT_TRUE(kernel.find("stream")->nullable);
  EXPECT_EQ(kernel.find("grid_x")->type, ColumnType::kInt32);
  EXPECT_EQ(kernel.find("name")->type, ColumnType::kName);
  KernelRow row;
  row.registers = 168;
  const auto* bytes = reinterpret_cast<const char*>(&row);
  const Column& registers = *kernel.find("registers");
  EXPECT_EQ(*reinterpret_cast<const std::int32_t*>(bytes + registers.offset), 168);
  EXPECT_EQ(bytes[registers.present_offset], 1);
  EXPECT_EQ(bytes[kernel.find("shared_bytes")->present_offset], 0);
}

}  // namespace
}  // namespace llmprof::trace
