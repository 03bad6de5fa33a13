#include "report/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "base/text_table.h"
#include "report/drawn.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using analyze::CounterValue;
using base::Json;
using testing::HasSubstr;
using testing::Not;

CounterValue value(const char* name, double number, const char* unit, std::optional<double> spread = {},
                   std::optional<double> error = {}) {
  return {.counter = name,
          .unit = unit,
          .denominator = "of something",
          .value = number,
          .spread = spread,
          .error = error,
          .occurrences = 24,
          .method = "range"};
}

analyze::CountedStage decode() {
  analyze::CountedStage stage{.stage = "decode", .steps = 512, .measured = 24, .method = "range"};
  stage.values = {value("dram_read_bytes", 5.7e9, "bytes", 0.002), value("dram_write_bytes", 0.3e9, "bytes", 0.031),
                  value("l2_hit_pct", 12.5, "%"), value("tensor_active_pct", 3.25, "%"),
                  value("achieved_occupancy_pct", 41, "%")};
  stage.work = {.flops = 12e9, .tensor_flops = 11e9, .dram_bytes = 6e9, .l2_bytes = 12e9, .time_ns = 2e6};
  stage.work.dram_intensity = 2;  // 12e9 / 6e9
  stage.work.flops_per_s = 6e12;
  stage.work.dram_bytes_per_s = 3e12;  // 6 GB in 2 ms
  stage.work.bound = "memory";
  stage.work.of_roof = 0.75;
  stage.work.type = stage.hfu_type = "bfloat16";
  stage.hfu = 0.012;
  stage.redundancy = 1.2;
  return stage;
}

analyze::Counters counters() {
  analyze::Counters c{.method = "range", .set = "light", .chip = "GH100"};
  c.notes = {"first note", "second note", "third note", "fourth note"};
  c.windows = 48;
  c.cost_ns = 53'000'000;
  c.stages = {decode(), decode()};
  c.stages[1].stage = "prefill";
  c.modules = {{.name = "layer 3", .measured = 5, .values = {value("dram_read_bytes", 2e6, "bytes")}}};
  c.unmixed = {{.name = "gemm_kernel",
                .time_ns = 700'000'000,
                .values = {value("dram_read_bytes", 2.1e12, "bytes/s", {}, 0.034), value("l2_hit_pct", 30, "%")}}};
  c.evidence = {{"decode", "bytes", "bytes", 5e9, 4.9e9, 6e9, "the KV cache is read twice"},
                {"decode", "flops", "FLOP", 11.9e9, {}, 12e9, ""},
                {"prefill", "flops", "FLOP", {}, {}, 12e9, ""}};
  c.occupancy = {{"gemm_kernel", "registers", 0.25, 0.21}};
  analyze::KernelStalls stalls{.kernel = "gemm_kernel", .samples = 800, .share = 0.8};
  stalls.reasons = {{"long_scoreboard", 0.61}, {"wait", 0.2}, {"barrier", 0.1}, {"misc", 0.09}};
  stalls.places = {{"gemm_kernel", "long_scoreboard", "gemm.cu", 42, 0x1a0, 300, 0.375},
                   {"gemm_kernel", "wait", "", {}, 0x2b0, 100, 0.125}};
  c.stalls = {stalls};
  c.stall_samples = 1000;
  c.stall_unknown = 20;
  return c;
}

Page page_with_counters() {
  Page page{.run = "x.llmprof"};
  analyze::Stage stage{.name = "decode", .steps = 512};
  stage.efficiency.mfu = 0.0119;
  page.summary.stages = {stage};
  page.summary.devices = {{.kind = "gpu", .name = "Toy", .peak_bandwidth = 4e12}};
  page.summary.coverage.wall_ns = 5'300'000'000;
  page.summary.counters = counters();
  return page;
}

std::string section(const Page& page) { return hardware_section(page, {}); }

TEST(Hardware, NothingIsSaidOfARunWithoutCounters) {
  const Page page{.run = "x.llmprof"};
  EXPECT_EQ(section(page), "");
  EXPECT_TRUE(report_json(page)["hardware_counters"].is_null());
  EXPECT_THAT(drawn(hardware_alone, page), HasSubstr("llmprof record --counters light"));
}

TEST(Hardware, WhatWasNotMeasuredIsSaidEvenIfNothingWas) {
  Page page{.run = "x.llmprof"};
  page.summary.counters.set = "light";
  page.summary.counters.notes = {"The driver lets only root read counters."};
  EXPECT_THAT(section(page), HasSubstr("only root"));
  EXPECT_THAT(section(page), HasSubstr("None were read: no process of the run used a GPU."));
  page.summary.devices.push_back({.kind = "gpu"});
  EXPECT_THAT(section(page), HasSubstr("None were read: nothing that was to be measured ran."));
  page.summary.losses.push_back({.name = "counters_forbidden"});
  EXPECT_THAT(section(page), HasSubstr("None were read: the losses say why."));
  EXPECT_THAT(section(page), HasSubstr("Asked for: light."));
  EXPECT_FALSE(report_json(page)["hardware_counters"].is_null());
  Page other{.run = "x.llmprof"};  // the run knows what the recorder was asked for
  other.info.counters = trace::AskedCounters{.set = "memory", .method = "range"};
  EXPECT_THAT(section(other), HasSubstr("Asked for: memory."));
  EXPECT_EQ(report_json(other)["hardware_counters"]["set"], "memory");
}

TEST(Hardware, BeginsWithHowAndWhatItCost) {
  const std::string text = section(page_with_counters());
  EXPECT_THAT(text, HasSubstr("set light; chip GH100; 48 windows read."));
  EXPECT_THAT(text, HasSubstr("53.0 ms from the program, 1.0 % of its wall time."));  // 0.053 / 5.3 s
  EXPECT_THAT(text, HasSubstr("third note.\n"));
  EXPECT_THAT(text, HasSubstr("1 note more; llmprof report --counters shows all."));
}

TEST(Hardware, AStageHasItsBytesBesideThoseThatMustMove) {
  const std::string text = section(page_with_counters());
  // 3 TB/s of 4 TB/s; must move is the analytic one; the counter that scattered most did so by 3.1 %.
  EXPECT_THAT(text, testing::ContainsRegex(
                        "decode +24 of 512 +2.00 ms +6.00 GB +300 MB +3.00 T +75.0 +5.00 GB +1.20x +12.5\n"));
  EXPECT_THAT(text, testing::ContainsRegex("stage +spread %\n +decode +3.1\n"));  // continues below
  EXPECT_THAT(text, testing::ContainsRegex("decode +12.0 G +11.0 G +1.2 +1.2 +3.2 +41.0 +2.00 +memory +75.0\n"));
  EXPECT_THAT(text, HasSubstr("of the device's 4.00 TB/s"));
  EXPECT_THAT(text, HasSubstr("peak of bfloat16"));
}

TEST(Hardware, EvidenceStandsSideBySideWithItsExplanation) {
  const std::string text = section(page_with_counters());
  EXPECT_THAT(text, testing::ContainsRegex("decode +bytes +5.00 GB +4.90 GB +6.00 GB +1.200\n"));
  EXPECT_THAT(text, testing::ContainsRegex("decode +flops +11.9 GFLOP +- +12.0 GFLOP +1.008\n"));
  EXPECT_THAT(text, HasSubstr("decode, bytes: the KV cache is read twice"));
}

TEST(Hardware, KernelsHaveErrorsLimitersReasonsAndPlaces) {
  const std::string text = section(page_with_counters());
  EXPECT_THAT(text, HasSubstr("2.10 TB/s ±3.4 %"));
  EXPECT_THAT(text, HasSubstr("30.0 % ±?"));  // an error that nobody knows is not none
  EXPECT_THAT(text, testing::ContainsRegex("gemm_kernel +21.0 +25.0 +registers"));
  EXPECT_THAT(text, HasSubstr("long_scoreboard 61.0 %, wait 20.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("gemm.cu:42 +long_scoreboard +300 +37.5"));
  EXPECT_THAT(text, testing::ContainsRegex("\\+0x2b0 +wait +100 +12.5"));
  EXPECT_THAT(text, HasSubstr("1000 times; 2.0 % of it in code that is not known"));
}

TEST(Hardware, AStageAloneHasNoTablesOfKernels) {
  Page page = page_with_counters();
  page.stage = "prefill";
  const std::string text = section(page);
  EXPECT_THAT(text, Not(HasSubstr("decode")));
  EXPECT_THAT(text, Not(HasSubstr("gemm_kernel")));
  EXPECT_EQ(report_json(page)["hardware_counters"]["stages"].size(), 1U);
  EXPECT_EQ(report_json(page)["hardware_counters"]["evidence"].size(), 1U);
}

TEST(Hardware, IsShortUnlessAskedFor) {
  Page page = page_with_counters();
  page.summary.counters.occupancy.assign(40, {"kernel", "registers", 0.5, 0.4});
  EXPECT_THAT(section(page), HasSubstr("35 more kernels; llmprof report --counters shows all."));
  EXPECT_THAT(section(page), Not(HasSubstr("achieved_occupancy_pct")));
  page.top = page.findings = 30;
  EXPECT_THAT(section(page), HasSubstr("10 more kernels"));
  page.counters = true;
  EXPECT_THAT(section(page), Not(HasSubstr("more kernels")));
  EXPECT_THAT(section(page), HasSubstr("fourth note"));
  EXPECT_THAT(section(page), HasSubstr("achieved_occupancy_pct"));
  EXPECT_THAT(to_text(page, false), HasSubstr("Hardware counters"));
  EXPECT_THAT(to_text(page, false), Not(HasSubstr("\nMachine\n")));
}

TEST(Hardware, LinesFitAndNamesCannotEscape) {
  Page page = page_with_counters();
  const std::string hostile = "\x1b[31m" + std::string(300, 'k');
  analyze::Counters& c = page.summary.counters;
  c.notes = {hostile};
  c.stages[0].stage = c.modules[0].name = c.unmixed[0].name = c.occupancy[0].kernel = c.occupancy[0].limiter = hostile;
  c.evidence[0].stage = c.evidence[0].explanation = hostile;
  c.stalls[0].kernel = c.stalls[0].places[0].kernel = c.stalls[0].places[0].file = hostile;
  c.stalls[0].reasons[0].reason = c.stalls[0].places[0].reason = std::string(70, 'r');
  for (const bool full : {false, true}) {
    page.counters = full;
    std::istringstream lines(section(page));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(base::display_width(line), line_width()) << line;
      EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    }
  }
}

void collect_keys(const Json& json, std::vector<std::string>& keys) {
  for (const auto& [key, child] : json.items()) {
    if (json.is_object()) keys.push_back(key);
    if (child.is_structured()) collect_keys(child, keys);
  }
}

TEST(Hardware, JsonHasAllOfItAndEveryKeyIsDocumented) {
  const Json json = report_json(page_with_counters())["hardware_counters"];
  EXPECT_EQ(json["windows"], 48);
  EXPECT_EQ(json["stages"][0]["work"]["dram_bytes"], 6e9);
  EXPECT_EQ(json["stages"][0]["values"][1]["spread"], 0.031);
  EXPECT_TRUE(json["stages"][0]["work"]["l1_bytes"].is_null());
  EXPECT_EQ(json["unmixed"][0]["values"][0]["error"], 0.034);
  EXPECT_EQ(json["stalls"][0]["places"][1]["pc_offset"], 0x2b0);
  // What the page draws beside what must be.
  const Json& stage = json["stages"][0];
  EXPECT_EQ(stage["must_move"], 5e9);
  EXPECT_EQ(stage["of_bandwidth"], 0.75);  // 3 of 4 TB/s
  EXPECT_EQ(stage["spread"], 0.031);       // the widest
  EXPECT_EQ(stage["mfu"], 0.0119);
  EXPECT_DOUBLE_EQ(stage["tensor_active"].get<double>(), 0.0325);
  EXPECT_TRUE(json["ranges"][0]["occupancy"].is_null());  // not counted is not 0
  EXPECT_EQ(json["evidence"][0]["ratio"], 1.2);
  EXPECT_TRUE(json["evidence"][2]["ratio"].is_null());
  EXPECT_EQ(json["stalls"][0]["places"][0]["place"], "gemm.cu:42");
  Page without_peak = page_with_counters();
  without_peak.summary.devices.clear();
  EXPECT_TRUE(report_json(without_peak)["hardware_counters"]["stages"][0]["of_bandwidth"].is_null());
  const Result<std::string> document = base::read_file(LLMPROF_SOURCE_DIR "/docs/format/json.md", 1 << 20);
  ASSERT_TRUE(document) << document.error().message;
  const std::string part = document->substr(document->find("## hardware_counters"));
  std::vector<std::string> keys;
  collect_keys(json, keys);
  for (const std::string& key : keys) EXPECT_THAT(part, HasSubstr("`" + key + "`"));
}

}  // namespace
}  // namespace llmprof::report
