#include "report/waterfall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::report {
namespace {

using analyze::Waterfall;
using testing::HasSubstr;
using testing::Not;

// Two samples of 1 ms: 200 us between steps, 300 us above the floor of projections (500 against 200), -50 us of
// attention (50 against 100), 250 us one after another and 300 us of floor: 200 + 300 - 50 + 250 + 300 = 1000, each of
// two.
Page page() {
  Waterfall decode{.stage = "decode", .quantity = "TPOT", .samples = 2, .measured_ns = 2'000'000, .floor_ns = 600'000};
  decode.terms = {{.name = "between_steps", .op_class = "", .ns = 400'000},
                  {.name = "gaps", .op_class = "", .ns = 0},
                  {.name = "clock", .op_class = "", .ns = {}, .why = "no telemetry"},
                  {.name = "above_floor",
                   .op_class = "projection",
                   .ns = 600'000,
                   .measured_ns = 1'000'000,
                   .kernel_ns = 900'000,
                   .floor_ns = 400'000},
                  {.name = "residual", .op_class = "", .ns = 0},
                  {.name = "one_after_another", .op_class = "", .ns = 500'000},
                  {.name = "faster_than_floor",
                   .op_class = "attention",
                   .ns = -100'000,
                   .measured_ns = 100'000,
                   .kernel_ns = 100'000,
                   .floor_ns = 200'000}};
  Waterfall prefill{.stage = "prefill", .quantity = "TTFT", .samples = 1, .measured_ns = 10, .why = "no model"};
  prefill.terms = {{.name = "gaps", .op_class = "", .ns = 4},
                   {.name = "kernels", .op_class = "", .ns = 6},
                   {.name = "residual", .op_class = "", .ns = 0}};
  Page page{.run = "x.llmprof"};
  page.summary.waterfalls = {prefill, decode};
  return page;
}

TEST(Waterfall, SideBySide) {
  EXPECT_EQ(waterfall_section(page(), {}), R"(
Waterfall
  From the measured time down to the floor: % of the measured time, which the rows add up to.
                                      prefill        decode
  measured                         TTFT 10 ns  TPOT 1.00 ms
  between steps                             -          20.0
  gaps between operators                 40.0             0
  projection above its floor                -          30.0
  operators, floor unknown               60.0             -
  residual                                  0             0
  operators one after another               -          25.0
  attention faster than its floor           -          -5.0
  floor                                     ?          30.0
  floor, time                               -        300 us
  Faster than its floor: the peak is too low, or the cache helped.
  Operators one after another: some wait for memory and some compute, which do not overlap.
  prefill: the floor is unknown (no model).
  decode: clock loss is unknown (no telemetry).
)");
}

TEST(Waterfall, InFull) {
  Page full = page();
  full.waterfall = true;
  full.stage = "decode";
  const std::string text = waterfall_section(full, {});
  EXPECT_THAT(text, Not(HasSubstr("prefill")));
  EXPECT_THAT(text, HasSubstr("decode: TPOT down to its floor\n  mean of 2 samples; % of 1.00 ms\n"));
  EXPECT_THAT(text, HasSubstr("clock loss"));
  EXPECT_THAT(text, HasSubstr("unknown (no telemetry)"));
  EXPECT_THAT(text, HasSubstr("-50.0 us   -5.0 %"));
  EXPECT_THAT(text, HasSubstr("projection above its floor         500 us      450 us  200 us            2.50\n"));
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(base::display_width(text.substr(begin, end - begin)), line_width());
}

TEST(Waterfall, SharesInJsonAddUpToOne) {
  const base::Json json = waterfall_json(page());
  ASSERT_EQ(json.size(), 2U);
  const base::Json& decode = json[1];
  double shares = decode["floor_ns"].get<double>() / decode["measured_ns"].get<double>();
  for (const base::Json& term : decode["terms"]) {
    if (term["share"].is_null()) {
      EXPECT_EQ(term["why"], "no telemetry");
    } else {
      shares += term["share"].get<double>();
    }
  }
  EXPECT_DOUBLE_EQ(shares, 1);
  EXPECT_EQ(decode["terms"][3]["class"], "projection");
  EXPECT_EQ(decode["terms"][3]["mean_ns"], 300'000);
  EXPECT_TRUE(json[0]["floor_ns"].is_null());
  EXPECT_EQ(json[0]["why"], "no model");
}

TEST(Waterfall, NothingMeasuredIsNothingShown) {
  EXPECT_EQ(waterfall_section({}, {}), "");
  Page empty;
  empty.summary.waterfalls = {{.stage = "decode", .samples = 0}, {.stage = "prefill", .samples = 1}};
  EXPECT_EQ(waterfall_section(empty, {}), "");
}

}  // namespace
}  // namespace llmprof::report
