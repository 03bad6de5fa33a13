#include <gtest/gtest.h>

#include "bench/bench.h"

namespace llmprof::bench {
namespace {

const std::vector<hw::Peak> kPeaks{{"flops", "bfloat16", 800e12, "FLOP/s", "measured", "products"},
                                   {"bandwidth", "read", 4e12, "B/s", "measured", "sum"},
                                   {"bandwidth", "copy", 4.2e12, "B/s", "measured", "copy"}};
const Problem kBf16{.op = "gemm", .type = Type::kBfloat16, .axes = {}};
const Problem kFp32{.op = "gemm", .type = Type::kFloat32, .axes = {}};
// 80 GFLOP: 100 us. 40 MB: 10 us.
const model::KernelWork kHeavy{.flops = 80e9, .read_bytes = 30e6, .write_bytes = 10e6};
const model::KernelWork kLight{.flops = 0, .read_bytes = 30e6, .write_bytes = 10e6};
const hw::Device kUnknown{.kind = "gpu", .name = "no such device", .cache_bytes = 50'000'000};

TEST(Roof, TheLargerTimeIsTheBound) {
  const Roof compute = roof_of(kBf16, kHeavy, kPeaks);
  EXPECT_DOUBLE_EQ(compute.floor_seconds, 100e-6);
  EXPECT_EQ(compute.bound, "compute");
  EXPECT_EQ(compute.denominator, "800 TFLOP/s bfloat16 (measured)");
  const Roof memory = roof_of(kBf16, {.flops = 1e9, .read_bytes = 30e6, .write_bytes = 10e6}, kPeaks);
  EXPECT_DOUBLE_EQ(memory.floor_seconds, 40e6 / 4.2e12);  // 9.5 us at the fastest stream; its reads alone take 7.5 us
  EXPECT_EQ(memory.bound, "memory");
  EXPECT_EQ(memory.denominator, "4.20 TB/s copy (measured)");
}

TEST(Roof, ReadsComeNoFasterThanReads) {
  const Roof reads = roof_of(kBf16, {.flops = 1e9, .read_bytes = 40e6, .write_bytes = 0}, kPeaks);
  EXPECT_DOUBLE_EQ(reads.floor_seconds, 10e-6);
  EXPECT_EQ(reads.denominator, "4.00 TB/s read (measured)");
}

TEST(Roof, UnknownPeaksMakeItUnknown) {
  EXPECT_EQ(roof_of(kFp32, kHeavy, kPeaks).floor_seconds, 0);  // no peak of float32: the memory alone would be a guess
  EXPECT_EQ(roof_of(kFp32, kHeavy, kPeaks).bound, "");
  EXPECT_EQ(roof_of(kFp32, kLight, kPeaks).bound, "memory");  // multiplies nothing
  EXPECT_EQ(roof_of(kBf16, kHeavy, {}).floor_seconds, 0);
  EXPECT_EQ(roof_of(kBf16, {}, kPeaks).bound, "");
}

TEST(Roof, LatencyWhereStartingTakesLongerThanWorking) {
  const Roof roof{.floor_seconds = 1e-6, .bound = "memory", .denominator = "4.00 TB/s read (measured)"};
  EXPECT_EQ(with_latency(roof, 3.9e-6, 1e-6).bound, "latency");
  EXPECT_EQ(with_latency(roof, 4.1e-6, 1e-6).bound, "memory");  // its start is less than a quarter of it
  EXPECT_EQ(with_latency(roof, 1.5e-6, 1e-6).bound, "memory");  // near the roof all the same
  EXPECT_EQ(with_latency(roof, 4e-6, 0.4e-6).bound, "memory");  // slow, but not because of its start
  EXPECT_EQ(with_latency({}, 4e-6, 1e-6).bound, "");
}

TEST(Light, ComputeByTheMeasuredPeakWithAMargin) {
  // 100 us at the peak, 95.2 us at 1.05 of it.
  EXPECT_EQ(why_impossible(kBf16, kHeavy, 96e-6, Cache::kHot, kUnknown, kPeaks), "");
  const std::string why = why_impossible(kBf16, kHeavy, 94e-6, Cache::kHot, kUnknown, kPeaks);
  EXPECT_NE(why.find("measured 94.0 us"), std::string::npos) << why;
  EXPECT_NE(why.find("1.05 of 800 TFLOP/s bfloat16 (measured)"), std::string::npos) << why;
}

TEST(Light, ColdReadsMustComeFromMemoryWritesMayStay) {
  // 30 MB read at 1.05 * 4.2 TB/s: 6.80 us; the 10 MB written fit in the cache of 50 MB.
  EXPECT_EQ(why_impossible(kFp32, kLight, 6.9e-6, Cache::kCold, kUnknown, kPeaks), "");
  EXPECT_NE(why_impossible(kFp32, kLight, 6.7e-6, Cache::kCold, kUnknown, kPeaks), "");
  // 30 MB read, 90 MB written, of which 40 MB cannot stay: 70 MB, 15.9 us.
  const model::KernelWork writes{.flops = 0, .read_bytes = 30e6, .write_bytes = 90e6};
  EXPECT_EQ(why_impossible(kFp32, writes, 16e-6, Cache::kCold, kUnknown, kPeaks), "");
  EXPECT_NE(why_impossible(kFp32, writes, 15.7e-6, Cache::kCold, kUnknown, kPeaks), "");
}

TEST(Light, HotDataMayBeInTheCache) {
  EXPECT_EQ(why_impossible(kFp32, kLight, 1e-9, Cache::kHot, kUnknown, kPeaks), "");
  // 94.1 MB, of which 50 fit: 44.1 MB, 10 us.
  const model::KernelWork more{.flops = 0, .read_bytes = 94.1e6, .write_bytes = 0};
  EXPECT_EQ(why_impossible(kFp32, more, 10.1e-6, Cache::kHot, kUnknown, kPeaks), "");
  EXPECT_NE(why_impossible(kFp32, more, 9.9e-6, Cache::kHot, kUnknown, kPeaks), "");
}

TEST(Light, AnUnknownCacheMayHoldAnything) {
  const hw::Device device{.kind = "cpu", .name = "no such device"};
  const model::KernelWork writes{.flops = 0, .read_bytes = 0, .write_bytes = 90e9};
  EXPECT_EQ(why_impossible(kFp32, writes, 1e-6, Cache::kCold, device, kPeaks), "");
  EXPECT_EQ(why_impossible(kFp32, writes, 1e-6, Cache::kHot, device, kPeaks), "");
}

TEST(Light, NothingKnownNothingJudged) {
  EXPECT_EQ(why_impossible(kBf16, kHeavy, 1e-12, Cache::kCold, kUnknown, {}), "");
  const std::vector<hw::Peak> busy{{"flops", "bfloat16", 1, "FLOP/s", "measured", "loop, CPU share 40 %"},
                                   {"bandwidth", "read", 1, "B/s", "measured", "sum, CPU share 40 %"}};
  EXPECT_EQ(why_impossible(kBf16, kHeavy, 1e-12, Cache::kCold, kUnknown, busy), "");
}

TEST(Light, TheVendorsPeakWhereKnown) {
  // H200: 989 TFLOP/s and 4.8 TB/s by its data sheet. A measured peak that is far lower does not matter then.
  const hw::Device h200{.kind = "gpu", .name = "NVIDIA H200", .cache_bytes = 50'000'000};
  const std::vector<hw::Peak> low{{"flops", "bfloat16", 100e12, "FLOP/s", "measured", "products"},
                                  {"bandwidth", "read", 1e12, "B/s", "measured", "sum"}};
  EXPECT_EQ(why_impossible(kBf16, kHeavy, 82e-6, Cache::kCold, h200, low), "");           // 976 TFLOP/s
  const std::string why = why_impossible(kBf16, kHeavy, 78e-6, Cache::kCold, h200, low);  // 1026 TFLOP/s
  EXPECT_NE(why.find("bfloat16 (spec"), std::string::npos) << why;
  EXPECT_EQ(why_impossible(kFp32, kLight, 6.3e-6, Cache::kCold, h200, low), "");  // 4.76 TB/s
  EXPECT_NE(why_impossible(kFp32, kLight, 6.0e-6, Cache::kCold, h200, low), "");  // 5 TB/s
}

TEST(Light, ADevicesOwnHigherClockCounts) {
  hw::Device h200{.kind = "gpu", .name = "NVIDIA H200", .cache_bytes = 50'000'000, .clock_mhz = 1980};
  // If the sheet's clock is known (1830 MHz), 989 become 1070 TFLOP/s; 1026 are then possible.
  EXPECT_EQ(why_impossible(kBf16, kHeavy, 78e-6, Cache::kCold, h200, {}), "");
  EXPECT_NE(why_impossible(kBf16, kHeavy, 70e-6, Cache::kCold, h200, {}), "");
}

}  // namespace
}  // namespace llmprof::bench
