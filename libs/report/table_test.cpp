#include "report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/tables.h"
#include "base/text_table.h"
#include "report/drawn.h"

namespace llmprof::report {
namespace {

using base::Json;
using testing::HasSubstr;

TEST(Table, DrawsWhatItsDescriptionSays) {
  const Json report = {{"coverage", {{"gpu_ns", 2'000'000}}},
                       {"kernels", Json::array({{{"name", "at::native::add<float>"},
                                                 {"executions", 3},
                                                 {"time_ns", 1'500'000},
                                                 {"mean_ns", 500'000},
                                                 {"estimated_ns", 1},
                                                 {"share", 0.75},
                                                 {"flops_per_s", nullptr},
                                                 {"stage", nullptr},
                                                 {"ops", "mlp, norm"}}})}};
  EXPECT_EQ(TableText(report, {}, 5).section("kernels[]", Style{}),
            "\nKernels by GPU time\n"
            "  kernel  calls      time    mean  GPU %  FLOP/s  stage   operator  shape\n"
            "  add         3  ~1.50 ms  500 us   75.0       -  (none)  mlp\n"
            "  GPU %: of 2.00 ms, the durations of all kernels added up. FLOP/s and shape: of the matrix products\n"
            "  that it stands for, [m, k] x [k, n], the one with the most time.\n");
}

TEST(Table, RowsBeyondTheTopAreCountedAndWhatRemainsIsShown) {
  const Json nothing;
  const Json rows = Json::array({{{"name", "a"}},
                                 {{"name", "  of a"}, {"below", true}},
                                 {{"name", "b"}},
                                 {{"name", "  of b"}, {"below", true}},
                                 {{"name", "rest"}, {"last", true}}});
  const std::string text = TableText(nothing, {}, 1).rows("operators[]#time", rows);
  EXPECT_THAT(text, HasSubstr("  a\n"));
  EXPECT_THAT(text, HasSubstr("of a"));
  EXPECT_THAT(text, HasSubstr("rest"));
  EXPECT_EQ(text.find("of b"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("1 more operators; --top shows more."));
}

TEST(Table, ColumnsAndNotesDependOnFlags) {
  const Json nothing;
  const Json rows = Json::array({{{"name", "layers.0"}}});
  EXPECT_THAT(TableText(nothing, {"gpu"}, 5).rows("modules[]#time", rows), HasSubstr("GPU time"));
  EXPECT_THAT(TableText(nothing, {}, 5).rows("modules[]#time", rows), HasSubstr("self"));
  EXPECT_EQ(TableText(nothing, {"gpu"}, 5).title("modules[]#time"), "Modules by GPU time");
  EXPECT_EQ(TableText(nothing, {}, 5).title("modules[]#time"), "Modules by self time");
}

TEST(Table, ErrorsDecideTheDigits) {
  const Json nothing;
  const Json rows = Json::array({{{"stage", "decode"}, {"energy_j", 12.345}, {"energy_error_j", 0.4}}});
  EXPECT_THAT(TableText(nothing, {}, 5).rows("telemetry.stages[]", rows), HasSubstr("12.3 ± 0.4"));
}

TEST(Table, CsvHasEveryColumnAndQuotesWhatNeedsIt) {
  const Json rows = Json::array({{{"subject", "gpu"}, {"text", "a, \"b\""}, {"notes", 2}}});
  EXPECT_EQ(to_csv("notes[]", rows), "subject,text,notes\ngpu,\"a, \"\"b\"\"\",2\n");
}

// Whatever a page holds: JSON keys are described ones only, in their order, and those of structs are all there.
TEST(Described, EveryKeyIsThere) {
  Page page;
  page.summary.stages.emplace_back();
  page.summary.modules.emplace_back();
  page.summary.ops.emplace_back().products.emplace_back();
  page.summary.gemms.emplace_back();
  page.summary.gpu.kernels.emplace_back();
  page.summary.gpu.sources.emplace_back();
  page.summary.host.processes.emplace_back();
  page.summary.host.functions.emplace_back();
  page.summary.imported.totals.emplace_back();
  page.summary.imported.attentions.emplace_back();
  page.summary.imported.framework_ops.emplace_back();
  page.summary.devices.emplace_back();
  page.summary.losses.emplace_back();
  page.summary.idle.emplace_back();
  const Json report = report_json(page);
  const auto expect_keys = [](std::string_view path, const Json& row) {
    std::vector<std::string> described, there;
    for (const analyze::ColumnDescription& column : analyze::find_description(path)->columns) {
      if (!column.terminal) described.push_back(column.key);
    }
    for (const auto& [key, value] : row.items()) there.push_back(key);
    EXPECT_EQ(there, described) << path;
  };
  for (const char* name : {"stages", "modules", "operators", "gemms", "kernels", "functions", "totals", "attention",
                           "framework_operators", "devices", "losses", "idle"}) {
    expect_keys(std::string(name) + "[]", report[name][0]);
  }
  expect_keys("operators[].products[]", report["operators"][0]["products"][0]);
  expect_keys("gpu_by_source.rows[]", report["gpu_by_source"]["rows"][0]);
  expect_keys("host.processes[]", report["host"]["processes"][0]);
  expect_keys("coverage", report["coverage"]);
  expect_keys("job", report["job"]);
  expect_keys("model", report["model"]);
  expect_keys("run", report["run"]);
  expect_keys("stacks", report["stacks"]);
  expect_keys("peaks_together", report["peaks_together"]);
  expect_keys("host", report["host"]);
}

// The conditions that the page reads: as the terminal decides them.
TEST(Described, FlagsSayWhichConditionsHold) {
  const auto flags = [](const Page& page) { return report_json(page)["flags"].get<std::set<std::string>>(); };
  Page page;
  page.summary.stages.push_back({.name = "decode"});
  EXPECT_EQ(flags(page), (std::set<std::string>{"inference", "only_tokens"}));
  page.summary.stages.push_back({.name = "encode", .steps = 2});
  EXPECT_EQ(flags(page), (std::set<std::string>{"inference", "tokens_and_steps"}));
  page.summary.stages.clear();
  page.summary.gemms.emplace_back().shared_ns = 1;
  page.summary.gpu.by = "function";
  page.summary.on_gpu = true;
  EXPECT_EQ(flags(page), (std::set<std::string>{"functions", "gpu", "shared"}));
}

// For the page: only what the report holds something of, and of that only what is said.
TEST(Described, DescriptionsOfAReportAreThoseOfItsRows) {
  Page page;
  page.summary.gpu.kernels.emplace_back();
  const Json report = report_json(page);
  const Json some = descriptions_json(&report), all = descriptions_json();
  EXPECT_TRUE(some.contains("kernels[]") && some.contains("coverage") && !some.contains("gemms[]"));
  EXPECT_TRUE(all.contains("gemms[]#time") && !all.contains("llmprof.diff.rows[]"));
  EXPECT_EQ(some["kernels[]"]["columns"][0].contains("unless"), false);
  EXPECT_TRUE(all["kernels[]"]["columns"][0]["unless"].is_null());
}

TEST(Described, AValueMayStandElsewhereInItsStruct) {
  const Json rows =
      Json::array({{{"a", {{"op", "gemm"}, {"median_ns", 5}}}, {"b", {{"median_ns", 6}}}, {"ratio", 1.2}}});
  const Json point = described("llmprof.bench_compare.points[]", rows)[0];
  EXPECT_EQ(point["op"], "gemm");
  EXPECT_EQ(point["b_median_ns"], 6);
  EXPECT_EQ(point["type"], "");  // a word is never null
  EXPECT_TRUE(point["name"].is_null());
  EXPECT_FALSE(point.contains("interval"));  // of the terminal alone
}

}  // namespace
}  // namespace llmprof::report
