// The pieces of stall sampling that decide, without CUPTI.

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "collect/cuda/counters/stalls.h"

namespace llmprof::collect::counters {
namespace {

std::string base(const char* name) {
  const ReasonName read = read_reason(name);
  return std::string(read.text, read.length) + (read.not_issued ? " -" : "");
}

TEST(StallReasons, NamesLoseWhatAllHave) {
  EXPECT_EQ(base("smsp__pcsamp_warps_issue_stalled_long_scoreboard"), "long_scoreboard");
  EXPECT_EQ(base("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"), "long_scoreboard -");
  EXPECT_EQ(base("smsp__pcsamp_warps_issue_stalled_selected"), "selected");
  EXPECT_EQ(base("something_else"), "something_else");
  EXPECT_EQ(base("something_not_issued"), "something -");
  EXPECT_EQ(base("_not_issued"), "_not_issued");  // nothing would be left
  EXPECT_EQ(base("smsp__pcsamp_warps_issue_stalled_"), "smsp__pcsamp_warps_issue_stalled_");
  EXPECT_EQ(base(""), "");
}

TEST(StallReasons, TwinsAreOneReasonInTwoParts) {
  StallReasons reasons;
  // Not in order, and with a hole: numbers are CUPTI's.
  ASSERT_TRUE(reasons.add(7, "smsp__pcsamp_warps_issue_stalled_wait_not_issued"));
  ASSERT_TRUE(reasons.add(0, "smsp__pcsamp_warps_issue_stalled_barrier"));
  ASSERT_TRUE(reasons.add(3, "smsp__pcsamp_warps_issue_stalled_wait"));
  ASSERT_EQ(reasons.count(), 2u);
  EXPECT_STREQ(reasons.name(0), "wait");
  EXPECT_STREQ(reasons.name(1), "barrier");
  // 10 samples of "wait", in 4 of which nothing was issued; 5 of "barrier"; 2 of a number that nobody announced.
  const pc::Reason counted[] = {{3, 10}, {7, 4}, {0, 5}, {9, 2}};
  StallReasons::Samples samples;
  EXPECT_TRUE(reasons.sort(counted, 4, &samples));
  EXPECT_EQ(samples.issued[0], 6u);
  EXPECT_EQ(samples.not_issued[0], 4u);
  EXPECT_EQ(samples.issued[1], 5u);
  EXPECT_EQ(samples.not_issued[1], 0u);
  EXPECT_EQ(samples.unknown, 2u);
}

TEST(StallReasons, MoreInThePartThanInTheWholeIsSaid) {
  StallReasons reasons;
  reasons.add(0, "smsp__pcsamp_warps_issue_stalled_wait");
  reasons.add(1, "smsp__pcsamp_warps_issue_stalled_wait_not_issued");
  const pc::Reason counted[] = {{0, 3}, {1, 8}};
  StallReasons::Samples samples;
  EXPECT_FALSE(reasons.sort(counted, 2, &samples));
  EXPECT_EQ(samples.issued[0], 0u);
  EXPECT_EQ(samples.not_issued[0], 8u);
}

TEST(StallReasons, RoomEndsAndLongNamesAreCut) {
  StallReasons reasons;
  const std::string longer(100, 'x');
  ASSERT_TRUE(reasons.add(0, longer.c_str()));
  ASSERT_TRUE(reasons.add(1, (longer + "_not_issued").c_str()));
  ASSERT_EQ(reasons.count(), 1u);
  EXPECT_EQ(reasons.name(0), std::string(StallReasons::kNameBytes - 1, 'x'));
  for (std::uint32_t i = 2; i < StallReasons::kMost; ++i) ASSERT_TRUE(reasons.add(i, std::to_string(i).c_str()));
  EXPECT_FALSE(reasons.add(StallReasons::kMost, "one more"));
}

class StallTableTest : public testing::Test {
 protected:
  void SetUp() override { table_.use(memory_.data()); }

  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(StallTable::kBytes / sizeof(std::uint64_t));
  StallTable table_;
};

TEST_F(StallTableTest, SumsByPlaceAndReasonAndGivesDifferences) {
  const StallKey place = {77, 0x120, 5, 2, true};
  StallKey other = place;
  other.issued = false;
  EXPECT_TRUE(table_.add(place, 3));
  EXPECT_TRUE(table_.add(place, 4));
  EXPECT_TRUE(table_.add(other, 1));
  EXPECT_TRUE(table_.add(other, 0));
  EXPECT_EQ(table_.used(), 2u);
  std::map<bool, std::uint64_t> taken;
  const auto take = [&taken](const StallTable::Entry& entry) { return taken[entry.key.issued] = entry.samples, true; };
  EXPECT_TRUE(table_.take(100, take));
  EXPECT_EQ(taken, (std::map<bool, std::uint64_t>{{true, 7}, {false, 1}}));
  taken.clear();
  EXPECT_TRUE(table_.take(100, take));
  EXPECT_TRUE(taken.empty());
  table_.add(place, 2);
  EXPECT_TRUE(table_.take(100, take));
  EXPECT_EQ(taken, (std::map<bool, std::uint64_t>{{true, 2}}));
  EXPECT_EQ(table_.used(), 2u);
}

TEST_F(StallTableTest, AllPartsOfAKeyCount) {
  const StallKey key = {1, 16, 2, 3, true};
  for (const StallKey& other : {StallKey{2, 16, 2, 3, true}, StallKey{1, 32, 2, 3, true}, StallKey{1, 16, 3, 3, true},
                                StallKey{1, 16, 2, 4, true}, StallKey{1, 16, 2, 3, false}, key})
    table_.add(other, 1);
  EXPECT_EQ(table_.used(), 6u);
}

TEST_F(StallTableTest, WhatIsNotTakenStaysAndComesNext) {
  for (std::uint64_t i = 0; i < 10; ++i) table_.add({0, i * 16, 1, 0, true}, i + 1);
  std::uint64_t sum = 0, times = 0;
  const auto take = [&](const StallTable::Entry& entry) { return sum += entry.samples, ++times, true; };
  EXPECT_FALSE(table_.take(4, take));
  EXPECT_EQ(times, 4u);
  EXPECT_EQ(table_.pending(), 6u);
  EXPECT_FALSE(table_.take(100, [](const StallTable::Entry&) { return false; }));  // no room in the log
  EXPECT_EQ(table_.pending(), 6u);
  EXPECT_TRUE(table_.take(6, take));
  EXPECT_EQ(sum, 55u);  // 1 + … + 10
  EXPECT_EQ(table_.pending(), 0u);
}

TEST_F(StallTableTest, AFullTableRefusesNewPlacesOnly) {
  for (std::uint64_t i = 0; i < StallTable::kMostUsed; ++i) ASSERT_TRUE(table_.add({i / 1000, i * 16, 1, 0, true}, 1));
  EXPECT_FALSE(table_.add({9, 9, 9, 9, true}, 1));
  EXPECT_TRUE(table_.add({0, 0, 1, 0, true}, 1));
  std::uint64_t sum = 0;
  EXPECT_TRUE(table_.take(StallTable::kEntries, [&](const StallTable::Entry& e) { return sum += e.samples, true; }));
  EXPECT_EQ(sum, StallTable::kMostUsed + 1);
}

// An ELF file of a header, two sections (their names; one of the given name) and the names.
std::string elf(const std::string& section) {
  const std::string names = std::string("\0.names\0", 8) + section + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  Elf64_Shdr sections[2]{};
  sections[0].sh_name = 1;
  sections[0].sh_offset = sizeof(header) + sizeof(sections);
  sections[0].sh_size = names.size();
  sections[1].sh_name = 8;
  std::string file(sizeof(header) + sizeof(sections), '\0');
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), sections, sizeof(sections));
  return file + names;
}

TEST(StallSources, LineNumbersAreASection) {
  const std::string with = elf(".debug_line"), other = elf(".debug_lines"), without = elf(".text");
  EXPECT_TRUE(has_lines(with.data(), with.size()));
  EXPECT_FALSE(has_lines(other.data(), other.size()));
  EXPECT_FALSE(has_lines(without.data(), without.size()));
  EXPECT_FALSE(has_lines(nullptr, 100));
  for (std::size_t bytes = 0; bytes < with.size(); ++bytes) {  // copies of that length: a read beyond is an error
    const std::vector<char> cut(with.begin(), with.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_FALSE(has_lines(cut.data(), bytes)) << bytes;
  }
  std::string wild = with;
  for (std::size_t at = 0; at < with.size(); ++at) {
    wild[at] = '\xff';
    has_lines(wild.data(), wild.size());
    wild[at] = with[at];
  }
}

}  // namespace
}  // namespace llmprof::collect::counters
