#include "analyze/passes/step_time.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "analyze/names/grammar.h"

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kCpu = 1, kGpu = 2;
const std::unordered_map<std::int64_t, std::int64_t> kProcesses = {{1, 1}, {2, 1}, {3, 2}};

struct RangeSpec {
  std::string category, name;
  std::int64_t begin = 0, end = 0, thread = 1, batch = 1;
  std::int64_t device_end = 0;  // of a step whose device works on after the host has left it
};

struct KernelSpec {
  std::int64_t begin = 0, end = 0;
  std::string op;         // "" unknown
  std::int64_t step = 0;  // id, 0 none
  std::int64_t thread = 1, device = kGpu, launch = kNull;
};

struct Timeline {
  std::vector<RangeSpec> ranges;
  std::vector<KernelSpec> kernels;                                                  // by begin
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> copies, waits;  // thread, begin, end; by begin
  bool cpu = false;
};

// (step, owner, op) -> (time, after); after is -1 where the step begins no sample.
using Times = std::map<std::tuple<std::int64_t, std::string, std::string>, std::pair<std::int64_t, std::int64_t>>;

Ranges ranges_of(const Timeline& timeline) {
  Ranges ranges;
  ranges.texts = {"", "llmprof"};
  const auto code = [&](const std::string& text) {
    ranges.texts.push_back(text);
    return static_cast<std::int64_t>(ranges.texts.size() - 1);
  };
  for (const RangeSpec& spec : timeline.ranges) {
    ranges.id.push_back(static_cast<std::int64_t>(ranges.id.size()) + 1);
    ranges.begin_ns.push_back(spec.begin);
    ranges.end_ns.push_back(spec.end);
    ranges.thread_id.push_back(spec.thread);
    ranges.process_id.push_back(kProcesses.at(spec.thread));
    ranges.depth.push_back(0);
    ranges.name.push_back(code(spec.name));
    ranges.domain.push_back(1);
    ranges.category.push_back(code(spec.category));
    ranges.payload.push_back(spec.batch | 1 << 16);
  }
  sort_for_sweep(ranges);
  return ranges;
}

void work_on(const Timeline& timeline, std::vector<Step>& steps) {
  for (Step& step : steps) {
    for (const RangeSpec& spec : timeline.ranges) {
      if (spec.device_end == 0 || spec.begin != step.begin_ns || spec.thread != step.thread_id) continue;
      step.host_end_ns = step.end_ns;
      step.end_ns = spec.device_end;
    }
  }
  set_turns(steps);
}

// With the facts handed over in slices that end at `cuts`.
Times times_of(const Timeline& timeline, std::vector<std::int64_t> cuts = {}) {
  trace::Strings strings;
  const Ranges ranges = ranges_of(timeline);
  Classified classified = classify(ranges, {}, strings);
  work_on(timeline, classified.steps);
  Times out;
  StepTimes times(ranges, classified, kProcesses, {{kCpu}, timeline.cpu}, strings, [&](const trace::StepTimeRow& row) {
    const bool fresh = out.emplace(std::tuple{row.step_id, std::string(strings.text(row.owner)),
                                              std::string(row.op.id == 0 ? "" : strings.text(row.op))},
                                   std::pair{row.time_ns, row.after_ns.value_or(-1)})
                           .second;
    EXPECT_TRUE(fresh) << "two rows of one step, owner and operator";
  });
  cuts.push_back(INT64_MAX);
  std::int64_t from = INT64_MIN;
  for (const std::int64_t cut : cuts) {
    const auto inside = [&](std::int64_t begin) { return begin >= from && begin < cut; };
    Kernels kernels;
    std::vector<trace::AttributionRow> rows;
    for (const KernelSpec& kernel : timeline.kernels) {
      if (!inside(kernel.begin)) continue;
      kernels.id.push_back(static_cast<std::int64_t>(kernels.id.size()));
      kernels.begin_ns.push_back(kernel.begin);
      kernels.end_ns.push_back(kernel.end);
      kernels.thread_id.push_back(kernel.thread);
      kernels.launch_begin_ns.push_back(kernel.launch);
      kernels.device_id.push_back(kernel.device);
      trace::AttributionRow row;
      if (kernel.step != 0) row.step_id = kernel.step;
      if (!kernel.op.empty()) row.op = strings.intern(kernel.op);
      rows.push_back(row);
    }
    times.add_kernels(kernels, rows);
    for (const auto& [thread, begin, end] : timeline.copies) {
      if (inside(begin)) times.add_copy(thread, {begin, end});
    }
    for (const auto& [thread, begin, end] : timeline.waits) {
      if (inside(begin)) times.add_wait(thread, {begin, end});
    }
    times.advance(cut);
    from = cut;
  }
  return out;
}

TEST(StepTimes, KernelsThenCopiesThenWaitsThenGaps) {
  // A step of 100 ns on a GPU.
  //   0    10        40   50        70   80   90  100
  //   |    [ kernel   )                             |   10…40: 30 ns
  //   |            [ copy )                         |   30…50: the kernel keeps 30…40, the copy has 40…50
  //   |          [ wait               )             |   25…80: 50…80 is left of it
  //   gap 0…10 and 80…100.
  const Times times = times_of({.ranges = {{"step", "prefill", 0, 100}},
                                .kernels = {{10, 40, "mlp.up_proj", 1}},
                                .copies = {{1, 30, 50}},
                                .waits = {{1, 25, 80}}});
  EXPECT_EQ(times, (Times{{{1, "kernel", "mlp.up_proj"}, {30, -1}},
                          {{1, "copy", ""}, {10, -1}},
                          {{1, "wait", ""}, {30, -1}},
                          {{1, "gap", ""}, {30, -1}}}));
}

TEST(StepTimes, IdleIsQueuedOnceWorkWasLaunched) {
  // Launched at 20, executed 50…70: 0…20 nothing was launched, 20…50 it was. The wait 10…60 owns only what is before
  // the launch; after the kernel the device idles again.
  KernelSpec kernel{50, 70, "a", 1};
  kernel.launch = 20;
  const Times times = times_of({.ranges = {{"step", "prefill", 0, 100}}, .kernels = {kernel}, .waits = {{1, 10, 60}}});
  EXPECT_EQ(times, (Times{{{1, "kernel", "a"}, {20, -1}},
                          {{1, "queued", ""}, {30, -1}},
                          {{1, "wait", ""}, {10, -1}},
                          {{1, "gap", ""}, {40, -1}}}));
}

// A launch of 100 ns, half of it in the step: what its nodes own is divided in the same proportion, to the nanosecond.
TEST(StepTimes, AGraphLaunchIsDividedByItsMix) {
  trace::Strings strings;
  const Ranges ranges = ranges_of({.ranges = {{"step", "prefill", 0, 100}}});
  const Classified classified = classify(ranges, {}, strings);
  std::map<std::pair<std::string, std::string>, std::int64_t> out;
  StepTimes times(ranges, classified, kProcesses, {{kCpu}, false}, strings, [&](const trace::StepTimeRow& row) {
    out[{std::string(strings.text(row.owner)), std::string(row.op.id == 0 ? "" : strings.text(row.op))}] = row.time_ns;
  });
  GraphLaunches launches{.id = {1}, .begin_ns = {50}, .end_ns = {150}, .thread_id = {1}, .launch_begin_ns = {40}};
  launches.device_id = {kGpu};
  launches.graph = {7};
  launches.nodes_recorded = {0};
  trace::LaunchPlaceRow place{.graph_launch_id = 1};
  place.step_id = 1;
  const std::unordered_map<std::int64_t, Mix> mixes{{7,
                                                     {{NodeKind::kKernel, strings.intern("up"), 0.33},
                                                      {NodeKind::kKernel, strings.intern("down"), 0.33},
                                                      {NodeKind::kCopy, {}, 0.14},
                                                      {NodeKind::kOther, {}, 0.2}}}};
  times.add_work({}, {}, launches, {place}, mixes);
  times.finish();
  // 50 ns: up 16.5 -> 17, down to 33, copy to 40, the rest queued; before it 10 queued and 40 nothing.
  EXPECT_EQ(out, (std::map<std::pair<std::string, std::string>, std::int64_t>{{{"kernel", "up"}, 17},
                                                                              {{"kernel", "down"}, 16},
                                                                              {{"copy", ""}, 7},
                                                                              {{"queued", ""}, 20},
                                                                              {{"gap", ""}, 40}}));
}

TEST(StepTimes, OfOverlappingKernelsTheFirstBegunOwnsTheTime) {
  // a 10…40, b 20…60 (20 ns left: 40…60), c 30…35 (nothing left), d 80…120, cut at the end of the step.
  const Times times = times_of({.ranges = {{"step", "prefill", 0, 100}},
                                .kernels = {{10, 40, "a", 1}, {20, 60, "b", 1}, {30, 35, "c", 1}, {80, 120, "d", 1}}});
  EXPECT_EQ(times, (Times{{{1, "kernel", "a"}, {30, -1}},
                          {{1, "kernel", "b"}, {20, -1}},
                          {{1, "kernel", "d"}, {20, -1}},
                          {{1, "gap", ""}, {30, -1}}}));
}

TEST(StepTimes, ATpotSampleReachesToTheNextDecodeStep) {
  // Steps 0…50 and 80…130 of the same batch: the first makes a sample of 80 ns. Its kernel goes on until 60, so of the
  // 30 ns between the steps 10 are the kernel's. Nothing follows the second.
  const Times times =
      times_of({.ranges = {{"step", "decode", 0, 50}, {"step", "decode", 80, 130}}, .kernels = {{40, 60, "a", 1}}});
  EXPECT_EQ(times, (Times{{{1, "kernel", "a"}, {10, 10}},
                          {{1, "gap", ""}, {40, 0}},
                          {{1, "between", ""}, {0, 20}},
                          {{2, "gap", ""}, {50, -1}}}));
}

TEST(StepTimes, WhereTheHostRunsAheadAStepWaitsForItsTurn) {
  // The host launches three steps within 30 ns; the device takes 100, 90 and 110 ns for them, one after the other.
  // Their turns come at 0, 100 and 190: the two samples are 100 and 90 ns, not 10.
  const Timeline timeline{.ranges = {{"step", "decode", 0, 10, 1, 1, 100},
                                     {"step", "decode", 10, 20, 1, 1, 190},
                                     {"step", "decode", 20, 30, 1, 1, 300}},
                          .kernels = {{.begin = 5, .end = 100, .step = 1, .launch = 2},
                                      {.begin = 100, .end = 190, .step = 2, .launch = 12},
                                      {.begin = 190, .end = 300, .step = 3, .launch = 22}}};
  const Times expected = {{{1, "gap", ""}, {2, 0}},
                          {{1, "queued", ""}, {3, 0}},
                          {{1, "kernel", ""}, {95, 0}},
                          {{2, "kernel", ""}, {90, 0}},
                          {{3, "kernel", ""}, {110, -1}}};
  EXPECT_EQ(times_of(timeline), expected);
  EXPECT_EQ(times_of(timeline, {7, 100, 150, 250}), expected);
}

TEST(StepTimes, APrefillIsWaitedForFromItsBegin) {
  // Asked for at 20, while the device works on for a decode step until 100: it lasts from 20 to 150.
  const Timeline timeline{.ranges = {{"step", "decode", 0, 10, 1, 1, 100}, {"step", "prefill", 20, 30, 1, 1, 150}},
                          .kernels = {{.begin = 0, .end = 100, .step = 1}, {.begin = 100, .end = 150, .step = 2}}};
  const Times expected = {{{1, "kernel", ""}, {100, -1}}, {{2, "kernel", ""}, {130, -1}}};
  EXPECT_EQ(times_of(timeline), expected);
}

TEST(StepTimes, AnotherBatchAnotherStageAndAnotherThreadMakeNoSample) {
  for (const RangeSpec& next : {RangeSpec{"step", "decode", 80, 130, 1, 2}, RangeSpec{"step", "prefill", 80, 130},
                                RangeSpec{"step", "decode", 80, 130, 2}}) {
    const Times times = times_of({.ranges = {{"step", "decode", 0, 50}, next}});
    EXPECT_EQ(times, (Times{{{1, "gap", ""}, {50, -1}}, {{2, "gap", ""}, {50, -1}}}));
  }
}

TEST(StepTimes, OnACpuCodeInsideModulesIsWorkOfTheModel) {
  // q_proj 10…40 with a BLAS call 15…30: 15 ns are its own loops. norm 40…50 has no call at all. The rest is a gap.
  const std::vector<RangeSpec> ranges = {{"step", "decode", 0, 100},
                                         {"module", "layers.0.self_attn.q_proj", 10, 40},
                                         {"module", "layers.0.input_layernorm", 40, 50}};
  const std::vector<KernelSpec> kernels = {{15, 30, "self_attn.q_proj", 1, 1, kCpu}};
  EXPECT_EQ(times_of({.ranges = ranges, .kernels = kernels, .cpu = true}),
            (Times{{{1, "kernel", "self_attn.q_proj"}, {15, -1}},
                   {{1, "host", "self_attn.q_proj"}, {15, -1}},
                   {{1, "host", "input_layernorm"}, {10, -1}},
                   {{1, "gap", ""}, {60, -1}}}));
  // The same with a GPU as the busiest device: while it idles, the host only launches.
  EXPECT_EQ(times_of({.ranges = ranges, .kernels = kernels}),
            (Times{{{1, "kernel", "self_attn.q_proj"}, {15, -1}}, {{1, "gap", ""}, {85, -1}}}));
}

TEST(StepTimes, OtherKernelsOfTheProcessAreNotIdleTime) {
  // On a GPU, of the same process and no step: 20…50, of which 30…50 are left by the step's own kernel. On a CPU
  // (60…70) and of another process (80…90, thread 3) they take nothing away.
  const Times times =
      times_of({.ranges = {{"step", "prefill", 0, 100}},
                .kernels = {{10, 30, "a", 1}, {20, 50, "", 0, 2}, {60, 70, "", 0, 2, kCpu}, {80, 90, "", 0, 3}}});
  EXPECT_EQ(times,
            (Times{{{1, "kernel", "a"}, {20, -1}}, {{1, "other_kernel", ""}, {20, -1}}, {{1, "gap", ""}, {60, -1}}}));
}

TEST(StepTimes, EveryNanosecondHasOneOwnerAndSlicesDoNotMatter) {
  std::mt19937 random(7);
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Timeline timeline{.cpu = round % 2 == 0};
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> expected;  // step -> duration, time to the next or -1
    std::int64_t at = 0, last_batch = 0;
    const std::int64_t steps = pick(1, 6);
    for (std::int64_t step = 1; step <= steps; ++step) {
      const std::int64_t begin = at + pick(0, 20), end = begin + pick(1, 60), batch = pick(1, 2);
      timeline.ranges.push_back({"step", "decode", begin, end, 1, batch});
      if (end - begin > 4) timeline.ranges.push_back({"module", "layers.0.mlp", begin + 1, end - 2});
      expected[step] = {end - begin, -1};
      if (step > 1 && batch == last_batch) expected[step - 1].second = begin - at;
      last_batch = batch;
      at = end;
    }
    for (std::int64_t begin = pick(-20, 20); begin < at; begin += pick(0, 30))
      timeline.kernels.push_back({begin, begin + pick(0, 40), pick(0, 3) == 0 ? "" : "mlp", pick(0, steps), pick(1, 2),
                                  pick(0, 1) == 0 ? kCpu : kGpu});
    for (std::int64_t begin = pick(0, 20); begin < at; begin += pick(1, 40)) {
      timeline.copies.emplace_back(1, begin, begin + pick(0, 20));
      timeline.waits.emplace_back(1, begin, begin + pick(0, 30));
    }
    const Times whole = times_of(timeline);
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> sums;
    for (const auto& [key, times] : whole) {
      auto& [time, after] = sums.try_emplace(std::get<0>(key), 0, times.second < 0 ? -1 : 0).first->second;
      time += times.first;
      EXPECT_GE(times.first, 0);
      if (times.second > 0) after += times.second;
    }
    ASSERT_EQ(sums, expected) << round;
    std::vector<std::int64_t> cuts;
    for (std::int64_t cut = pick(-10, 10); cut < at; cut += pick(1, 25)) cuts.push_back(cut);
    ASSERT_EQ(times_of(timeline, cuts), whole) << round;
  }
}

}  // namespace
}  // namespace llmprof::analyze
