// The parts of the collector that can be tested alone.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collect/list.h"
#include "collect/os.h"
#include "collect/settings.h"
#include "collect/tables.h"

namespace llmprof::collect {
namespace {

TEST(Settings, NumbersAreMovedIntoTheirRange) {
  for (const SettingRow& row : kSettings) {
    EXPECT_EQ(parse_setting(row, nullptr), row.fallback) << row.variable;
    EXPECT_EQ(parse_setting(row, ""), row.fallback);
    EXPECT_EQ(parse_setting(row, "12 MiB"), row.fallback);
    EXPECT_EQ(parse_setting(row, "-1"), row.fallback);
    EXPECT_EQ(parse_setting(row, "0"), row.least);
    EXPECT_EQ(parse_setting(row, "18446744073709551616"), row.most);  // 2^64
    EXPECT_EQ(parse_setting(row, std::to_string(row.least + 1).c_str()), row.least + 1);
  }
}

TEST(Settings, OffWithoutAnAbsoluteFolder) {
  Settings settings{};
  unsetenv("LLMPROF_CAPTURE_DIR");
  EXPECT_FALSE(read_settings(&settings));
  setenv("LLMPROF_CAPTURE_DIR", "relative", 1);
  EXPECT_FALSE(read_settings(&settings));
  setenv("LLMPROF_CAPTURE_DIR", ("/" + std::string(kMaxFolderBytes, 'x')).c_str(), 1);
  EXPECT_FALSE(read_settings(&settings));
  setenv("LLMPROF_CAPTURE_DIR", "/tmp/x", 1);
  EXPECT_TRUE(read_settings(&settings));
  EXPECT_STREQ(settings.folder, "/tmp/x");
  EXPECT_EQ(settings.flush_ms, 200u);
  unsetenv("LLMPROF_CAPTURE_DIR");
}

// The name in parentheses may itself look like fields; the 22nd counts from the last ')'.
TEST(Proc, StartTicksBehindAnyProgramName) {
  const std::string stat = "77 (a) 5 (b c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 424242 20 21";
  EXPECT_EQ(parse_start_ticks(stat.data(), stat.size()), 424242u);
  EXPECT_EQ(parse_start_ticks("77 (a) S 1", 10), 0u);
  EXPECT_GT(read_start_ticks(), 0u);
}

// The mapping starts as zero bytes.
std::unique_ptr<StringTable> empty_table() { return std::make_unique<StringTable>(); }

TEST(StringTable, SameBytesSameId) {
  const auto table = empty_table();
  const wire::StringId a = table->intern("a", 1);
  EXPECT_EQ(a, 1u);
  EXPECT_EQ(table->intern("a", 1), a);
  EXPECT_NE(table->intern("a\0", 2), a);
  EXPECT_NE(table->intern("", 0), 0u);
  EXPECT_STREQ(table->text(a), "a");
  EXPECT_TRUE(table->valid(a));
  EXPECT_FALSE(table->valid(60000));
  EXPECT_FALSE(table->valid(0));
  EXPECT_FALSE(table->valid(~0u));
}

TEST(StringTable, FullTableRefusesNewNamesAndKeepsOldOnes) {
  const auto table = empty_table();
  std::uint32_t entered = 0;
  for (std::uint32_t i = 0; i < StringTable::kMaxNames + 1000; ++i) {
    const std::string name = std::to_string(i);
    if (table->intern(name.data(), name.size()) != 0) ++entered;
  }
  EXPECT_EQ(entered, StringTable::kMaxNames - 1);  // id 0 means none
  EXPECT_NE(table->intern("17", 2), 0u);
  EXPECT_EQ(table->intern("new", 3), 0u);
}

TEST(StringTable, FullArenaRefuses) {
  const auto table = empty_table();
  std::uint32_t entered = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    std::string name(wire::kMaxNameBytes, 'x');
    name.replace(0, std::to_string(i).size(), std::to_string(i));
    if (table->intern(name.data(), name.size()) != 0) ++entered;
  }
  EXPECT_EQ(entered, StringTable::kArenaBytes / (wire::kMaxNameBytes + 1));
}

TEST(StringTable, ThreadsAgree) {
  const auto table = empty_table();
  constexpr int kThreads = 4, kNames = 2000;
  std::vector<std::vector<wire::StringId>> ids(kThreads, std::vector<wire::StringId>(kNames));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) {
        const std::string name = "name " + std::to_string(i);
        ids[t][i] = table->intern(name.data(), name.size());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[t], ids[0]);
  for (int i = 0; i < kNames; ++i) EXPECT_EQ("name " + std::to_string(i), table->text(ids[0][i]));
}

struct Element {
  std::atomic<std::uint32_t> next{0};
  std::atomic<int> owners{0};
};

// Many threads take and give back; an element held twice at once would show.
TEST(List, NoElementIsHandedOutTwice) {
  constexpr int kElements = 8, kThreads = 4, kRounds = 50000;
  std::vector<Element> elements(kElements);
  std::atomic<std::uint64_t> head{0};
  for (std::uint32_t i = 0; i < kElements; ++i) push(head, elements.data(), i);
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::int64_t index = pop(head, elements.data());
        if (index < 0) continue;
        if (elements[index].owners.fetch_add(1) != 0) ++clashes;
        elements[index].owners.fetch_sub(1);
        push(head, elements.data(), static_cast<std::uint32_t>(index));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  int left = 0;
  while (pop(head, elements.data()) >= 0) ++left;
  EXPECT_EQ(left, kElements);
}

TEST(List, TakenWholeComesOldestFirst) {
  std::vector<Element> elements(4);
  std::atomic<std::uint32_t> head{0};
  for (const std::uint32_t i : {2u, 0u, 3u}) push_full(head, elements.data(), i);
  std::vector<std::uint32_t> order;
  for (std::uint32_t at = take_all(head, elements.data()); at != 0; at = elements[at - 1].next) order.push_back(at - 1);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 0, 3}));
  EXPECT_EQ(take_all(head, elements.data()), 0u);
}

}  // namespace
}  // namespace llmprof::collect
