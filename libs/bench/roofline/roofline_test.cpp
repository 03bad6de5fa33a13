#include "bench/roofline/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/roofline/cuda.h"
#include "hw/resolve.h"

namespace llmprof::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool go_on(const base::ProgressUpdate&) { return true; }

hw::Peak flops(std::string type, double value) {
  return {.quantity = "flops", .type = std::move(type), .value = value, .unit = "FLOP/s", .source = "measured"};
}
hw::Peak bandwidth(std::string type, double value) {
  return {.quantity = "bandwidth", .type = std::move(type), .value = value, .unit = "B/s", .source = "measured"};
}
hw::Device h200() { return {.kind = "gpu", .name = "NVIDIA H200", .clock_mhz = 1980}; }

RooflineStep step(const std::string& name, double seconds, Result<hw::Peak> answer) {
  return {name, seconds, flops(name, 0), one_peak([answer](const GoOn& ask) -> Result<hw::Peak> {
            if (!ask()) return Error{ErrorCode::kInterrupted, "", ""};
            return answer;
          })};
}

TEST(RooflineTarget, KnowsTheNamesOfDevices) {
  EXPECT_TRUE(parse_roofline_target("cpu", 2)->cpu);
  EXPECT_TRUE(parse_roofline_target("", 0)->cpu);
  EXPECT_FALSE(parse_roofline_target("", 1)->cpu);
  for (const char* first : {"", "cuda", "gpu", "cuda:0", "0"})
    EXPECT_EQ(parse_roofline_target(first, 2)->index, 0) << first;
  EXPECT_EQ(parse_roofline_target("cuda:1", 2)->index, 1);
}

TEST(RooflineTarget, WhatIsNotThereIsAnErrorThatNamesIt) {
  const auto seventh = parse_roofline_target("cuda:7", 2);
  ASSERT_FALSE(seventh);
  EXPECT_EQ(seventh.error().message, "no device cuda:7: this machine has 2, counted from 0");
  for (const char* bad : {"cuda:", "cuda:-1", "cuda:x", "tpu", "cuda:99999999999999", "cpu0"}) {
    const auto target = parse_roofline_target(bad, 2);
    ASSERT_FALSE(target) << bad;
    EXPECT_EQ(target.error().code, ErrorCode::kUsage);
    EXPECT_THAT(target.error().message, HasSubstr(bad));
  }
  // Without any GPU the driver says why, when it is opened.
  EXPECT_FALSE(parse_roofline_target("cuda:7", 0)->cpu);
}

TEST(RooflineSteps, AFailedStepIsARowWithItsReason) {
  const auto rows = run_steps(
      {step("a", 1, flops("a", 5)), step("b", 1, Error{ErrorCode::kUnsupported, "no unit", "buy one"})}, go_on);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].peak.value, 5);
  EXPECT_EQ((*rows)[0].why, "");
  EXPECT_EQ((*rows)[1].peak.type, "b");
  EXPECT_EQ((*rows)[1].peak.value, 0);
  EXPECT_EQ((*rows)[1].why, "no unit; buy one");
}

TEST(RooflineSteps, ProgressHasATotalAndGrows) {
  std::vector<double> done;
  const auto progress = [&](const base::ProgressUpdate& update) {
    EXPECT_EQ(update.total, 30);
    EXPECT_EQ(update.unit, "s");
    done.push_back(update.done);
    return true;
  };
  ASSERT_TRUE(run_steps({step("a", 10, flops("a", 1)), step("b", 20, flops("b", 1))}, progress));
  ASSERT_EQ(done.size(), 4u);  // each step is announced and asks once
  EXPECT_LT(done[1], 10);
  EXPECT_GE(done[2], 10);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(RooflineSteps, CtrlCEndsEverything) {
  int asked = 0;
  const auto rows = run_steps({step("a", 1, flops("a", 1)), step("b", 1, flops("b", 1))},
                              [&](const base::ProgressUpdate&) { return ++asked < 4; });
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(asked, 4);
}

TEST(AboveSpec, JudgesFlopsAtTheHighestClock) {
  const hw::DeviceSpec* spec = hw::find_device("NVIDIA H200");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(hw::above_spec(flops("bfloat16", 830e12), spec, h200()), "");
  // 989 at 1830 MHz are 1070 at 1980.
  EXPECT_EQ(hw::above_spec(flops("bfloat16", 1060e12), spec, h200()), "");
  const std::string why = hw::above_spec(flops("bfloat16", 1200e12), spec, h200());
  EXPECT_THAT(why, HasSubstr("measured 1.20 PFLOP/s, which is more than the device can do (989 TFLOP/s at 1830 MHz"));
  EXPECT_THAT(why, HasSubstr("1.07 PFLOP/s at the 1980 MHz"));
  hw::Device unknown_clock = h200();
  unknown_clock.clock_mhz.reset();
  EXPECT_NE(hw::above_spec(flops("bfloat16", 1060e12), spec, unknown_clock), "");
}

TEST(AboveSpec, JudgesTheMemoryAndNotTheCaches) {
  const hw::DeviceSpec* spec = hw::find_device("NVIDIA H200");
  EXPECT_EQ(hw::above_spec(bandwidth("read", 4.4e12), spec, h200()), "");
  EXPECT_THAT(hw::above_spec(bandwidth("read", 6e12), spec, h200()), HasSubstr("4.80 TB/s"));
  EXPECT_NE(hw::above_spec(bandwidth("copy", 6e12), spec, h200()), "");
  EXPECT_EQ(hw::above_spec(bandwidth("read, L2", 6e12), spec, h200()), "");
  EXPECT_EQ(hw::above_spec(flops("bfloat16", 1e18), nullptr, h200()), "");
}

TEST(SpecOf, ThePlainCoresOfNvidiaAreItsFloat32) {
  const hw::DeviceSpec* spec = hw::find_device("NVIDIA H200");
  EXPECT_EQ(hw::spec_of(flops("float32_vector", 1), spec)->value, 67e12);
  EXPECT_EQ(hw::spec_of(flops("float64_vector", 1), spec)->value, 34e12);
  EXPECT_EQ(hw::spec_of(flops("float16_vector", 1), spec), nullptr);
  EXPECT_EQ(hw::spec_of(flops("float32, one core", 1), spec), nullptr);
  EXPECT_EQ(hw::spec_of({.quantity = "latency", .type = "kernel launch"}, spec), nullptr);
}

TEST(SettleCpu, TheFasterOfLoopAndOpenBlasIsThePeak) {
  std::vector<hw::PeakRow> rows{{flops("float32", 100), ""},
                                {flops("float32, OpenBLAS", 90), ""},
                                {flops("float32, one core", 50), ""},
                                {flops("float32, OpenBLAS, one core", 55), ""}};
  rows[3].peak.method = "by OpenBLAS";
  settle_cpu(rows);
  EXPECT_EQ(rows[0].peak.value, 100);
  EXPECT_EQ(rows[1].peak.value, 90);
  EXPECT_EQ(rows[2].peak.value, 55);
  EXPECT_EQ(rows[2].peak.method, "by OpenBLAS");
  EXPECT_EQ(rows[3].peak.value, 55);
}

TEST(SettleCpu, AllCoresReachWhatOneDid) {
  std::vector<hw::PeakRow> rows{{flops("float64", 30), ""}, {flops("float64, one core", 50), ""}};
  rows[0].peak.method = "loop, CPU share 15 %";
  rows[1].peak.method = "loop";
  settle_cpu(rows);
  EXPECT_EQ(rows[0].peak.value, 50);
  EXPECT_EQ(rows[0].peak.method, "loop; all cores less: loop, CPU share 15 %");  // still known to be too low
}

TEST(CpuSteps, CoverFlopsAndStreamsOfAllLevelsOnOneAndAllCores) {
  const std::vector<RooflineStep> steps = cpu_steps(hw::probe_cpu(), {.types = {Type::kFloat32}, .quick = true});
  std::vector<std::string> types;
  for (const RooflineStep& s : steps) types.push_back(s.wanted.type);
  const std::vector<std::string> first(types.begin(), types.begin() + 5);
  EXPECT_THAT(first,
              ElementsAre("float32", "float32, OpenBLAS", "float32, one core", "float32, OpenBLAS, one core", "read"));
  EXPECT_THAT(types, ::testing::Contains("read, one core"));
}

TEST(CpuSteps, ATypeThatIsNotMeasuredSaysSo) {
  const std::vector<RooflineStep> steps = cpu_steps(hw::probe_cpu(), {.types = {Type::kBfloat16}, .quick = true});
  const auto rows = run_steps({steps.front()}, go_on);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().peak.type, "bfloat16");
  EXPECT_THAT(rows->front().why, HasSubstr("bfloat16 is not measured on a CPU"));
}

TEST(PeakShapes, EveryTypeHasSomeAndTheyFitTheirLibrary) {
  for (const Type type : kAllTypes) {
    ASSERT_GE(peak_shapes(type).size(), 3u);
    for (const PeakShape& shape : peak_shapes(type)) {
      // Tensor cores want multiples of 16 bytes; 32 GB of operands would not fit most GPUs.
      EXPECT_EQ(shape.m % 16 + shape.n % 16 + shape.k % 16, 0);
      EXPECT_LE(shape.m * shape.k + shape.n * shape.k + shape.m * shape.n, 1ll << 30);
    }
  }
}

}  // namespace
}  // namespace llmprof::bench
