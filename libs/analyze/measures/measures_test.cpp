#include <gtest/gtest.h>

#include <set>

#include "analyze/measures/measures.h"

namespace llmprof::analyze {

namespace {

// Decode: 4 steps of 25 ms each, the device busy 60 of 100 ms; 200 ms of wall time.
Summary decode_summary() {
  Summary summary;
  summary.coverage.wall_ns = 200'000'000;
  summary.coverage.in_stages_ns = 100'000'000;
  summary.busy_devices = 2;
  summary.peak_flops = 1.978e15;
  summary.devices.push_back({.kind = "gpu", .name = "GPU", .type = "bfloat16", .peak_flops_source = "spec"});
  Stage stage{.name = "decode", .steps = 4, .kernels = 400, .time_ns = 100'000'000, .steps_ns = 100'000'000};
  stage.share = 0.5;
  stage.device_busy_ns = 60'000'000;
  stage.idle_ns = 140'000'000;  // two devices, 100 ms each, less 60 ms
  stage.tpot_p50_ns = 25'000'000;
  stage.efficiency.mfu = 0.25;
  stage.efficiency.why = "the cache helped";
  summary.stages.push_back(stage);
  Waterfall fall{.stage = "decode", .quantity = "TPOT", .samples = 4, .measured_ns = 100'000'000};
  fall.terms.push_back({.name = "gaps", .ns = 8'000'000});
  fall.terms.push_back({.name = "waits", .ns = std::nullopt, .why = "calls were not recorded"});
  summary.waterfalls.push_back(fall);
  return summary;
}

double value_of(const std::vector<Measure>& all, std::string_view name) {
  const Measure* measure = find_measure(all, name);
  return measure == nullptr || !measure->value ? -1 : *measure->value;
}

TEST(Measures, ValuesAreInBaseUnits) {
  const std::vector<Measure> all = measures(decode_summary());
  EXPECT_DOUBLE_EQ(value_of(all, "run.wall"), 0.2);
  EXPECT_DOUBLE_EQ(value_of(all, "run.in_stages"), 0.5);
  EXPECT_DOUBLE_EQ(value_of(all, "decode.time"), 0.1);
  EXPECT_DOUBLE_EQ(value_of(all, "decode.step_mean"), 0.025);
  EXPECT_DOUBLE_EQ(value_of(all, "decode.tpot_p50"), 0.025);
  EXPECT_DOUBLE_EQ(value_of(all, "decode.kernels_per_step"), 100);
  EXPECT_DOUBLE_EQ(value_of(all, "decode.busy"), 0.3);  // 60 ms of 2 x 100 ms
  EXPECT_DOUBLE_EQ(value_of(all, "decode.idle"), 0.7);
  EXPECT_DOUBLE_EQ(value_of(all, "decode.gaps"), 0.002);  // 8 ms over 4 samples
}

TEST(Measures, FractionsSayTheirDenominator) {
  const std::vector<Measure> all = measures(decode_summary());
  EXPECT_EQ(find_measure(all, "decode.mfu")->of, "1.98 PFLOP/s bfloat16, spec, 2 devices together");
  EXPECT_EQ(find_measure(all, "decode.busy")->of, "200 ms of 2 devices");
  for (const Measure& measure : all) {
    const bool fraction = measure.value && measure.kind->unit == "1";
    EXPECT_EQ(fraction, !measure.of.empty()) << measure.full_name();
  }
}

TEST(Measures, UnknownOnesSayWhy) {
  const std::vector<Measure> all = measures(decode_summary());
  EXPECT_EQ(find_measure(all, "decode.waits")->why, "calls were not recorded");
  EXPECT_EQ(find_measure(all, "decode.sm_clock")->why, "no device was read");
  for (const Measure& measure : all) {
    EXPECT_EQ(measure.value.has_value(), measure.why.empty()) << measure.full_name();
  }
  EXPECT_EQ(find_measure(all, "decode.ttft"), nullptr);  // a measure of prefill
  EXPECT_EQ(find_measure(all, "prefill.time"), nullptr);
}

TEST(Measures, TheCatalogueIsComplete) {
  std::set<std::string_view> names;
  for (const MeasureKind& kind : measure_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " twice";
    EXPECT_FALSE(kind.meaning.empty() || kind.formula.empty() || kind.source.empty()) << kind.name;
    ASSERT_NE(find_measure_kind(kind.name), nullptr);
    EXPECT_EQ(find_measure_kind(kind.name)->name, kind.name);
  }
  EXPECT_EQ(find_measure_kind("decode.tpot_p50")->unit, "s");
  EXPECT_EQ(find_measure_kind("tpot_p51"), nullptr);
  EXPECT_EQ(find_measure_kind("run.estimated")->formula, "estimated kernel time / gpu_time");
}

}  // namespace

}  // namespace llmprof::analyze
