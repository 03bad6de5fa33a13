#include "report/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/drawn.h"

namespace llmprof::report {
namespace {

using testing::HasSubstr;
using testing::Not;

analyze::ProcessUsage process(std::string name, std::int64_t pid, std::int64_t user_ns) {
  analyze::ProcessUsage usage;
  usage.name = std::move(name);
  usage.pid = pid;
  usage.wall_ns = 2'000'000'000;
  usage.user_ns = user_ns;
  usage.peak_rss_bytes = 123'000'000;
  usage.most_threads = 130;
  usage.minor_faults = 123'456'789;
  usage.read_bytes = usage.written_bytes = 123'456'789'012;
  usage.voluntary_switches = 1'000'000;
  usage.involuntary_switches = 234'567;
  usage.switches = 1'234'567;
  usage.cpu_ns = user_ns, usage.core_share = static_cast<double>(user_ns) / 2e9;
  usage.label = usage.name.substr(usage.name.rfind('/') + 1) + " " + std::to_string(pid);
  return usage;
}

Page full_page() {
  Page page;
  analyze::Host& host = page.summary.host;
  host.processes = {process("/usr/bin/sh", 7, 0),
                    process("/opt/a-program-with-a-long-name/python3.12", 1234567, 1'000'000'000)};
  host.readings_per_s = 12.5;
  host.memory = {{0, 0}, {1'000'000'000, 100'000'000}, {2'000'000'000, 50'000'000}};
  host.peak = analyze::MemoryPeak{{1'000'000'000, 100'000'000, {{7, {"main"}}, {8, {"load", "weights"}}}},
                                  {500'000'000, 95'000'000, {{7, {"early", "early"}}}}};
  host.gains = {{"weights", "load", 3, 200'000'000, 150'000'000}, {"free", "", 1, -300'000'000, -300'000'000}};
  return page;
}

TEST(Host, TableHoldsTheNumbersAndFits) {
  const std::string text = drawn(host_section, full_page());
  EXPECT_THAT(text, HasSubstr("12.5 times a second"));
  EXPECT_THAT(text, HasSubstr("1234567"));
  EXPECT_THAT(text, HasSubstr("50.0"));  // 1 s of CPU time in 2 s
  EXPECT_THAT(text, HasSubstr("1.23 M"));
  EXPECT_LT(text.find("1234567"), text.find("sh 7"));  // most CPU time first
  EXPECT_THAT(text, HasSubstr("open then: in 7 main; in 8 load › weights."));
  EXPECT_THAT(text, HasSubstr("after 500 ms; open then: early."));
  EXPECT_THAT(text, HasSubstr("-300 MB"));
  EXPECT_THAT(text, HasSubstr("+150 MB"));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(base::display_width(text.substr(begin, end - begin)), line_width()) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Host, LongListsAreCut) {
  Page page = full_page();
  page.top = 1;
  const std::string text = drawn(host_section, page);
  EXPECT_THAT(text, HasSubstr("1 more process"));
  EXPECT_THAT(text, HasSubstr("1 more range"));
  EXPECT_THAT(text, Not(HasSubstr("sh 7")));
}

TEST(Host, GainsOfOtherStagesAreNotShown) {
  Page page = full_page();
  page.stage = "load";
  EXPECT_THAT(drawn(host_section, page), Not(HasSubstr("-300 MB")));
  EXPECT_EQ(report_json(page)["host"]["gains"].size(), 1u);
}

TEST(Host, TinyGainsAreNotShown) {
  Page page = full_page();
  page.summary.host.gains.push_back({"crumbs", "load", 9, 99'000, 50'000});  // the peak is 100 MB
  EXPECT_THAT(drawn(host_section, page), Not(HasSubstr("crumbs")));
  EXPECT_EQ(report_json(page)["host"]["gains"].size(), 3u);
  page.summary.host.gains.back().largest_bytes = 100'000;
  EXPECT_THAT(drawn(host_section, page), HasSubstr("crumbs"));
}

TEST(Host, WithoutReadingsSaysWhy) {
  const Page page;
  EXPECT_THAT(drawn(host_section, page), HasSubstr("No process was read from outside"));
  EXPECT_FALSE(report_json(page)["host"]["why"].is_null());
  EXPECT_TRUE(report_json(page)["host"]["peak"].is_null());
}

TEST(Host, NamesOfStrangersAreHarmless) {
  Page page = full_page();
  page.summary.host.processes[0].label = "\x1b[31mevil";
  page.summary.host.peak->highest.open_ranges[0].names = {"\x1b[2J"};
  EXPECT_THAT(drawn(host_section, page), Not(HasSubstr("\x1b")));
}

void collect_keys(const base::Json& value, std::set<std::string>& keys) {
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) {
    if (value.is_object()) keys.insert(key);
    collect_keys(child, keys);
  }
}

TEST(Host, EveryKeyIsDocumented) {
  std::set<std::string> keys;
  collect_keys(report_json(full_page())["host"], keys);
  const Result<std::string> document = base::read_file(LLMPROF_SOURCE_DIR "/docs/format/json.md", 1 << 20);
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_GE(keys.size(), 25u);
  for (const std::string& key : keys) EXPECT_TRUE(document->find("`" + key + "`") != std::string::npos) << key;
}

TEST(Host, MemoryOverTimeKeepsTheHighestOfEachPart) {
  EXPECT_THAT(highest_in_parts({{0, 0}, {1, 7}, {2, 3}, {3, 100}}, 2), testing::ElementsAre(7, 100));
  EXPECT_THAT(highest_in_parts({{0, 50}, {1, 60}, {9, 100}}, 5), testing::ElementsAre(60, 60, 60, 60, 100));
  EXPECT_THAT(highest_in_parts({{5, 4}}, 3), testing::ElementsAre(4, 4, 4));
  EXPECT_THAT(highest_in_parts({}, 3), testing::IsEmpty());
}

}  // namespace
}  // namespace llmprof::report
