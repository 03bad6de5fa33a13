#include "report/design/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/design/testing/small_model.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using namespace analyze::design;
using testing::HasSubstr;
using testing::Not;

Roof no_roof() {
  Roof roof;
  roof.why = "nothing is known of this machine";
  return roof;
}

DesignPage page_of(const Subject& subject, const Roof& roof) {
  return {.design = must(make_design(subject, {.prompt = 8, .context = 10}, roof)), .reached = {}};
}

SweepPage sweep_of(std::vector<base::Axis> axes, const Roof& roof) {
  const Options options{.prompt = 8, .context = 10};
  return {.design = must(make_design(small_llama(), options, roof)),
          .sweep = must(sweep(small_llama(), options, roof, std::move(axes)))};
}

void expect_narrow(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    EXPECT_LE(base::display_width(std::string_view(text).substr(begin, end - begin)), line_width());
    begin = end + 1;
  }
}

TEST(DesignPage, CellsOfNumbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'235'814'400), "1,235,814,400");
  EXPECT_EQ(grouped(-1'000), "-1,000");
  const base::Json rates = {{"tokens_per_s", 12'345}, {"tokens_per_s_per_sequence", nullptr}};
  EXPECT_EQ(TableText(rates).rows("llmprof.model.speeds#table", base::Json::array({rates})),
            "  TTFT  TPOT  tokens/s per sequence  tokens/s in total\n"
            "                                  -             12.3 k\n");
}

TEST(DesignPage, CaveatsComeBeforeNumbers) {
  Subject subject = small_llama();
  subject.config.caveats.push_back({"magic", "not understood"});
  const std::string text = to_text(page_of(subject, small_roof()), false);
  EXPECT_LT(text.find("magic: not understood"), text.find("Parameters"));
  expect_narrow(text);
}

TEST(DesignPage, SaysWhyThereAreNoFloors) {
  const std::string text = to_text(page_of(small_llama(), no_roof()), false);
  EXPECT_THAT(text, HasSubstr("nothing is known of this machine"));
  EXPECT_THAT(text, Not(HasSubstr("No run can be faster")));
  base::Json json;
  to_json(page_of(small_llama(), no_roof()), json);
  EXPECT_TRUE(json["stages"][0]["floor_ns"].is_null());
  EXPECT_EQ(json["device"]["why"], "nothing is known of this machine");
  EXPECT_THAT(to_csv(page_of(small_llama(), no_roof())), HasSubstr(",unknown,,,\n"));
}

TEST(DesignPage, NamesOfStrangersAreHarmless) {
  Subject subject = small_llama();
  subject.config.name = "\x1b[31mred\n";
  subject.origin = std::string(300, 'x');
  const std::string text = to_text(page_of(subject, small_roof()), false);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  expect_narrow(text);
}

TEST(SweepPage, PlotsTheLastAxisWithALineForEachOther) {
  const Plot plot = to_plot(sweep_of({{"batch", {1, 4}}, {"context", {10, 20, 40}}}, small_roof()));
  ASSERT_EQ(plot.series.size(), 2u);
  EXPECT_EQ(plot.series[1].name, "batch 4");
  EXPECT_EQ(plot.series[1].points.size(), 3u);
  EXPECT_EQ(plot.y.unit, "s");
  EXPECT_THAT(plot.note, HasSubstr("prompt 8"));
}

TEST(SweepPage, PlotsMemoryWithoutFloors) {
  const Plot plot = to_plot(sweep_of({{"batch", {1, 2}}}, no_roof()));
  EXPECT_EQ(plot.y.unit, "B");
}

TEST(SweepPage, MarksWhereMemoryEnds) {
  Roof roof = small_roof();
  const SweepPage roomy = sweep_of({{"batch", {1, 2, 1000}}}, roof);
  EXPECT_TRUE(to_plot(roomy).guides.empty());
  roof.memory_bytes = roomy.sweep.points[1].memory_bytes;  // two sequences fit exactly
  const Plot plot = to_plot(sweep_of({{"batch", {1, 2, 1000}}}, roof));
  ASSERT_EQ(plot.guides.size(), 1u);
  EXPECT_EQ(plot.guides[0].value, 1000);
}

TEST(DesignDiffPage, PrintsWhatBothShareOnce) {
  Roof other = small_roof();
  other.device = "another";
  const Options options{.prompt = 8, .context = 10};
  DesignDiffPage page{.a = must(make_design(small_llama(), options, small_roof())),
                      .b = must(make_design(small_llama(), options, other)),
                      .rows = {}};
  page.rows = diff(page.a, page.b);
  page.b.caveats.push_back("only here");
  const std::string text = to_text(page, false);
  EXPECT_THAT(text, HasSubstr("! B: only here"));
  EXPECT_THAT(text, Not(HasSubstr("A: Analytic")));
  EXPECT_THAT(text, HasSubstr("on another"));
}

}  // namespace
}  // namespace llmprof::report
