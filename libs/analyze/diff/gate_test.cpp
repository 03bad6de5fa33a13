#include "analyze/diff/diff.h"

#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

Side side_with(const std::string& measure, std::optional<double> value, std::string why = "") {
  Digest run{.name = "a run"};
  MeasureDigest row{.name = measure, .unit = "s", .better = "lower", .why = std::move(why)};
  if (value) row.value = Estimate{*value, std::nullopt, 0, 1};
  run.measures.push_back(row);
  return {"side", {run}};
}

GateResult check(const std::string& text, const Side& before, const Side& after) {
  const Result<std::vector<Gate>> gates = parse_gates(text);
  EXPECT_TRUE(gates) << text;
  return check_gates(*gates, before, after, compare(before, after)).at(0);
}

TEST(Gate, Forms) {
  const Result<std::vector<Gate>> gates = parse_gates(
      "decode.tpot_p50 < +3%; decode.mbu > 0.70;decode.tpot_p99<=12ms ; run.device_memory_peak < 5GB;"
      "decode.mfu >= 80 %; decode.tokens_per_s > -2.5%;");
  ASSERT_TRUE(gates);
  ASSERT_EQ(gates->size(), 6);
  EXPECT_EQ((*gates)[0].measure, "decode.tpot_p50");
  EXPECT_TRUE((*gates)[0].relative);
  EXPECT_DOUBLE_EQ((*gates)[0].limit, 0.03);
  EXPECT_FALSE((*gates)[1].relative);
  EXPECT_DOUBLE_EQ((*gates)[1].limit, 0.70);
  EXPECT_EQ((*gates)[2].op, "<=");
  EXPECT_DOUBLE_EQ((*gates)[2].limit, 0.012);
  EXPECT_DOUBLE_EQ((*gates)[3].limit, 5e9);
  EXPECT_DOUBLE_EQ((*gates)[4].limit, 0.8);  // 80 % of a fraction is no change
  EXPECT_FALSE((*gates)[4].relative);
  EXPECT_DOUBLE_EQ((*gates)[5].limit, -0.025);
  EXPECT_TRUE((*gates)[5].relative);
}

TEST(Gate, MistakesNameWhatIsNear) {
  const auto error = [](const char* text) {
    const Result<std::vector<Gate>> gates = parse_gates(text);
    return gates ? std::string("none") : gates.error().message + " | " + gates.error().hint;
  };
  EXPECT_NE(error("decode.tpot_50 < 1ms").find("did you mean tpot_p50"), std::string::npos);
  EXPECT_NE(error("decod.tpot_p50 < 1ms").find("did you mean decode?"), std::string::npos);
  EXPECT_NE(error("decode.tpot_p50 < 5GB").find("it is in s"), std::string::npos);
  EXPECT_NE(error("decode.tpot_p50 < 3%").find("has a sign"), std::string::npos);
  EXPECT_NE(error("decode.tpot_p50 = 3").find("no <, <=, > or >="), std::string::npos);
  EXPECT_NE(error("decode.tpot_p50 < fast").find("is no number"), std::string::npos);
  EXPECT_NE(error("tpot < 3ms").find("<stage>.<name>"), std::string::npos);
  EXPECT_NE(error("decode.tpot_p50 < inf").find("is no number"), std::string::npos);
}

TEST(Gate, RelativeAndAbsolute) {
  const Side before = side_with("decode.tpot_p50", 0.100), after = side_with("decode.tpot_p50", 0.104);
  EXPECT_FALSE(check("decode.tpot_p50 < +3%", before, after).passed);  // +4 %
  EXPECT_TRUE(check("decode.tpot_p50 < +5%", before, after).passed);
  EXPECT_TRUE(check("decode.tpot_p50 < 105ms", before, after).passed);
  EXPECT_FALSE(check("decode.tpot_p50 < 0.104", before, after).passed);
  EXPECT_TRUE(check("decode.tpot_p50 <= 0.104", before, after).passed);
  EXPECT_TRUE(check("decode.tpot_p50 > -1%", before, after).passed);
}

TEST(Gate, UnknownFailsAndSaysWhy) {
  const Side known = side_with("decode.mbu", 0.5),
             unknown = side_with("decode.mbu", std::nullopt, "the model is not known");
  const GateResult result = check("decode.mbu > 0.1", known, unknown);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.why, "decode.mbu is unknown in a run: the model is not known");
  EXPECT_EQ(check("decode.mfu > 0.1", known, known).why, "a run has no decode.mfu");
  EXPECT_FALSE(check("decode.mbu > -1%", unknown, known).passed);
  EXPECT_TRUE(check("decode.mbu > 0.1", unknown, known).passed);  // absolute: before does not matter
}

}  // namespace
}  // namespace llmprof::analyze
