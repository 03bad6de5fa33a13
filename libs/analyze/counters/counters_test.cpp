// What a run with hardware counters says, on runs written by hand.

#include "analyze/counters/counters.h"

#include <cmath>

#include "analyze/counters/fold.h"
#include "analyze/counters/place.h"
#include "analyze/rules/rule_run.h"

namespace llmprof::analyze {
namespace {

using counters::covered;
using counters::Fold;
using counters::MeasuredWindow;
using counters::PlacedStep;

const CounterValue* find(const std::vector<CounterValue>& values, std::string_view counter) {
  const auto found = std::ranges::find(values, counter, &CounterValue::counter);
  return found == values.end() ? nullptr : &*found;
}

double value(const std::vector<CounterValue>& values, std::string_view counter) {
  const CounterValue* found = find(values, counter);
  return found == nullptr ? -1 : found->value;
}

bool says(const std::vector<std::string>& notes, std::string_view part) {
  return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(part) != note.npos; });
}

TEST(CounterFold, MeansAndSpread) {
  Fold fold;
  fold.add({{"dram__bytes_read.sum", 90}, {"dram__bytes_write.sum", 10}, {"l1tex__t_sector_hit_rate.pct", 10}}, 1, 100);
  fold.add({{"dram__bytes_read.sum", 220}, {"dram__bytes_write.sum", 20}, {"l1tex__t_sector_hit_rate.pct", 40}}, 2,
           300);
  const std::vector<CounterValue> values = fold.values("range");
  EXPECT_DOUBLE_EQ(value(values, "dram_read_bytes"), 100);  // 90 and 220 / 2
  EXPECT_DOUBLE_EQ(value(values, "dram_bytes"), 110);       // 100 and 120
  // Standard deviation of 100 and 120 is 14.142 (n - 1), of 110.
  EXPECT_NEAR(find(values, "dram_bytes")->spread.value(), std::sqrt(200.0) / 110, 1e-12);
  EXPECT_EQ(find(values, "dram_bytes")->unit, "bytes");
  EXPECT_EQ(find(values, "dram_bytes")->occurrences, 2);
  EXPECT_DOUBLE_EQ(value(values, "l1_hit_pct"), 32.5);  // (10 x 100 + 40 x 300) / 400
  EXPECT_FALSE(find(values, "l1_hit_pct")->denominator.empty());
  EXPECT_EQ(find(values, "dram__bytes_read.sum"), nullptr);  // the catalogue has a name for it
  EXPECT_DOUBLE_EQ(fold.metrics().at("dram__bytes_read.sum"), 100);
}

TEST(CounterFold, MetricsWithoutANameKeepTheirOwn) {
  Fold fold;
  fold.add({{"lts__d_sectors.sum", 6}}, 2, 1);
  EXPECT_DOUBLE_EQ(value(fold.values("range"), "lts__d_sectors.sum"), 3);
  EXPECT_FALSE(fold.values("range").front().spread.has_value());
}

PlacedStep step(std::int64_t begin, std::int64_t end, std::string stage = "decode", std::int64_t thread = 1) {
  return {.thread_id = thread, .begin_ns = begin, .host_end_ns = end, .stage = std::move(stage), .range = "step"};
}

TEST(CounterPlace, StepsThatAWindowCovers) {
  const std::vector<PlacedStep> steps = {step(0, 100), step(100, 200), step(200, 300, "prefill"), step(0, 300, "x", 2)};
  const auto window = [](std::int64_t begin, std::int64_t end) {
    return MeasuredWindow{.begin_ns = begin, .end_ns = end, .thread_id = 1};
  };
  EXPECT_EQ(covered(window(105, 210), "step", steps)->stage, "decode");  // begun late, ended late
  EXPECT_EQ(covered(window(105, 210), "step", steps)->steps, 1);
  EXPECT_EQ(covered(window(0, 200), "all", steps)->steps, 2);   // a range around two steps
  EXPECT_FALSE(covered(window(110, 190), "attention", steps));  // a part of a step
  EXPECT_FALSE(covered(window(0, 300), "all", steps));          // of two stages
  EXPECT_FALSE(covered(window(300, 400), "step", steps));       // after them
  EXPECT_EQ(covered({.begin_ns = 0, .end_ns = 300, .thread_id = 2}, "all", steps)->stage, "x");
}

// Ten decode steps of 1 us, each with a kernel of 800 ns; the third and the sixth are measured and take 2 us.
struct DecodeRun {
  RuleRun run;
  DecodeRun() {
    run.peak("bandwidth", "read", 1e12);
    run.peak("flops", "bfloat16", 1e15);
    for (int i = 0; i < 10; ++i) {
      const bool measured = i == 2 || i == 5;
      const std::int64_t begin = 10'000 * (i + 1), end = begin + (measured ? 2000 : 1000);
      run.step("decode", begin, end, {1, 1, 10});
      run.kernel("gemv", begin + 10, begin + 100, begin + 900);
    }
  }
  void measure(int step, std::vector<std::pair<std::string_view, double>> values) {
    const std::int64_t begin = 10'000 * (step + 1);
    run.counted({.name = "decode", .begin_ns = begin + 5, .end_ns = begin + 1990, .cost_ns = 1000, .values = values});
  }
};

TEST(CounterStages, ValuesOfAStep) {
  DecodeRun decode;
  decode.measure(2, {{"dram__bytes_read.sum", 390'000},
                     {"dram__bytes_write.sum", 10'000},
                     {"lts__t_bytes.sum", 1e6},
                     {"gpu__time_duration.sum", 800},
                     {"sm__ops_path_tensor_src_bf16_dst_fp32.sum", 2e6},
                     {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 5}});
  decode.measure(5, {{"dram__bytes_read.sum", 400'000},
                     {"dram__bytes_write.sum", 0},
                     {"lts__t_bytes.sum", 1e6},
                     {"gpu__time_duration.sum", 800},
                     {"sm__ops_path_tensor_src_bf16_dst_fp32.sum", 2e6},
                     {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 7}});
  decode.run.counted({.name = "attention",
                      .begin_ns = 20'200,
                      .end_ns = 20'400,
                      .cost_ns = 10,
                      .values = {{"dram__bytes_read.sum", 7}, {"dram__bytes_write.sum", 1}}});
  const Summary summary = decode.run.summary();
  const Counters& said = summary.counters;
  EXPECT_EQ(said.method, "range");
  EXPECT_EQ(said.chip, "GH100");
  EXPECT_EQ(said.windows, 3);
  EXPECT_EQ(said.cost_ns, 2010);
  ASSERT_EQ(said.stages.size(), 1U);
  const CountedStage& stage = said.stages.front();
  EXPECT_EQ(stage.stage, "decode");
  EXPECT_EQ(stage.steps, 10);
  EXPECT_EQ(stage.measured, 2);
  EXPECT_DOUBLE_EQ(value(stage.values, "dram_bytes"), 400'000);
  EXPECT_DOUBLE_EQ(value(stage.values, "tensor_active_pct"), 6);
  // Unmeasured steps take 1000 ns: 2e6 FLOP in it are 2e12 FLOP/s of 1e15; 400 kB take 400 ns at 1 TB/s.
  EXPECT_DOUBLE_EQ(stage.work.time_ns.value(), 1000);
  EXPECT_NEAR(stage.hfu.value(), 0.002, 1e-12);
  EXPECT_EQ(stage.hfu_type, "bfloat16");
  EXPECT_EQ(stage.work.bound, "memory");
  EXPECT_DOUBLE_EQ(stage.work.of_roof.value(), 0.4);
  EXPECT_DOUBLE_EQ(stage.work.dram_intensity.value(), 5);
  EXPECT_DOUBLE_EQ(stage.work.l2_intensity.value(), 2);
  EXPECT_FALSE(stage.redundancy.has_value());  // no model
  ASSERT_EQ(said.modules.size(), 1U);
  EXPECT_EQ(said.modules.front().name, "attention");
  EXPECT_DOUBLE_EQ(value(said.modules.front().values, "dram_bytes"), 8);
}

TEST(CounterStages, MeasuredStepsAreLeftOutOfPercentiles) {
  DecodeRun decode;
  decode.measure(2, {{"dram__bytes_read.sum", 1}});
  decode.measure(5, {{"dram__bytes_read.sum", 1}});
  const Summary summary = decode.run.summary();
  const Stage& stage = summary.stages.front();
  EXPECT_EQ(stage.measured_steps, 2);
  EXPECT_EQ(stage.step_p99_ns, 1000);  // without counters it would be 2000
  EXPECT_EQ(stage.steps, 10);
  EXPECT_TRUE(says(summary.counters.notes, "decode: 2 of 10 steps were measured"));
  EXPECT_EQ(DecodeRun().run.summary().stages.front().step_p99_ns, 2000);
}

TEST(CounterStages, WhereEveryStepIsMeasuredTheirTimesCount) {
  DecodeRun decode;
  for (int i = 0; i < 10; ++i) decode.measure(i, {{"dram__bytes_read.sum", 1}});
  const Summary summary = decode.run.summary();
  EXPECT_EQ(summary.stages.front().step_p99_ns, 2000);
  EXPECT_TRUE(summary.stages.front().tpot_p50_ns.has_value());
  EXPECT_TRUE(says(summary.counters.notes, "there are no others"));
}

// Two passes over two steps are one measurement; both steps were slowed down.
TEST(CounterStages, PassesShareTheirValues) {
  DecodeRun decode;
  const std::int64_t first = decode.run.counted(
      {.name = "decode", .begin_ns = 30'005, .end_ns = 31'990, .passes = 2, .values = {{"dram__bytes_read.sum", 4}}});
  decode.run.counted(
      {.name = "decode", .begin_ns = 60'005, .end_ns = 61'990, .pass = 1, .passes = 2, .measurement = first});
  const Summary summary = decode.run.summary();
  ASSERT_EQ(summary.counters.stages.size(), 1U);
  EXPECT_EQ(summary.counters.stages.front().measured, 2);
  EXPECT_DOUBLE_EQ(value(summary.counters.stages.front().values, "dram_read_bytes"), 4);
  EXPECT_EQ(find(summary.counters.stages.front().values, "dram_read_bytes")->occurrences, 1);
}

TEST(CounterStages, ARunWithoutCountersSaysNothing) {
  const Summary summary = DecodeRun().run.summary();
  EXPECT_FALSE(summary.counters.any());
  EXPECT_TRUE(summary.counters.notes.empty() && summary.counters.method.empty());
  EXPECT_EQ(summary.stages.front().measured_steps, 0);
}

}  // namespace
}  // namespace llmprof::analyze
