// Rules about loading, clocks and memory, on runs written by hand.

#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Loading {
  std::int64_t time_ns = 0, cpu_ns = 0, copy_ns = 0, read_bytes = 0;
};

// Loading from 1 s on, copies of 3 GB in three pieces (the first at 10 GB/s), a step at the end.
Diagnosis loaded(const Loading& load) {
  const std::int64_t begin = kSecond, end = kSecond + load.time_ns;
  RuleRun run(end + 2 * kSecond);
  run.range("stage", "load", begin, end);
  run.usage(begin, kSecond, 5'000'000);
  run.usage(end, kSecond + load.cpu_ns, 5'000'000 + load.read_bytes);
  const std::int64_t first = std::min(load.copy_ns, kSecond / 10);
  run.copy("host_to_device", begin, begin, begin + first, kSecond, "pageable");
  run.copy("host_to_device", begin, begin + kSecond / 2, begin + kSecond / 2 + load.copy_ns - first, 2 * kSecond,
           "pageable");
  run.step("decode", end + kSecond, end + 2 * kSecond, {1, 1, 8});
  run.kernel("nvjet_a", end + kSecond, end + kSecond, end + 2 * kSecond);
  return run.diagnosis();
}

TEST(LoadTime, TheCpuHoldsItBack) {
  const Diagnosis said = loaded({.time_ns = 10 * kSecond, .cpu_ns = 8 * kSecond, .copy_ns = kSecond, .read_bytes = 0});
  const Finding* found = find(said, "load_time");
  ASSERT_NE(found, nullptr) << outcome(said, "load_time").why;
  // 10 s: 1 s of copies, 8 s on the CPU, 1 s of neither.
  EXPECT_EQ(found->part, "CPU");
  EXPECT_DOUBLE_EQ(found->gain->ns, 8e9);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 10e9);
  EXPECT_DOUBLE_EQ(evidence(*found, "load.waiting"), 1);
  EXPECT_EQ(found->severity, Severity::kHigh);
}

TEST(LoadTime, CopiesHoldItBack) {
  const Diagnosis said =
      loaded({.time_ns = 5 * kSecond, .cpu_ns = kSecond / 2, .copy_ns = 4 * kSecond, .read_bytes = 0});
  const Finding* found = find(said, "load_time");
  ASSERT_NE(found, nullptr) << outcome(said, "load_time").why;
  // 3 GB in 4 s; at the 10 GB/s of the first copy 0.3 s.
  EXPECT_EQ(found->part, "copies");
  EXPECT_DOUBLE_EQ(found->gain->ns, 3.7e9);
  EXPECT_FALSE(found->gain->upper_bound);
}

TEST(LoadTime, TheDiskHoldsItBackOrNobodyKnows) {
  const Diagnosis said =
      loaded({.time_ns = 10 * kSecond, .cpu_ns = 2 * kSecond, .copy_ns = kSecond, .read_bytes = 3 * kSecond});
  const Finding* found = find(said, "load_time");
  ASSERT_NE(found, nullptr) << outcome(said, "load_time").why;
  EXPECT_EQ(found->part, "waiting");
  EXPECT_DOUBLE_EQ(found->gain->ns, 7e9);  // 10 - 2 - 1
  EXPECT_DOUBLE_EQ(evidence(*found, "load.read_bytes"), 3e9);
  const Diagnosis thin = loaded({.time_ns = 10 * kSecond, .cpu_ns = 2 * kSecond, .copy_ns = kSecond, .read_bytes = 0});
  ASSERT_NE(find(thin, "load_time"), nullptr);
  EXPECT_EQ(find(thin, "load_time")->verdict, Verdict::kInconclusive);
  EXPECT_FALSE(find(thin, "load_time")->next.empty());
}

// No stage load: 3 s pass before the first step, and 200 MB are copied in them, or nothing.
TEST(LoadTime, WithoutAStageTheCopiesTell) {
  for (const bool copies : {true, false}) {
    RuleRun run(5 * kSecond);
    run.usage(0, 0, 0);
    run.usage(3 * kSecond, 2 * kSecond, 0);
    if (copies) run.copy("host_to_device", kSecond, kSecond, kSecond + kSecond / 10, 200'000'000);
    run.step("decode", 3 * kSecond, 5 * kSecond, {1, 1, 8});
    run.kernel("nvjet_a", 3 * kSecond, 3 * kSecond, 5 * kSecond);
    const Diagnosis said = run.diagnosis();
    if (!copies) {
      expect_nothing(said, "load_time");
      continue;
    }
    ASSERT_NE(find(said, "load_time"), nullptr) << outcome(said, "load_time").why;
    EXPECT_EQ(find(said, "load_time")->stage, "");
    EXPECT_DOUBLE_EQ(find(said, "load_time")->gain->ns, 2e9);
  }
}

TEST(LoadTime, WithoutCpuTimesItIsInconclusive) {
  RuleRun run(5 * kSecond);
  run.range("stage", "load", kSecond, 4 * kSecond);
  run.step("decode", 4 * kSecond, 5 * kSecond, {1, 1, 8});
  run.kernel("nvjet_a", 4 * kSecond, 4 * kSecond, 5 * kSecond);
  const Diagnosis said = run.diagnosis();
  ASSERT_NE(find(said, "load_time"), nullptr) << outcome(said, "load_time").why;
  EXPECT_EQ(find(said, "load_time")->verdict, Verdict::kInconclusive);
  EXPECT_FALSE(find(said, "load_time")->next.empty());
}

TEST(LoadTime, AShortLoadIsNone) {
  expect_nothing(loaded({.time_ns = kSecond / 10 * 9, .cpu_ns = kSecond / 2, .copy_ns = kSecond / 10, .read_bytes = 0}),
                 "load_time");
}

// One decode step of 10 s with a reading every second; the first `slow` of ten at 1000 of 2000 MHz, held by power.
Diagnosis clocked(int slow) {
  RuleRun run(20 * kSecond);
  run.step("decode", kSecond, 11 * kSecond, {1, 1, 8});
  run.kernel("nvjet_a", kSecond, kSecond, 11 * kSecond);
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = kSecond + i * kSecond + kSecond / 2;
    run.reading(at, "sm_clock_mhz", i < slow ? 1000 : 2000);
    run.reading(at, "clock_limits", i < slow ? 4 : 0);
  }
  return run.diagnosis();
}

TEST(ThrottledClocks, ANoteThatTimesAreThoseOfASlowerDevice) {
  const Diagnosis said = clocked(4);
  const Finding* found = find(said, "throttled_clocks");
  ASSERT_NE(found, nullptr) << outcome(said, "throttled_clocks").why;
  EXPECT_EQ(found->severity, Severity::kNote);
  EXPECT_FALSE(found->gain.has_value());
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.slow_share"), 0.4);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.sm_clock"), 1.6e9);  // (4 x 1000 + 6 x 2000) / 10 MHz
  EXPECT_NE(found->text.find("power limit in 40.0 %"), std::string::npos) << found->text;
}

TEST(ThrottledClocks, FullClocksAreNone) { expect_nothing(clocked(0), "throttled_clocks"); }

// By hand: 6 s busy and bound by arithmetic at 1500 of 2000 MHz would take 4.5 s.
TEST(ThrottledClocks, HowMuchFasterAtFullClock) {
  Summary summary;
  Stage prefill{.name = "prefill"};
  prefill.time_ns = 8 * kSecond, prefill.device_busy_ns = 6 * kSecond, prefill.efficiency.bound = "compute";
  summary.stages = {prefill};
  summary.busy_devices = 1;
  DeviceTelemetry device{.used = true};
  device.reference_clock_mhz = 2000;
  summary.telemetry.devices = {device};
  StageTelemetry state{.stage = "prefill"};
  state.clock_readings = 10, state.slow_clock_share = 1, state.sm_clock_mhz = 1500;
  summary.telemetry.stages = {state};
  const Facts facts;
  const RuleResult said = find_rule("throttled_clocks")->check({summary, facts});
  ASSERT_EQ(said.findings.size(), 1u);
  EXPECT_DOUBLE_EQ(evidence(said.findings[0], "prefill.excess_at_low_clock"), 1.5);
}

// Ten steps of 1000; in steps `first` to 9 memory is allocated and freed, in calls of 100 and 50.
Diagnosis allocating(int first, bool calls = true) {
  RuleRun run;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t b = 10'000 + 1000 * i;
    run.step("decode", b, b + 900, {1, 1, 8});
    run.kernel("nvjet_a", b + 1, b + 10, b + 900);
    if (i != 0 && i < first) continue;
    trace::AllocationRow row{
        .id = run.next_id(), .begin_ns = b + 200, .bytes = 4096, .kind = run.name("device"), .process_id = 1};
    row.end_ns = b + 400, row.device_id = kGpu, row.thread_id = 1;
    run.add(row);
    if (!calls) continue;
    run.add(trace::ApiRow{.id = run.next_id(),
                          .begin_ns = b + 100,
                          .end_ns = b + 200,
                          .name = run.name("cudaMalloc_v3020"),
                          .thread_id = 1});
    run.add(trace::ApiRow{.id = run.next_id(),
                          .begin_ns = b + 400,
                          .end_ns = b + 450,
                          .name = run.name("cudaFree_v3020"),
                          .thread_id = 1});
  }
  return run.diagnosis();
}

TEST(AllocatorChurn, AllocationsInSteps) {
  const Diagnosis said = allocating(7);
  const Finding* found = find(said, "allocator_churn");
  ASSERT_NE(found, nullptr) << outcome(said, "allocator_churn").why;
  // Steps 7, 8, 9 of the nine after the first; 150 each in the calls, of 10 steps of 900.
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.allocating_steps"), 3.0 / 9);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.releases"), 3);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.allocated_bytes"), 3 * 4096);
  EXPECT_DOUBLE_EQ(found->gain->ns, 450);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 9000);
}

TEST(AllocatorChurn, WithoutTheCallsItIsInconclusive) {
  const Diagnosis said = allocating(7, false);
  ASSERT_NE(find(said, "allocator_churn"), nullptr);
  EXPECT_EQ(find(said, "allocator_churn")->verdict, Verdict::kInconclusive);
  EXPECT_NE(find(said, "allocator_churn")->next.find("--gpu api,memory"), std::string::npos);
}

TEST(AllocatorChurn, TheFirstStepMayAllocate) { expect_nothing(allocating(10), "allocator_churn"); }

// A snapshot: 4 GB held, 1.5 GB of it free between tensors; the same with 0.5 GB.
TEST(AllocatorChurn, FragmentsOfASnapshot) {
  for (const std::int64_t between : {1'500'000'000, 500'000'000}) {
    Summary summary;
    DeviceAllocator device;
    device.pools.push_back({.kind = "large", .segments = 2, .bytes = 4'000'000'000, .allocated_bytes = 2'000'000'000});
    device.pools[0].between_bytes = between;
    summary.allocators.devices = {device};
    const Facts facts;
    const RuleResult said = find_rule("allocator_churn")->check({summary, facts});
    ASSERT_EQ(said.findings.size(), between > 1'000'000'000 ? 1u : 0u) << said.why;
    if (said.findings.empty()) continue;
    EXPECT_DOUBLE_EQ(evidence(said.findings[0], "allocator.between"), 0.375);
    EXPECT_FALSE(said.findings[0].gain.has_value());
  }
}

}  // namespace
}  // namespace llmprof::analyze
