// What a run with hardware counters says, on runs written by hand.

#include "analyze/sections/sections.h"

#include <fmt/format.h>

#include <cmath>

#include "analyze/counters/readings.h"
#include "analyze/counters/stages.h"
#include "analyze/measures/measures.h"
#include "analyze/rules/testing/rule_run.h"

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

TEST(CounterStages, NumberedRangesAreOne) {
  DecodeRun decode;
  for (int i = 0; i < 3; ++i) {
    decode.run.counted({.name = fmt::format("Train step {}", i + 8),
                        .begin_ns = 20'200 + 100 * i,
                        .end_ns = 20'250 + 100 * i,
                        .values = {{"dram__bytes_read.sum", 10.0 * i}, {"dram__bytes_write.sum", 0}}});
  }
  decode.run.counted({.name = "gpt2_forward",
                      .begin_ns = 20'600,
                      .end_ns = 20'700,
                      .values = {{"dram__bytes_read.sum", 5}, {"dram__bytes_write.sum", 0}}});
  const Summary summary = decode.run.summary();
  const std::vector<CountedModule>& ranges = summary.counters.modules;
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].name, "Train step #");
  EXPECT_EQ(ranges[0].measured, 3);
  EXPECT_DOUBLE_EQ(value(ranges[0].values, "dram_bytes"), 10);
  EXPECT_EQ(ranges[1].name, "gpt2_forward");  // the number belongs to the name
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

using counters::SampleSet;

TEST(CounterSamples, PartsOfSamplesBelongToAStep) {
  const SampleSet samples{.device_id = 1,
                          .begin_ns = {0, 100, 200},
                          .end_ns = {100, 200, 300},
                          .metrics = {"dram__bytes_read.sum", "x.avg.pct"},
                          .values = {{10, 20, 40}, {1, 2, 4}}};
  const counters::Metrics inside = counters::within(samples, 50, 250);
  EXPECT_DOUBLE_EQ(inside.at("dram__bytes_read.sum"), 5 + 20 + 20);
  EXPECT_DOUBLE_EQ(inside.at("x.avg.pct"), (50 * 1 + 100 * 2 + 50 * 4) / 200.0);
  EXPECT_DOUBLE_EQ(
      counters::within(samples, 200, 400).empty() ? 0 : counters::within(samples, 200, 400).at("dram__bytes_read.sum"),
      80);
  EXPECT_TRUE(counters::within(samples, 290, 400).empty());  // a tenth of it was sampled
}

// Samples of 500 ns over ten steps of 1000 ns (two of 2000), which read 2 bytes a ns.
TEST(CounterSamples, StagesOfASampledRun) {
  DecodeRun decode;
  for (std::int64_t at = 0; at < 120'000; at += 500) {
    const bool busy = at >= 10'000 && at % 10'000 < ((at / 10'000 == 3 || at / 10'000 == 6) ? 2000 : 1000);
    decode.run.counted({.scope = "sample",
                        .begin_ns = at,
                        .end_ns = at + 500,
                        .values = {{"dram__bytes_read.sum", busy ? 1000.0 : 0}, {"dram__bytes_write.sum", 0}}});
  }
  const Summary summary = decode.run.summary();
  const Counters& said = summary.counters;
  EXPECT_EQ(said.method, "sampled");
  EXPECT_EQ(said.samples, 240);
  EXPECT_EQ(said.windows, 0);
  EXPECT_DOUBLE_EQ(said.period_ns.value(), 500);
  ASSERT_EQ(said.stages.size(), 1U);
  EXPECT_EQ(said.stages.front().method, "sampled");
  EXPECT_EQ(said.stages.front().measured, 10);
  EXPECT_EQ(summary.stages.front().measured_steps, 0);  // nothing was slowed down
  if (said.clock_shift_ns.value_or(0) == 0) {
    EXPECT_DOUBLE_EQ(value(said.stages.front().values, "dram_read_bytes"), 2400);
  }
}

TEST(CounterStalls, ReasonsAndPlaces) {
  DecodeRun decode;
  const auto stall = [&](std::string_view kernel, std::int64_t offset, std::string_view reason, std::int64_t samples) {
    trace::StallRow row{.id = decode.run.next_id(), .device_id = kGpu, .kernel = decode.run.name(kernel)};
    row.offset_bytes = offset, row.reason = decode.run.name(reason), row.samples = samples;
    if (offset == 16) row.file = decode.run.name("gemv.cu"), row.line = 12;
    decode.run.add(row);
  };
  stall("gemv", 16, "long_scoreboard", 6000);
  stall("gemv", 16, "wait", 1000);
  stall("gemv", 32, "barrier", 1000);
  stall("gemv", 32, "selected", 1000);
  stall("<unknown code>", 0, "unknown", 1000);
  const Summary summary = decode.run.summary();
  EXPECT_EQ(summary.counters.stall_samples, 10'000);
  EXPECT_EQ(summary.counters.stall_unknown, 1000);
  ASSERT_EQ(summary.counters.stalls.size(), 1U);
  const KernelStalls& kernel = summary.counters.stalls.front();
  EXPECT_EQ(kernel.samples, 9000);
  EXPECT_DOUBLE_EQ(kernel.share, 0.9);
  EXPECT_EQ(kernel.reasons.front().reason, "long_scoreboard");
  EXPECT_DOUBLE_EQ(kernel.reasons.front().share, 6.0 / 9);
  ASSERT_EQ(kernel.places.size(), 2U);
  EXPECT_EQ(kernel.places.front().file, "gemv.cu");
  EXPECT_EQ(kernel.places.front().line, 12);
  EXPECT_EQ(kernel.places.front().reason, "long_scoreboard");
  EXPECT_DOUBLE_EQ(kernel.places.front().share, 7.0 / 9);
  const auto found = std::ranges::find(summary.diagnosis.findings, "stall_reasons", &Finding::rule);
  ASSERT_NE(found, summary.diagnosis.findings.end()) << outcome(summary.diagnosis, "stall_reasons").why;
  EXPECT_EQ(found->verdict, Verdict::kInconclusive);
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.sampled_long_scoreboard"), 6.0 / 8);  // one of nine issued
}

// Metrics by our own recordings: stalls as shares of resident warps, hits as counts.
TEST(CountedKernels, OfOurOwnRecording) {
  RuleRun run;
  run.peak("bandwidth", "read", 1e12);
  const trace::KernelRow first = run.kernel_row("scan", 10'000, 10'000, 11'000);
  const trace::KernelRow second = run.kernel_row("scan", 20'000, 20'000, 21'000);
  for (const trace::KernelRow& row : {first, second}) {
    run.add(row);
    const double more = row.id == second.id ? 2 : 0;
    run.counted({.scope = "kernel",
                 .name = "scan",
                 .begin_ns = row.begin_ns,
                 .end_ns = row.end_ns,
                 .kernel_id = row.id,
                 .values = {{"lts__t_sectors_lookup_hit.sum", 30},
                            {"lts__t_sectors_lookup_miss.sum", 10},
                            {"lts__t_bytes.sum", 1280 + more},
                            {"sm__warps_active.avg.pct_of_peak_sustained_active", 40 + more},
                            {"smsp__warps_active.sum", 200},
                            {"smsp__warps_issue_stalled_wait.sum", 50},
                            {"smsp__warps_issue_stalled_long_scoreboard.sum", 100}}});
  }
  const Summary summary = run.summary();
  ASSERT_EQ(summary.imported.counted.size(), 1U);
  const CountedKernel& kernel = summary.imported.counted.front();
  EXPECT_EQ(kernel.launches, 2);
  EXPECT_DOUBLE_EQ(kernel.l2_hits.value(), 0.75);
  EXPECT_DOUBLE_EQ(kernel.occupancy.value(), 0.41);
  EXPECT_DOUBLE_EQ(kernel.l2_bytes.value(), 2562);
  ASSERT_EQ(kernel.stalls.size(), 2U);
  EXPECT_EQ(kernel.stalls.front().reason, "long_scoreboard");
  EXPECT_TRUE(kernel.stalls_of_resident);
  EXPECT_DOUBLE_EQ(kernel.stalls.front().warps, 0.5);
  EXPECT_EQ(summary.counters.windows, 2);
}

TEST(CounterEvidence, WhatExplainsFlops) {
  using counters::explain_flops;
  EXPECT_EQ(explain_flops({.analytic = 100, .counted = 104}), "");
  // Decode of a 1.2 B model, one sequence, on an H200: 2.47 GFLOP, counted 22.5: one column as eight is 19.8.
  const std::string padded =
      explain_flops({.analytic = 2.47e9, .counted = 1.98e10, .products = 2.47e9, .padded = 8 * 2.47e9, .tile = "64x8"});
  EXPECT_NE(padded.find("whole tiles of 64x8"), padded.npos) << padded;
  const std::string partly =
      explain_flops({.analytic = 2.47e9, .counted = 2.25e10, .products = 2.47e9, .padded = 8 * 2.47e9, .tile = "64x8"});
  EXPECT_NE(partly.find("the rest is not explained"), partly.npos) << partly;
  const std::string full = explain_flops({.analytic = 100, .counted = 120, .attention = 20});
  EXPECT_NE(full.find("causal half"), full.npos) << full;
  const std::string plain = explain_flops(
      {.analytic = 100, .counted = 40, .products = 100, .padded = 100, .plain_products = 60, .tensor_only = true});
  EXPECT_NE(plain.find("plain cores"), plain.npos) << plain;
  EXPECT_TRUE(explain_flops({.analytic = 100, .counted = 300}).starts_with("not explained"));
}

TEST(CounterEvidence, WhatExplainsBytes) {
  using counters::explain_bytes;
  EXPECT_EQ(explain_bytes({.analytic = 2.47e9, .counted = 2.497e9}), "");
  EXPECT_NE(explain_bytes({.analytic = 100, .counted = 60, .cache_bytes = 50}).find("fits the L2 cache"),
            std::string::npos);
  EXPECT_TRUE(explain_bytes({.analytic = 100, .counted = 40, .cache_bytes = 50}).starts_with("not explained"));
  // 20 bytes of cache for 100 tokens, read for 400: 60 more.
  const std::string kv =
      explain_bytes({.analytic = 100, .counted = 160, .weights = 80, .kv = 20, .context = 100, .largest_context = 400});
  EXPECT_NE(kv.find("400 tokens, not as used, 100"), kv.npos) << kv;
  const std::string type = explain_bytes({.analytic = 100, .counted = 180, .weights = 80, .type_ratio = 2});
  EXPECT_NE(type.find("2 times the bytes"), type.npos) << type;
  EXPECT_TRUE(explain_bytes({.analytic = 100, .counted = 300, .weights = 80}).starts_with("not explained"));
}

Summary counted_decode(double redundancy) {
  Summary summary;
  summary.on_gpu = true;
  summary.peak_bandwidth = 1e12;
  summary.stages.push_back({.name = "decode", .steps = 4, .time_ns = 8'000});
  CountedStage counted{.stage = "decode", .steps = 4, .measured = 2, .method = "range"};
  counted.work.dram_bytes = 1'000'000, counted.work.bound = "memory";
  counted.redundancy = redundancy;
  counted.values.push_back({.counter = "l2_hit_pct", .unit = "%", .denominator = "sectors looked up", .value = 25});
  summary.counters.stages.push_back(std::move(counted));
  return summary;
}

TEST(RedundantTraffic, BytesInVain) {
  const Summary summary = counted_decode(2);
  const Facts facts;
  const RuleResult said = find_rule("redundant_traffic")->check({summary, facts});
  ASSERT_EQ(said.findings.size(), 1U) << said.why;
  // 500 kB of a step in vain take 500 ns at 1 TB/s: 2000 ns in four steps.
  EXPECT_DOUBLE_EQ(said.findings.front().gain->ns, 2000);
  EXPECT_DOUBLE_EQ(evidence(said.findings.front(), "decode.must_move_per_step"), 500'000);
  const Summary lean = counted_decode(1.1);
  EXPECT_TRUE(find_rule("redundant_traffic")->check({lean, facts}).findings.empty());
  const Summary plain;
  EXPECT_FALSE(find_rule("redundant_traffic")->check({plain, facts}).applicable);
}

TEST(CountedMeasures, OnlyOfStagesThatWereCounted) {
  const std::vector<Measure> all = measures(counted_decode(2));
  EXPECT_DOUBLE_EQ(find_measure(all, "decode.dram_bytes_per_step")->value.value(), 1e6);
  EXPECT_DOUBLE_EQ(find_measure(all, "decode.redundancy")->value.value(), 2);
  EXPECT_DOUBLE_EQ(find_measure(all, "decode.l2_hits")->value.value(), 0.25);
  EXPECT_EQ(find_measure(all, "decode.l2_hits")->of, "sectors looked up");
  EXPECT_FALSE(find_measure(all, "decode.hfu")->why.empty());
  Summary plain;
  plain.stages.push_back({.name = "decode"});
  EXPECT_EQ(find_measure(measures(plain), "decode.hfu"), nullptr);
  EXPECT_NE(find_measure_kind("decode.hfu"), nullptr);
}

}  // namespace
}  // namespace llmprof::analyze
