#include "bench/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "bench/check.h"
#include "bench/cpu/calls.h"
#include "bench/operator.h"

namespace llmprof::bench {
namespace {

const std::vector<hw::Peak> kGenerous{{"flops", "float32", 1e18, "FLOP/s", "measured", "for a test"},
                                      {"bandwidth", "read", 1e18, "B/s", "measured", "for a test"}};

BenchOptions quick(Cache cache) {
  BenchOptions options;
  options.cache = cache;
  options.threads = 2;
  options.measure = {.least_samples = 5, .warm_up_seconds = 0, .least_seconds = 0, .limit_seconds = 0.05};
  return options;
}

Problem rows(std::int64_t seq, std::int64_t hidden, Type type = Type::kFloat32) {
  return {.op = "residual_add", .type = type, .axes = {{"batch", 1}, {"seq", seq}, {"hidden", hidden}}};
}

PointResult run(const BenchOptions& options, const Problem& problem, const std::vector<hw::Peak>& peaks = kGenerous) {
  return make_cpu_bench(options, peaks)->run(problem, [] { return true; });
}

TEST(CpuBench, MeasuresColdWithManySets) {
  const PointResult result = run(quick(Cache::kCold), rows(64, 1024));
  ASSERT_EQ(result.status, Status::kMeasured) << result.reason;
  EXPECT_EQ(result.implementation, "cpu");
  EXPECT_EQ(result.method, "loop");
  EXPECT_EQ(result.timer, "clock");
  EXPECT_EQ(result.tensor_bytes, 3 * 64 * 1024 * 4);
  EXPECT_GT(result.buffer_sets, 1);
  EXPECT_GT(result.measured.time.median, 0);
  EXPECT_EQ(result.measured.time.count, result.measured.samples.size());
  ASSERT_TRUE(result.error);
  EXPECT_LT(*result.error, 1e-6);
  EXPECT_EQ(result.work.bytes(), 3 * 64 * 1024 * 4);
  EXPECT_EQ(result.roof.denominator.find("read (measured)") != std::string::npos, true);
}

TEST(CpuBench, MeasuresHotWithOneSetAndShortCallsInBatches) {
  const PointResult result = run(quick(Cache::kHot), rows(1, 16));
  ASSERT_EQ(result.status, Status::kMeasured) << result.reason;
  EXPECT_EQ(result.buffer_sets, 1);
  EXPECT_NE(result.timer.find("calls at a time"), std::string::npos) << result.timer;
}

TEST(CpuBench, SkipsWithTheReason) {
  const auto reason = [](const Problem& problem, BenchOptions options = quick(Cache::kCold)) {
    const PointResult result = run(options, problem);
    EXPECT_EQ(result.status, Status::kSkipped);
    EXPECT_TRUE(result.measured.samples.empty());
    return result.reason;
  };
  EXPECT_EQ(reason({.op = "nonsense"}), "there is no operator nonsense");
  EXPECT_EQ(reason(rows(1, 16, Type::kFloat8E4m3)), "residual_add has no float8_e4m3 on a CPU: it has float32");
  EXPECT_NE(reason(rows(1ll << 40, 1ll << 40)).find("too large"), std::string::npos);
  EXPECT_NE(reason(rows(1ll << 20, 1ll << 18)).find("does not fit: its tensors take 3.30 TB"), std::string::npos)
      << reason(rows(1ll << 20, 1ll << 18));
  BenchOptions named = quick(Cache::kCold);
  named.implementation = "cublaslt";
  EXPECT_NE(reason(rows(1, 16), named).find("no implementation cublaslt"), std::string::npos);
}

TEST(CpuBench, FasterThanLightIsAFailure) {
  // A bandwidth of 1 byte/s makes everything impossible.
  const PointResult result =
      run(quick(Cache::kCold), rows(1, 16), {{"bandwidth", "read", 1, "B/s", "measured", "a lie"}});
  EXPECT_EQ(result.status, Status::kFailed);
  EXPECT_NE(result.reason.find("faster than possible"), std::string::npos) << result.reason;
}

TEST(CpuBench, InterruptedBeforeAnything) {
  const PointResult result = make_cpu_bench(quick(Cache::kCold), kGenerous)->run(rows(1, 16), [] { return false; });
  EXPECT_EQ(result.status, Status::kSkipped);
  EXPECT_NE(result.reason.find("interrupted"), std::string::npos);
}

TEST(CpuBench, EveryOperatorRunsOnItsSmallProblem) {
  BenchOptions options = quick(Cache::kHot);
  options.measure.limit_seconds = 0;
  options.measure.least_samples = 1;
  const auto bench = make_cpu_bench(options, kGenerous);
  for (const Operator* op : operators()) {
    if (op->cpu == nullptr) continue;
    const Type type = op->cpu_types.empty() ? Type::kFloat32 : op->cpu_types.front();
    const Result<Problem> problem = make_problem(*op, type, {});
    ASSERT_TRUE(problem) << op->name;
    const PointResult result = bench->run(op->small(*problem), [] { return true; });
    EXPECT_EQ(result.status, Status::kMeasured) << op->name << ": " << result.reason;
  }
}

TEST(CpuBuffers, SetsAreAlikeAlignedAndApart) {
  const TensorSpec specs[] = {{.name = "x", .role = Role::kIn, .type = Type::kFloat32, .elements = 1000},
                              {.name = "y", .role = Role::kOut, .type = Type::kFloat32, .elements = 7}};
  const auto buffers = CpuBuffers::create(specs, 3, Team(2), 1);
  ASSERT_TRUE(buffers);
  EXPECT_EQ(buffers->sets(), 3u);
  std::set<const std::byte*> begins;
  for (std::size_t set = 0; set < 3; ++set) {
    const auto tensors = buffers->set(set);
    EXPECT_EQ(std::memcmp(tensors[0], buffers->set(0)[0], 4000), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors[0]) % kPageBytes, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors[1]) % kCpuAlignment, 0u);
    EXPECT_TRUE(std::all_of(tensors[1], tensors[1] + 28, [](std::byte b) { return b == std::byte{0}; }));
    begins.insert(tensors[0]);
  }
  EXPECT_EQ(begins.size(), 3u);
  EXPECT_EQ(cpu_set_bytes(specs), 4096);  // 63 lines of 64 bytes and one: a page
}

TEST(CpuBuffers, LongTensorsRepeat) {
  constexpr std::int64_t kMillion = 1 << 20;
  const TensorSpec spec{
      .name = "x", .role = Role::kIn, .type = Type::kInt8, .elements = 2 * kMillion + 5, .fill = {.scale = 30}};
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  fill_tensor(spec, 1, Team(2), bytes.data());
  EXPECT_EQ(std::memcmp(bytes.data(), bytes.data() + kMillion, kMillion), 0);
  EXPECT_EQ(std::memcmp(bytes.data(), bytes.data() + 2 * kMillion, 5), 0);
  EXPECT_NE(std::memcmp(bytes.data(), bytes.data() + 1000, 1000), 0);
}

TEST(CpuSampler, ShortCallsAreTimedTogether) {
  EXPECT_EQ(calls_per_sample(1), 1u);
  EXPECT_EQ(calls_per_sample(20e-6), 1u);
  EXPECT_EQ(calls_per_sample(10e-6), 10u);
  EXPECT_EQ(calls_per_sample(0), 10'000u);
}

TEST(CpuSampler, ColdRotatesAndFlushesBeforeEachRound) {
  std::vector<int> log;  // sets, -1: flush
  CpuSampler sampler({.call = [&](std::size_t set) { log.push_back(static_cast<int>(set)); },
                      .sets = 3,
                      .flush = [&] { log.push_back(-1); }},
                     Cache::kCold);
  ASSERT_TRUE(sampler.next(4));
  EXPECT_EQ(log, (std::vector<int>{-1, 0, 1, 2, -1, 0}));
  const auto more = sampler.next(2);
  ASSERT_TRUE(more);
  for (const Sample& sample : *more) EXPECT_GT(sample.seconds, 0);
}

TEST(AvailableMemory, FromAFakeMachine) {
  const std::filesystem::path root = std::filesystem::temp_directory_path() / "llmprof_bench_memory";
  std::filesystem::create_directories(root / "proc");
  std::ofstream(root / "proc/meminfo") << "MemTotal:       24000000 kB\nMemAvailable:   1000 kB\n";
  EXPECT_EQ(available_memory_bytes(hw::SystemFiles(root.string())), 1024'000);
  std::filesystem::remove_all(root);
  EXPECT_EQ(available_memory_bytes(hw::SystemFiles(root.string())), 0);
}

}  // namespace
}  // namespace llmprof::bench
