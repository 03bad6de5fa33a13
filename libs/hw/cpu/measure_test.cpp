#include "hw/cpu/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "hw/cpu/cpu.h"
#include "hw/cpu/peak_kernels.h"

namespace llmprof::hw {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

bool always() { return true; }

Cpu four_cores() {
  Cpu cpu;
  cpu.caches = {{1, "Data", 32 << 10, 4},
                {1, "Instruction", 32 << 10, 4},
                {2, "Unified", 1 << 20, 4},
                {3, "Unified", 32 << 20, 1}};
  return cpu;
}
Device four_core_device() { return {.kind = "cpu", .units = 4, .memory_bytes = 16ll << 30, .cache_bytes = 32 << 20}; }

TEST(StreamLevels, HalfOfEachCacheThenMemory) {
  const std::vector<StreamLevel> one = stream_levels(four_cores(), four_core_device(), 1);
  ASSERT_EQ(one.size(), 4u);
  EXPECT_EQ(one[0].name, "L1");
  EXPECT_EQ(one[0].bytes_per_thread, 16u << 10);
  EXPECT_EQ(one[1].bytes_per_thread, 512u << 10);
  EXPECT_EQ(one[2].name, "L3");
  EXPECT_EQ(one[2].bytes_per_thread, 16u << 20);
  EXPECT_EQ(one[3].name, "");
  EXPECT_EQ(one[3].bytes_per_thread, 512u << 20);  // the least: 4 x 32 MiB are only 128
  const std::vector<StreamLevel> all = stream_levels(four_cores(), four_core_device(), 4);
  EXPECT_EQ(all[1].bytes_per_thread, 512u << 10);  // every core has its own L2
  EXPECT_EQ(all[2].bytes_per_thread, 4u << 20);    // 32 MiB / 4 / 2
  EXPECT_EQ(all[3].bytes_per_thread, 128u << 20);  // 512 MiB / 4
}

TEST(StreamLevels, ASharedCacheThatHardlyExceedsThoseBeforeItIsNotMeasured) {
  Cpu cpu = four_cores();
  cpu.caches[3].bytes = 12 << 20;  // 3 MiB a core; 2 x 1 MiB is more than half of that, less than three quarters
  EXPECT_EQ(stream_levels(cpu, four_core_device(), 4)[2].bytes_per_thread, 2u << 20);
  cpu.caches[3].bytes = 8 << 20;  // 2 MiB a core: 2 x 1 MiB is all of it
  const StreamLevel level = stream_levels(cpu, four_core_device(), 4)[2];
  EXPECT_EQ(level.bytes_per_thread, 0u);
  EXPECT_THAT(level.why, HasSubstr("8.39 MB of L3"));
  EXPECT_GT(stream_levels(cpu, four_core_device(), 1)[2].bytes_per_thread, 0u);  // one core has all of it
}

TEST(StreamLevels, WithoutKnownCachesOnlyMemory) {
  Device tiny = four_core_device();
  tiny.memory_bytes = 1 << 20;
  const std::vector<StreamLevel> levels = stream_levels({}, tiny, 4);
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels[0].bytes_per_thread, 64u << 10);  // a quarter of 1 MiB, by 4
  tiny.memory_bytes = 0;
  tiny.cache_bytes = 0;
  EXPECT_EQ(stream_levels({}, tiny, 4)[0].bytes_per_thread, 128u << 20);
}

TEST(StreamLevels, OneCoreOfManyReadsAtMostAGibibyteOrTwiceTheCaches) {
  Device large{.kind = "cpu", .units = 64, .memory_bytes = 512ll << 30, .cache_bytes = 1ll << 30};
  EXPECT_EQ(stream_levels({}, large, 64)[0].bytes_per_thread, 64u << 20);  // 4 GiB / 64
  EXPECT_EQ(stream_levels({}, large, 1)[0].bytes_per_thread, 2ull << 30);  // twice the caches
}

TEST(StreamType, NamesLevelAndCores) {
  EXPECT_EQ(stream_type(Stream::kRead, {}, false), "read");
  EXPECT_EQ(stream_type(Stream::kTriad, {.name = "L2"}, true), "triad, L2, one core");
}

TEST(PeakKernels, StoresWriteWhatTheyShould) {
  constexpr std::size_t kFloats = 2 * kReadBlockBytes / sizeof(float);
  alignas(64) float a[kFloats], b[kFloats], to[kFloats];
  std::iota(std::begin(a), std::end(a), 1.0f);
  std::iota(std::begin(b), std::end(b), 100.0f);
  const auto bytes = [](float* floats) { return reinterpret_cast<std::byte*>(floats); };
  for (const PeakKernels& kernels : peak_kernels()) {
    if (!kernels.supported()) continue;
    for (const StoreKernels* stores : {&kernels.plain, &kernels.streaming}) {
      std::fill(std::begin(to), std::end(to), -1.0f);
      stores->write(bytes(to), nullptr, nullptr, sizeof to, 1);
      EXPECT_THAT(to, ::testing::Each(1.0f)) << kernels.isa;
      stores->copy(bytes(to), bytes(a), nullptr, sizeof to, 2);
      EXPECT_THAT(to, ::testing::ElementsAreArray(a)) << kernels.isa;
      stores->triad(bytes(to), bytes(a), bytes(b), sizeof to, 1);
      for (std::size_t i = 0; i < kFloats; ++i) ASSERT_EQ(to[i], a[i] + 0.5f * b[i]) << kernels.isa;
    }
  }
}

TEST(PeakKernels, ASumOfSeveralPassesCountsEach) {
  alignas(64) std::uint64_t buffer[kReadBlockBytes / sizeof(std::uint64_t)];
  std::fill(std::begin(buffer), std::end(buffer), 3u);
  // 128 words of 3, three times
  EXPECT_EQ(best_kernels().sum(reinterpret_cast<const std::byte*>(buffer), sizeof buffer, 3), 1152u);
}

TEST(MeasureStream, EachStreamInACacheAndInMemory) {
  const CpuTeam team(2);
  const PeakBuffer buffer(1 << 20);
  ASSERT_NE(buffer.data(), nullptr);
  ASSERT_TRUE(touch(team, buffer));
  for (const Stream stream : kAllStreams) {
    for (const StreamLevel& level : {StreamLevel{"L1", 16 << 10, ""}, StreamLevel{"", 512 << 10, ""}}) {
      const Result<Peak> peak = measure_stream(team, stream, level, buffer, milliseconds(1), always);
      ASSERT_TRUE(peak) << peak.error().message;
      EXPECT_EQ(peak->type, stream_type(stream, level, false));
      EXPECT_GT(peak->value, 1e6);
      EXPECT_THAT(peak->method, HasSubstr(", 2 threads, best of "));
    }
  }
  const Result<Peak> triad =
      measure_stream(team, Stream::kTriad, {"L1", 16 << 10, ""}, buffer, milliseconds(1), always);
  EXPECT_THAT(triad->method, HasSubstr("triad of 30.7 kB"));  // 2 threads x 3 arrays of 5 KiB: 16 KiB / 3 in blocks
}

TEST(MeasureStream, WhatCannotBeMeasuredSaysWhy) {
  const CpuTeam team(1);
  const PeakBuffer buffer(1 << 20);
  const Result<Peak> none =
      measure_stream(team, Stream::kRead, {"L3", 0, "too small"}, buffer, milliseconds(1), always);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "too small");
  EXPECT_FALSE(measure_stream(team, Stream::kRead, {"L3", 2 << 20, ""}, buffer, milliseconds(1), always));
  EXPECT_EQ(measure_stream(team, Stream::kRead, {"", 1 << 20, ""}, buffer, milliseconds(1), [] { return false; })
                .error()
                .code,
            ErrorCode::kInterrupted);
}

TEST(BusyShare, IsWhatWasNotIdleBetweenTwoReadings) {
  // 100 ticks in all, 60 idle and 10 waiting for disks: 30 busy.
  EXPECT_NEAR(*busy_share("cpu  10 0 10 100 5 0 0 0 9 9\ncpu0 1\n", "cpu  30 0 20 160 15 0 0 0 99 9\n"), 0.3, 1e-9);
  EXPECT_FALSE(busy_share("cpu  1 2 3 4 5 6 7 8\n", "cpu  1 2 3 4 5 6 7 8\n"));  // no time passed
  EXPECT_FALSE(busy_share("", ""));
  EXPECT_FALSE(busy_share("cpu  1 x 3 4 5\n", "cpu  2 2 3 4 5\n"));
  EXPECT_FALSE(busy_share("cpu  1 2\n", "cpu  2 3\n"));
}

}  // namespace
}  // namespace llmprof::hw
