// Timers of libs/bench against kernels of known length, and against each other. Needs an NVIDIA GPU; bench_timing.sh
// runs it, alone and under ncu (with --for-ncu it only launches the kernels, five times each).

#include "bench_timing.h"

#include <chrono>
#include <cstdio>
#include <cstring>

#include "bench/cuda/clock.h"
#include "bench/cuda/cupti.h"
#include "bench/cuda/events.h"
#include "bench/cuda/sampler.h"
#include "hw/gpu/usage.h"

namespace llmprof::bench::cuda {
namespace {

constexpr Subject kSpin2us{"spin 2 us", 2'000, 0}, kSpin5us{"spin 5 us", 5'000, 0}, kAdd{"add", 0, 4096};
const char* results_file = nullptr;

TEST(Timing, KernelsOfKnownLength) {
  std::printf("%-13s %9s %9s %9s %9s %9s %9s %9s %6s\n", "us", "cold", "p95", "events", "hot", "p95", "events", "graph",
              "MHz");
  std::FILE* file = results_file != nullptr ? std::fopen(results_file, "w") : nullptr;
  for (const Subject& subject : kSubjects) {
    Work work(subject, 4);
    auto cold = must(GpuSampler::create(gpu(), work.calls(), true));
    Work one(subject, 1);  // several sets would not stay in the cache
    auto hot = must(GpuSampler::create(gpu(), one.calls(), false));
    const Statistics c = take(*cold, 128), h = take(*hot, 128), again = take(*cold, 128);
    const double graph = must(graph_seconds(gpu(), work.calls(), 0.1));
    const double mhz = must(cold->next(8)).front().clock_mhz;
    std::printf("%-13s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %6.0f\n", subject.name, c.median * 1e6, c.p95 * 1e6,
                cold->event_seconds().value_or(0) * 1e6, h.median * 1e6, h.p95 * 1e6,
                hot->event_seconds().value_or(0) * 1e6, graph * 1e6, mhz);
    if (file != nullptr) std::fprintf(file, "%s,%.3f,%.3f\n", subject.name, c.median * 1e6, h.median * 1e6);
    EXPECT_EQ(cold->timer(), "CUPTI") << cold->why_no_cupti();
    EXPECT_EQ(cold->kernels().size(), 1u);
    EXPECT_NEAR(again.median, c.median, std::max(0.02 * c.median, 33e-9)) << subject.name;  // or one tick of the clock
    EXPECT_GT(*cold->event_seconds(), c.median * 0.98);                                     // gaps are part of it
    EXPECT_GT(mhz, 100);
    EXPECT_LT(mhz, gpu().properties().clock_mhz * 1.02);
    const double length = static_cast<double>(subject.spin_ns) * 1e-9;
    if (subject.add_values > 0) continue;
    EXPECT_GT(c.median, length * 0.99 - 0.1e-6) << subject.name;
    EXPECT_LT(c.median, length * 1.01 + 2e-6) << subject.name;  // and beginning and ending a kernel
    EXPECT_GT(graph, length * 0.99) << subject.name;
    EXPECT_LT(graph, length * 1.01 + 4e-6) << subject.name;
  }
  if (file != nullptr) std::fclose(file);
}

TEST(Timing, SetsAreRotated) {
  Work work(kAdd, 3);
  auto sampler = must(GpuSampler::create(gpu(), work.calls(), false));
  for (int i = 0; i < 6; ++i) must(sampler->next(16));
  const auto [least, most] = std::minmax_element(work.used().begin(), work.used().end());
  EXPECT_GT(*least, 30);
  EXPECT_LE(*most - *least, 2);
}

TEST(Timing, ACallOfSeveralKernelsAndAMemset) {
  Work work(kSpin2us, 1);  // 2 us each
  const Buffer memory = must(gpu().allocate(1 << 20));
  const Calls calls{.enqueue = [&](std::size_t) -> Result<void> {
    LLMPROF_TRY(work.enqueue(0));
    LLMPROF_TRY(gpu().set_bytes(memory.pointer(), 1, memory.bytes()));
    LLMPROF_TRY(gpu().copy(memory.pointer(), memory.pointer() + (1 << 19), 1 << 19));
    return work.enqueue(0);
  }};
  auto sampler = must(GpuSampler::create(gpu(), calls, true));
  const Statistics time = take(*sampler, 64);
  std::printf("2 spins of 2 us, memset 1 MiB, copy 0.5 MiB: %.3f us, events %.3f\n", time.median * 1e6,
              sampler->event_seconds().value_or(0) * 1e6);
  ASSERT_EQ(sampler->kernels().size(), 4u);
  EXPECT_EQ(sampler->kernels()[0], "llmprof_spin_ns");
  EXPECT_EQ(sampler->kernels()[1], "[memset]");
  EXPECT_GT(time.median, 4e-6);
  EXPECT_LT(time.median, 14e-6);
}

// More launches than a stream takes at a time: a batch must be small enough, or the gate's deadline would pass.
TEST(Timing, ACallOfManyKernels) {
  const Calls calls{.enqueue = [&](std::size_t) -> Result<void> {
    for (int i = 0; i < 300; ++i) LLMPROF_TRY(gpu().launch("llmprof_spin_ns", {}, {std::uint64_t{1000}}));
    return {};
  }};
  auto sampler = must(GpuSampler::create(gpu(), calls, true));
  const auto begin = std::chrono::steady_clock::now();
  const Statistics time = take(*sampler, 16);
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("300 spins of 1 us: %.1f us, events %.1f; 16 samples in %.3f s\n", time.median * 1e6,
              sampler->event_seconds().value_or(0) * 1e6, spent);
  EXPECT_EQ(sampler->kernels().size(), 300u);
  EXPECT_GT(time.median, 300e-6);
  EXPECT_LT(time.median, 600e-6);
}

double by_events(CacheFlush* flush, const std::function<Result<void>()>& call) {
  LaunchGate gate = must(LaunchGate::create(gpu()));
  EventPairs events = must(EventPairs::create(gpu(), 16));
  std::vector<double> seconds;
  for (int round = 0; round < 4; ++round) {
    must(gate.close());
    for (std::size_t i = 0; i < 16; ++i) {
      if (flush != nullptr) must(flush->enqueue());
      must(gpu().launch("llmprof_timing_marker", {}, {}));
      must(events.begin(i));
      must(call());
      must(events.end(i));
    }
    gate.open();
    must(gpu().synchronize());
    for (std::size_t i = 0; i < 16; ++i) seconds.push_back(must(events.seconds(i)));
  }
  return statistics(seconds).median * 1e6;
}

TEST(Timing, TheFlushFlushes) {
  CacheFlush flush = must(CacheFlush::create(gpu()));
  std::printf("%-16s %9s %9s us by events\n", "", "hot", "flushed");
  for (const std::int64_t megabytes : {1, 10, 30, 120, 400}) {
    const std::int64_t packs = megabytes * 1'000'000 / 16;
    const Buffer buffer = must(gpu().allocate(packs * 16));
    must(gpu().set_bytes(buffer.pointer(), 0, buffer.bytes()));
    const auto read = [&] {
      return gpu().launch("llmprof_timing_flush", {.grid_x = 4 * gpu().properties().multiprocessors, .block_x = 512},
                          {buffer.pointer(), packs});
    };
    const double hot = by_events(nullptr, read), cold = by_events(&flush, read);
    std::printf("read %7ld MB  %9.2f %9.2f\n", static_cast<long>(megabytes), hot, cold);
    if (megabytes == 10 || megabytes == 30) {
      EXPECT_GT(cold, hot * 1.15);
    }
  }
}

// The same kernel by CUPTI, queued behind others and on an idle device: what comes before must not matter.
double by_cupti(bool idle, const std::function<Result<void>()>& call) {
  Cupti* cupti = must(Cupti::get());
  LaunchGate gate = must(LaunchGate::create(gpu()));
  must(cupti->start());
  if (!idle) must(gate.close());
  for (int i = 0; i < 32; ++i) {
    must(gpu().launch(kMarkerKernel, {}, {}));
    if (idle) must(gpu().synchronize());
    must(call());
  }
  gate.open();
  must(gpu().synchronize());
  std::vector<double> seconds;
  for (const TimedCall& timed : must(calls_of(must(cupti->stop()), 32))) seconds.push_back(timed.seconds);
  return statistics(seconds).median * 1e6;
}

TEST(Timing, QueuedOrOnAnIdleDeviceIsTheSame) {
  Work spin(kSpin2us, 1), add(kAdd, 1);
  for (Work* work : {&spin, &add}) {
    const auto call = [&] { return work->enqueue(0); };
    const double queued = by_cupti(false, call), idle = by_cupti(true, call);
    std::printf("by CUPTI, queued %.3f us, on an idle device %.3f us\n", queued, idle);
    EXPECT_NEAR(queued, idle, 0.2);
  }
}

TEST(Timing, EventsWhileCuptiRecords) {
  Work work(kSpin2us, 1);
  const double alone = by_events(nullptr, [&] { return work.enqueue(0); });
  const double empty = by_events(nullptr, [&] { return Result<void>{}; });
  Cupti* cupti = must(Cupti::get());
  must(cupti->start());
  const double recorded = by_events(nullptr, [&] { return work.enqueue(0); });
  must(cupti->stop());
  std::printf("2 us spin by events: %.3f us; while CUPTI records: %.3f; nothing between the events: %.3f\n", alone,
              recorded, empty);
}

// A call that waits for the device: behind the gate that is a deadlock, until the gate's deadline.
TEST(Timing, ACallThatSynchronisesEndsAndIsStillTimed) {
  Work work(kSpin5us, 1);
  const Calls calls{.enqueue = [&](std::size_t) -> Result<void> {
    LLMPROF_TRY(work.enqueue(0));
    return gpu().synchronize();
  }};
  auto sampler = must(GpuSampler::create(gpu(), calls, false));
  const Statistics time = take(*sampler, 64);
  std::printf("5 us spin that synchronises: %.3f us\n", time.median * 1e6);
  EXPECT_LT(time.median, 8e-6);
}

TEST(Timing, ACallThatFailsIsAnErrorAndNothingHangs) {
  Work work(kSpin2us, 1);
  int calls_made = 0;
  const Calls calls{.enqueue = [&](std::size_t) -> Result<void> {
    if (++calls_made == 10) return Error{ErrorCode::kUnsupported, "the tenth call", ""};
    return work.enqueue(0);
  }};
  auto sampler = must(GpuSampler::create(gpu(), calls, false));
  const Result<std::vector<Sample>> samples = sampler->next(16);
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().message, "the tenth call");
  EXPECT_TRUE(sampler->next(4));  // it goes on
}

TEST(Timing, LaunchCosts) {
  const LaunchCost cost = must(launch_cost(gpu()));
  std::printf("empty kernel: host %.3f us, device back to back %.3f us, graph node %.3f us\n", cost.host_seconds * 1e6,
              cost.device_seconds * 1e6, cost.graph_node_seconds * 1e6);
  EXPECT_GT(cost.host_seconds, 0.2e-6);
  EXPECT_LT(cost.host_seconds, 50e-6);
  EXPECT_GT(cost.device_seconds, 0.2e-6);
  EXPECT_LT(cost.device_seconds, 10e-6);
  EXPECT_GT(cost.graph_node_seconds, 0.2e-6);
  EXPECT_LT(cost.graph_node_seconds, cost.device_seconds * 1.5);
}

TEST(Timing, Clocks) {
  const Buffer out = must(gpu().allocate(16));
  const long long cycles = 20'000;
  must(gpu().launch("llmprof_spin_report", {}, {cycles, out.pointer()}));
  std::uint64_t report[2];
  must(gpu().copy_out(report, out.pointer(), sizeof(report)));
  const double mhz = must(clock_mhz(gpu()));
  std::printf("clock %.0f MHz (highest %.0f); 20000 cycles in %lu ns; the nanoseconds tick by %lu\n", mhz,
              gpu().properties().clock_mhz, report[0], report[1]);
  EXPECT_NEAR(20e6 / static_cast<double>(report[0]), mhz, 0.1 * mhz);
}

TEST(Timing, UsageByNvml) {
  const Result<hw::GpuUsage> usage = hw::gpu_usage(gpu().properties().bus_id);
  ASSERT_TRUE(usage) << usage.error().message;
  ASSERT_TRUE(usage->processes && usage->memory_used_bytes && usage->sm_clock_mhz && usage->power_watts);
  std::printf("NVML at %s: %zu processes, %.1f GiB used, %.0f MHz, %.0f of %.0f W, %.0f C\n",
              gpu().properties().bus_id.c_str(), usage->processes->size(),
              static_cast<double>(*usage->memory_used_bytes) / (1 << 30), *usage->sm_clock_mhz, *usage->power_watts,
              usage->power_limit_watts.value_or(0), usage->temperature_celsius.value_or(0));
  for (const hw::GpuProcess& process : *usage->processes) {
    std::printf("  pid %ld %s\n", static_cast<long>(process.pid), process.name.c_str());
  }
  for (const std::string& note : hw::gpu_notes(gpu().properties().bus_id, true))
    std::printf("  note: %s\n", note.c_str());
}

void launch_for_ncu() {
  for (const Subject& subject : kSubjects) {
    Work work(subject, 1);
    must(gpu().synchronize());
    for (int i = 0; i < 5; ++i) {
      must(work.enqueue(0));
      must(gpu().synchronize());
    }
  }
  // And what the sampler says when ncu has CUPTI.
  Work work(kSpin2us, 1);
  auto sampler = must(GpuSampler::create(gpu(), work.calls(), false));
  std::printf("under ncu: %s, because %s\n", std::string(sampler->timer()).c_str(), sampler->why_no_cupti().c_str());
}

}  // namespace
}  // namespace llmprof::bench::cuda

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--for-ncu") == 0) {
    llmprof::bench::cuda::launch_for_ncu();
    return 0;
  }
  if (argc > 1) llmprof::bench::cuda::results_file = argv[1];
  return RUN_ALL_TESTS();
}
