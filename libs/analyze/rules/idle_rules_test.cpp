// Rules about idle time, waits and copies: on small runs, each with one that must not trigger it.

#include <gmock/gmock.h>

#include "analyze/rules/testing/rule_run.h"
#include "analyze/rules/tools.h"

namespace llmprof::analyze {
namespace {

struct Loop {
  std::int64_t kernels = 4;  // per step
  std::int64_t kernel_ns = 100;
  std::int64_t every_ns = 1000;  // launches
  bool waits_recorded = true, waits = false;
  std::int64_t copy_bytes = 0;
  const char* memory = "pageable";
  std::int64_t pinned_bytes = 0;  // in the first step, at 2 B/ns
  std::int64_t pause_ns = 0;      // between steps
  const char* kernel = "work";
};

// Ten decode steps; in each, kernels are launched every `every_ns` and begin 10 ns later, unless the device is still
// busy.
Diagnosis looped(const Loop& loop) {
  RuleRun run(10'000'000);
  std::int64_t now = 1000, device = 0;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t begin = now;
    for (std::int64_t k = 0; k < loop.kernels; ++k) {
      const std::int64_t at = std::max(now + 10, device);
      run.kernel(loop.kernel, now, at, at + loop.kernel_ns);
      device = at + loop.kernel_ns;
      now += loop.every_ns;
    }
    if (loop.copy_bytes > 0) {  // at 1 B/ns
      const std::int64_t at = std::max(now, device);
      run.copy("host_to_device", now, at, at + loop.copy_bytes, loop.copy_bytes, loop.memory);
      device = at + loop.copy_bytes;
      now = device;
    }
    if (loop.pinned_bytes > 0 && i == 0) {
      run.copy("host_to_device", now, device, device + loop.pinned_bytes / 2, loop.pinned_bytes, "pinned");
      device += loop.pinned_bytes / 2;
      now = device;
    }
    if (loop.waits) {
      trace::ApiRow row{.id = run.next_id(),
                        .begin_ns = now,
                        .end_ns = std::max(now + 1, device),
                        .name = run.name("cuStreamSynchronize"),
                        .thread_id = 1};
      row.waits = true;
      run.add(row);
      now = row.end_ns;
    }
    run.step("decode", begin, now, {1, 1, 8});
    now += loop.pause_ns;
  }
  if (loop.waits_recorded && !loop.waits)
    run.add(trace::ApiRow{.id = run.next_id(), .begin_ns = 1, .end_ns = 2, .name = run.name("cuInit"), .thread_id = 1});
  return run.diagnosis();
}

TEST(IdleRules, WhichRunTriggersWhichRule) {
  struct Row {
    const char* what;
    Loop loop;
    const char *launch_bound, *host_sync, *pageable_copies, *idle_gaps;
  };
  const Row rows[] = {
      {"launches come late", {}, "found", "not found", "not found", "not found"},
      {"the device has work all the time", {.kernel_ns = 2000}, "not found", "not found", "not found", "not found"},
      {"the host waits in every step",
       {.kernel_ns = 2000, .waits = true},
       "not found",
       "found",
       "not found",
       "not found"},
      {"waits were not recorded, and the device idles",
       {.waits_recorded = false},
       "found",
       "inconclusive",
       "not found",
       "not found"},
      {"pageable copies", {.kernel_ns = 2000, .copy_bytes = 4000}, "not found", "not found", "found", "not found"},
      {"pinned copies",
       {.kernel_ns = 2000, .copy_bytes = 4000, .memory = "pinned"},
       "not found",
       "not found",
       "not found",
       "not found"},
      {"pauses between steps", {.kernel_ns = 2000, .pause_ns = 9000}, "not found", "not found", "not found", "found"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const Diagnosis said = looped(row.loop);
    EXPECT_EQ(outcome(said, "launch_bound").outcome, row.launch_bound) << outcome(said, "launch_bound").why;
    EXPECT_EQ(outcome(said, "host_sync").outcome, row.host_sync) << outcome(said, "host_sync").why;
    EXPECT_EQ(outcome(said, "pageable_copies").outcome, row.pageable_copies) << outcome(said, "pageable_copies").why;
    EXPECT_EQ(outcome(said, "idle_gaps").outcome, row.idle_gaps) << outcome(said, "idle_gaps").why;
  }
}

TEST(LaunchBound, GainIsTheIdleTime) {
  const Diagnosis said = looped({});
  const Finding* found = find(said, "launch_bound");
  ASSERT_NE(found, nullptr);
  // Steps of 4000 ns with four kernels of 100 ns: 3600 ns of each idle, 90 %.
  EXPECT_NEAR(found->gain->ns / found->gain->of_ns, 0.9, 0.001);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.launches_per_step"), 4);
  EXPECT_EQ(found->lever, "a CUDA graph");
}

// Ten steps of 1000 ns on a GPU, 100 ns of each with a kernel in an operator `mlp`; before it the host is in
// `self_attn`, where stacks show a compiler in `compiling` steps and the interpreter in the others.
Summary sampled(int compiling) {
  RuleRun run(100'000);
  run.add(trace::FrameRow{.id = 1,
                          .kind = run.name("native"),
                          .function = run.name("nvrtcCompileProgram"),
                          .file = run.name("libnvrtc.so")});
  run.add(trace::FrameRow{
      .id = 2, .kind = run.name("python"), .function = run.name("forward"), .file = run.name("model.py")});
  run.add(trace::StackRow{.stack_id = 1, .depth = 0, .frame_id = 1});
  run.add(trace::StackRow{.stack_id = 1, .depth = 1, .frame_id = 2});
  run.add(trace::StackRow{.stack_id = 2, .depth = 0, .frame_id = 2});
  for (int i = 0; i < 10; ++i) {
    const std::int64_t begin = 1000 * (i + 1);
    run.step("decode", begin, begin + 1000, {1, 1, 8});
    run.range("module", "layers.0.self_attn", begin + 100, begin + 800);
    run.range("module", "layers.0.mlp", begin + 800, begin + 1000);
    run.kernel("work", begin + 890, begin + 900, begin + 1000);
    for (const std::int64_t at : {300, 950}) {  // while the device idles, and while it works
      trace::SampleRow row{.id = run.next_id(), .ts_ns = begin + at, .thread_id = 1, .weight_ns = 700};
      row.stack_id = i < compiling ? 1 : 2;
      run.add(row);
    }
  }
  return run.summary();
}

TEST(IdleTime, SaysWhereTheHostWasAndWhatItDid) {
  const Summary summary = sampled(6);
  const StageIdle* idle = find_idle(summary.idle, "decode");
  ASSERT_NE(idle, nullptr);
  EXPECT_EQ(idle->gap_ns, 10 * 890);  // up to the launch, which is queued for 10 ns
  ASSERT_EQ(idle->places.size(), 3u);
  EXPECT_EQ(idle->places[0].name, "self_attn");
  EXPECT_EQ(idle->places[0].time_ns, 10 * 700);
  EXPECT_EQ(idle->places[1].name, "decode");  // before the module
  EXPECT_EQ(idle->places[2].name, "mlp");
  EXPECT_EQ(idle->samples, 10) << "samples while the device works do not count";
  EXPECT_EQ(idle->cpu_ns(Work::kCompiling), 6 * 700);
  EXPECT_EQ(idle->cpu_ns(Work::kPython), 4 * 700);
}

// Samples stand for 10 ms each, idle times are shorter: shares of what was sampled, which never exceed it.
TEST(IdleTime, SamplesThatAddUpToMoreAreSharesOfThemselves) {
  Summary summary;
  summary.stages.push_back({.name = "decode", .steps = 10, .time_ns = 1000});
  StageIdle idle{.stage = "decode", .gap_ns = 100};
  idle.works = {{.work = Work::kFramework, .samples = 9, .cpu_ns = 90},
                {.work = Work::kCollecting, .samples = 6, .cpu_ns = 60}};
  idle.samples = 15;
  summary.idle.push_back(idle);
  Finding finding{.stage = "decode"};
  add_idle_causes(summary, finding);
  const std::vector<Evidence>& evidence = finding.evidence;
  ASSERT_EQ(evidence.size(), 2u);
  EXPECT_DOUBLE_EQ(evidence[0].value.value(), 0.6);
  EXPECT_DOUBLE_EQ(evidence[1].value.value(), 0.4);
  EXPECT_EQ(evidence[0].of, "150 ns of CPU time sampled then");
  EXPECT_DOUBLE_EQ(other_work_share(summary, "decode"), 0.4);
}

TEST(CompileInLoop, IsFoundAndNotTakenForLaunching) {
  const Summary summary = sampled(6);
  const Finding* found = find(summary.diagnosis, "compile_in_loop");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(found->gain->ns, 6 * 700);
  EXPECT_THAT(found->title, testing::HasSubstr("nvrtc"));
  const Finding* launches = find(summary.diagnosis, "launch_bound");
  ASSERT_NE(launches, nullptr);
  EXPECT_NEAR(launches->gain->ns, 10 * 900 - 6 * 700, 1);
  EXPECT_GT(evidence(*launches, "decode.idle_in.self_attn"), 0.7);
  expect_nothing(sampled(0).diagnosis, "compile_in_loop");
  EXPECT_NEAR(find(sampled(0).diagnosis, "launch_bound")->gain->ns, 10 * 900, 1);
}

TEST(Rules, AdviseAboutPyTorchOnlyWhereItIsUsed) {
  const auto advice = [](const Diagnosis& said) {
    std::string out;
    for (const Finding& finding : said.findings) {
      for (const std::string& each : finding.advice) out += each + "\n";
    }
    return out;
  };
  EXPECT_THAT(advice(looped({})), testing::Not(testing::HasSubstr("torch")));  // a program of its own
  EXPECT_THAT(advice(looped({.kernel = "void at::native::vectorized_elementwise_kernel<4>()"})),
              testing::HasSubstr("a CUDA graph (torch.compile"));
}

TEST(PageableCopies, AtTheRateOfTheRunsOwnPinnedCopies) {
  const Diagnosis said = looped({.kernel_ns = 2000, .copy_bytes = 1'000'000, .pinned_bytes = 2'000'000});
  const Finding* found = find(said, "pageable_copies");
  ASSERT_NE(found, nullptr);
  // 1 B/ns against 2 B/ns: half of the time in which only the copy executes. The waterfall's copies also hold the
  // pinned one, 1 ms in one of the ten steps; the time of the pageable ones, 10 x 1 ms, is less.
  EXPECT_NEAR(found->gain->ns, 10 * 1e6 / 2, 0.06 * 10e6);
  EXPECT_FALSE(found->gain->upper_bound);
  EXPECT_DOUBLE_EQ(evidence(*found, "run.pinned_rate"), 2e9);
  const Diagnosis unknown = looped({.kernel_ns = 2000, .copy_bytes = 4000});
  EXPECT_TRUE(find(unknown, "pageable_copies")->gain->upper_bound);
}

TEST(Headline, LaunchesFirst) {
  EXPECT_THAT(looped({}).headline, testing::HasSubstr("a CUDA graph would save up to 90 %"));
}

}  // namespace
}  // namespace llmprof::analyze
