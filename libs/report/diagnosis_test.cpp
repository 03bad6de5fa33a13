#include "report/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/text_table.h"
#include "report/layout.h"

namespace llmprof::report {
namespace {

using analyze::Finding;
using analyze::Severity;
using analyze::Verdict;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

// 128 steps of 2 ms; half of it would be saved: 128 ms of 256 ms.
Finding wide_weights() {
  return {.rule = "wide_weights",
          .stage = "decode",
          .severity = Severity::kHigh,
          .title = "Decode moves 4.94 GB of float32 weights per token",
          .text = "Each token reads all weights.",
          .gain = analyze::Gain{128e6, 256e6, true, "4.94 GB at float32, 2.47 GB at bfloat16"},
          .evidence = {{.name = "decode.mbu",
                        .what = "bytes that must move per second, of the peak",
                        .value = 0.5,
                        .unit = "1",
                        .source = "measured",
                        .of = "4.80 TB/s, spec",
                        .rows = "SELECT * FROM step WHERE stage = 'decode'"},
                       {.name = "weights", .value = 4.94e9, .unit = "B", .source = "analytic"},
                       {.name = "third", .value = 3, .source = "counted"}},
          .advice = {"Load the weights as bfloat16.", "Quantise them."},
          .next = "llmprof record --model x"};
}

Page diagnosed() {
  Page page{.run = "x.llmprof"};
  page.summary.stages = {{.name = "decode", .steps = 128, .time_ns = 256'000'000}};
  page.summary.diagnosis = {"Decode is bound by bytes.",
                            {wide_weights()},
                            {{"wide_weights", "found", ""},
                             {"host_sync", "not found", "tokens were fetched in 0 of 128 steps"},
                             {"moe_imbalance", "not applicable", "the model has no experts"}}};
  return page;
}

TEST(WithUnit, SaysWhatPeopleRead) {
  EXPECT_EQ(with_unit(0.00206, "s"), "2.06 ms");
  EXPECT_EQ(with_unit(0.423, "1"), "42.3 %");
  EXPECT_EQ(with_unit(4.94e9, "B"), "4.94 GB");
  EXPECT_EQ(with_unit(4.8e12, "B/s"), "4.80 TB/s");
  EXPECT_EQ(with_unit(989e12, "FLOP/s"), "989 TFLOP/s");
  EXPECT_EQ(with_unit(1.98e9, "Hz"), "1.98 GHz");
  EXPECT_EQ(with_unit(17, ""), "17");
  EXPECT_EQ(with_unit(0.0123, "J"), "0.0123 J");
  EXPECT_EQ(with_unit(-0.001, "s"), "-1.00 ms");
}

TEST(Diagnosis, AFindingIsAFewLinesWithItsGainEvidenceAdviceAndNextCommand) {
  // 128 ms / 128 steps = 1 ms, of 256 ms / 128 steps = 2 ms.
  EXPECT_EQ(diagnosis_section(diagnosed(), {}),
            "\nDiagnosis\n"
            "  Decode is bound by bytes.\n"
            "  1 HIGH    Decode moves 4.94 GB of float32 weights per token\n"
            "            saves up to 1.00 ms of 2.00 ms per token (50.0 % of decode)\n"
            "            decode.mbu 50.0 % of 4.80 TB/s, spec (measured); weights 4.94 GB (analytic)\n"
            "            do: Load the weights as bfloat16.\n"
            "            next: llmprof record --model x\n"
            "  1 check passed: host_sync; 1 not applicable. See diagnosis; --explain NAME has one of them.\n");
}

TEST(Diagnosis, InFullItHasAllEvidenceAllAdviceTheRowsAndEveryRule) {
  const std::string text = full_diagnosis(diagnosed(), {});
  for (const char* part :
       {"HIGH: Decode moves", "[wide_weights, decode]", "Each token reads all weights.",
        "Gain: saves up to 1.00 ms of 2.00 ms per token (50.0 % of decode): 4.94 GB at float32", "third 3 (counted)",
        "Quantise them.", "llmprof query x.llmprof \"SELECT * FROM step WHERE stage = 'decode'\"",
        "Next: llmprof record --model x", "host_sync: not found: tokens were fetched in 0 of 128 steps",
        "moe_imbalance: not applicable: the model has no experts"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Diagnosis, OfTheWholeRunTheGainIsOfItsWallTime) {
  Page page = diagnosed();
  page.summary.diagnosis.findings[0].stage = "";
  page.summary.diagnosis.findings[0].gain->upper_bound = false;
  EXPECT_EQ(gain_text(page, page.summary.diagnosis.findings[0]),
            "saves about 128 ms of 256 ms (50.0 % of the run's wall time)");
}

TEST(Diagnosis, WithoutAGainNothingIsSaidToBeSaved) {
  Page page = diagnosed();
  page.summary.diagnosis.findings[0].gain.reset();
  EXPECT_THAT(diagnosis_section(page, {}), Not(HasSubstr("saves")));
}

TEST(Diagnosis, WhatIsNotSettledIsOneLineWithTheCommand) {
  Page page = diagnosed();
  Finding open = wide_weights();
  open.verdict = Verdict::kInconclusive;
  open.title = "Is the L2 hit rate low?";
  page.summary.diagnosis.findings.push_back(open);
  EXPECT_THAT(diagnosis_section(page, {}),
              HasSubstr("find out, run:\n  ? Is the L2 hit rate low?: llmprof record --model x\n"));
  EXPECT_THAT(full_diagnosis(page, {}), HasSubstr("open: Is the L2 hit rate low?"));
}

TEST(Diagnosis, HoldsUpToFiveFindingsAndSaysThatThereAreMore) {
  // A finding is 5 lines; 2 of the head with the blank line, 1 headline, 1 of the rules, 1 for what is left out.
  Page page = diagnosed();
  page.summary.diagnosis.findings.assign(9, wide_weights());
  const std::string text = diagnosis_section(page, {});
  EXPECT_THAT(text, HasSubstr("4 more findings"));
  EXPECT_EQ(lines(text).size(), 3U + 5 * 5 + 1 + 1);
  page.findings = 9;
  EXPECT_THAT(diagnosis_section(page, {}), Not(HasSubstr("more finding")));
}

TEST(Diagnosis, OtherStagesAreLeftOutOnRequest) {
  Page page = diagnosed();
  page.stage = "prefill";
  EXPECT_THAT(diagnosis_section(page, {}), Not(HasSubstr("float32 weights")));
}

TEST(Diagnosis, HostileAndLongTextStaysOnItsLines) {
  Page page = diagnosed();
  Finding& finding = page.summary.diagnosis.findings[0];
  finding.title = "\x1b[31mred " + std::string(300, 't') + " words and more words to break";
  finding.advice = {std::string(60, 'a') + " ä ö ü " + std::string(60, 'b')};
  finding.evidence[0].name = std::string(200, 'n');
  finding.evidence[0].rows = "SELECT \"x\", '$HOME' FROM t";
  finding.next = std::string(150, 'c') + " --more";
  for (const std::string& text : {diagnosis_section(page, {}), full_diagnosis(page, {})}) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    for (const std::string& line : lines(text)) EXPECT_LE(base::display_width(line), line_width()) << line;
  }
  EXPECT_THAT(full_diagnosis(page, {}), HasSubstr("\"SELECT \\\"x\\\", '\\$HOME' FROM t\""));
}

TEST(Diagnosis, NoneIsNoSection) {
  EXPECT_EQ(diagnosis_section(Page{}, {}), "");
  EXPECT_THAT(full_diagnosis(Page{}, {}), HasSubstr("No rule was applied."));
}

}  // namespace
}  // namespace llmprof::report
