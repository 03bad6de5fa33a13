#include "trace/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "trace/schema.h"

namespace llmprof::trace {
namespace {

TEST(SchemaPage, ThePublishedPageIsCurrent) {
  const auto page = base::read_file(LLMPROF_SOURCE_DIR "/docs/format/run.md", 1 << 20);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_NE(page->find("### kernel"), std::string::npos);
  EXPECT_TRUE(with_current_tables(*page) == *page) << "docs/format/run.md is older than the schema: run `make docs`";
}

TEST(SchemaPage, OnlyTheMarkedPartChanges) {
  const std::string page =
      "before\n<!-- tables: made from the schema by `make docs` -->\noutdated\n<!-- /tables -->\nafter\n";
  const std::string current = with_current_tables(page);
  EXPECT_THAT(current, ::testing::StartsWith("before\n"));
  EXPECT_THAT(current, ::testing::EndsWith("<!-- /tables -->\nafter\n"));
  EXPECT_THAT(current, ::testing::Not(::testing::HasSubstr("outdated")));
  EXPECT_EQ(with_current_tables(current), current);
  EXPECT_EQ(with_current_tables("no markers"), "no markers");
}

TEST(SchemaPage, NamesEveryColumn) {
  const std::string text = table_reference();
  for (const Table* table : tables()) {
    const std::size_t begin = text.find("### " + std::string(table->name) + "\n");
    ASSERT_NE(begin, std::string::npos) << table->name;
    const std::string section = text.substr(begin, text.find("\n##", begin + 1) - begin);
    for (const Column& column : table->columns) {
      EXPECT_THAT(section, ::testing::HasSubstr("| `" + std::string(column.name) + "` |")) << table->name;
    }
  }
}

}  // namespace
}  // namespace llmprof::trace
