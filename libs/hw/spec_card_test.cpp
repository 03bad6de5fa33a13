#include "hw/device_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::hw {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(SpecCard, ShowsTheSourceOfEveryNumberAndTheConflicts) {
  const std::string card = spec_card(*find_device("t4"));
  EXPECT_THAT(card, HasSubstr("reported as    Tesla T4, NVIDIA Tesla T4"));
  EXPECT_THAT(card, HasSubstr("memory         16 GiB [1]\n"));
  // 65e12 / 320e9 = 203.125
  EXPECT_THAT(card, HasSubstr("float16        65.0 TFLOP/s, ridge at 203 FLOP per byte [2]\n"));
  EXPECT_THAT(card, HasSubstr("[1]            second-hand: sysrqmts.com, NVIDIA Tesla T4\n"));
  EXPECT_THAT(card, HasSubstr("[2]            spec: NVIDIA T4 datasheet"));
  EXPECT_THAT(card, HasSubstr("Lightning-AI/pytorch-lightning"));
  EXPECT_THAT(card, HasSubstr("conflict       bandwidth: 320 GB/s"));
  EXPECT_THAT(spec_card(*find_device("a30")), HasSubstr("24 MiB unverified ["));
}

TEST(SpecCard, LinesFitATerminal) {
  for (const DeviceSpec& spec : catalog()) {
    std::istringstream lines(spec_card(spec));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(base::display_width(line), 100u) << line;
  }
  EXPECT_EQ(catalog_table(catalog()).find("…"), std::string::npos);  // nothing had to be shortened
  std::istringstream lines(catalog_table(catalog()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(base::display_width(line), 100u) << line;
  EXPECT_GE(count, catalog().size());
}

TEST(SpecCard, TheTableMarksWhatIsNotVerifiedAndWhatIsUnknown) {
  const DeviceSpec specs[] = {*find_device("t4"), *find_device("a30")};
  const std::string table = catalog_table(specs);
  EXPECT_THAT(table, ContainsRegex("t4 +16 GiB +320 +8.10 +65.0 +- +- +130 +- +203"));
  EXPECT_THAT(table, ContainsRegex("a30 +24 GiB +933 +10.3 +165 +165\\? "));
}

TEST(SpecCard, JsonCarriesTheSame) {
  const base::Json json = spec_json(*find_device("h200"));
  EXPECT_EQ(json["figures"]["memory"]["value"], 141.0 * (1 << 30));
  EXPECT_EQ(json["peaks"]["bfloat16"]["value"], 989e12);
  EXPECT_EQ(json["peaks"]["bfloat16"]["tag"], "spec");
  EXPECT_NEAR(json["peaks"]["bfloat16"]["ridge_flops_per_byte"].get<double>(), 989e12 / 4.8e12, 1e-9);
  EXPECT_FALSE(json["conflicts"].empty());
  EXPECT_TRUE(json["figures"]["memory"]["note"].is_null());
}

}  // namespace
}  // namespace llmprof::hw
