#include "hw/peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "hw/device_card.h"
#include "hw/testing/fake_machine.h"
#include "hw/cpu/peak_kernels.h"

namespace llmprof::hw {
namespace {

using ::testing::HasSubstr;

Device a_cpu() {
  return {.kind = "cpu",
          .name = "Fake/CPU (R) 9000 ../x",
          .chip = "x86-64-v3",
          .units = 4,
          .memory_bytes = 16ll << 30,
          .cache_bytes = 32 << 20,
          .clock_mhz = 3000};
}

std::vector<Peak> some_peaks() {
  return {{"flops", "float32", 1e11, "FLOP/s", "measured", "loop"},
          {"bandwidth", "read", 2e10, "B/s", "measured", "sum"}};
}

class PeaksCache : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("LLMPROF_CACHE_DIR", (machine_.root() + "/a/b").c_str(), 1); }
  void TearDown() override { ::unsetenv("LLMPROF_CACHE_DIR"); }
  std::string file() const { return machine_.root() + "/a/b/peaks-" + fingerprint(a_cpu()) + ".json"; }
  FakeMachine machine_;
};

TEST(Fingerprint, IsAFileNameAndNamesTheMachine) {
  const std::string text = fingerprint(a_cpu());
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("cpu-fake-cpu-r-9000-x-4x-16gib-"));
  Device other = a_cpu();
  other.clock_mhz = 1;                // changes by the minute
  other.memory_bytes -= 100'000'000;  // another kernel keeps a little more for itself
  EXPECT_EQ(fingerprint(other), text);
  other.units = 2;
  EXPECT_NE(fingerprint(other), text);
  other = a_cpu();
  other.chip = "x86-64-v4";
  EXPECT_NE(fingerprint(other), text);
  other.name = std::string(1000, 'a');
  EXPECT_LT(fingerprint(other).size(), 100u);
}

TEST_F(PeaksCache, ReturnsWhatWasStored) {
  EXPECT_TRUE(cached_peaks(a_cpu()).empty());
  ASSERT_TRUE(store_peaks(a_cpu(), some_peaks()));
  const auto peaks = cached_peaks(a_cpu());
  ASSERT_EQ(peaks.size(), 2u);
  EXPECT_EQ(peaks[0].type, "float32");
  EXPECT_EQ(peaks[0].value, 1e11);
  EXPECT_EQ(peaks[1].method, "sum");
  const base::Json json = *base::read_json(file());
  EXPECT_EQ(json["machine"]["units"], 4);
  EXPECT_EQ(json["date"].get<std::string>().size(), 20u);
}

TEST_F(PeaksCache, KeepsAllQuantities) {
  std::vector<Peak> peaks = some_peaks();
  peaks.push_back({"latency", "kernel launch", 4e-6, "s", "measured", "empty kernels"});
  peaks.push_back({"bandwidth", "read, L2, one core", 5e10, "B/s", "measured", "sum"});
  ASSERT_TRUE(store_peaks(a_cpu(), peaks));
  const auto back = cached_peaks(a_cpu());
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(back[2].value, 4e-6);
  EXPECT_EQ(back[3].type, "read, L2, one core");
}

TEST(MergedPeaks, FreshOnesReplaceTheirOwnAndDenominatorsComeFirst) {
  const std::vector<Peak> stored{{"bandwidth", "write", 1, "B/s", "measured", "old"},
                                 {"bandwidth", "read", 2, "B/s", "measured", "old"},
                                 {"flops", "float32", 3, "FLOP/s", "measured", "old"}};
  const std::vector<Peak> fresh{{"latency", "kernel launch", 4, "s", "measured", "new"},
                                {"flops", "float32, one core", 5, "FLOP/s", "measured", "new"},
                                {"bandwidth", "write", 6, "B/s", "measured", "new"},
                                {"flops", "float64", 7, "FLOP/s", "measured", "new"}};
  const std::vector<Peak> all = merged_peaks(stored, fresh);
  std::vector<double> values;
  for (const Peak& peak : all) values.push_back(peak.value);
  // float64 and float32, then float32 of one core, then read, write (the new one), and the latency.
  EXPECT_EQ(values, (std::vector<double>{7, 3, 5, 2, 6, 4}));
  EXPECT_EQ(find_peak(all, "bandwidth", "")->type, "read");
  EXPECT_EQ(find_peak(all, "flops", "float32")->value, 3);
}

TEST(MergedPeaks, WhatABusyMachineDidDoesNotReplaceMore) {
  const std::vector<Peak> stored{{"flops", "float32", 100, "FLOP/s", "measured", "idle"},
                                 {"flops", "float64", 40, "FLOP/s", "measured", "loop, CPU share 50 %"}};
  const std::vector<Peak> fresh{{"flops", "float32", 60, "FLOP/s", "measured", "loop, CPU share 50 %"},
                                {"flops", "float64", 45, "FLOP/s", "measured", "loop, CPU share 70 %"}};
  const std::vector<Peak> busy = merged_peaks(stored, fresh);
  ASSERT_EQ(busy.size(), 2u);
  EXPECT_EQ(busy[0].value, 100);
  EXPECT_EQ(busy[1].value, 45);
  // An idle machine knows better, even if that is less.
  EXPECT_EQ(merged_peaks(stored, {{"flops", "float32", 60, "FLOP/s", "measured", "loop"}})[0].value, 60);
}

TEST(MergedPeaks, AShortMeasurementReplacesNoBetterOne) {
  const std::string quick = "loop, " + std::string(kShortMeasurement);
  const std::vector<Peak> stored{{"flops", "float32", 100, "FLOP/s", "measured", "full"},
                                 {"flops", "bfloat16", 989, "FLOP/s", "spec", "data sheet"},
                                 {"bandwidth", "read", 10, "B/s", "measured", quick},
                                 {"latency", "kernel launch", 2e-6, "s", "measured", "full"}};
  const std::vector<Peak> fresh{{"flops", "float32", 90, "FLOP/s", "measured", quick},
                                {"flops", "bfloat16", 800, "FLOP/s", "measured", quick},
                                {"bandwidth", "read", 11, "B/s", "measured", quick},
                                {"latency", "kernel launch", 3e-6, "s", "measured", quick}};
  const std::vector<Peak> all = merged_peaks(stored, fresh);
  EXPECT_EQ(find_peak(all, "flops", "float32")->value, 100);
  EXPECT_EQ(find_peak(all, "flops", "bfloat16")->value, 800);  // a data sheet is no measurement
  EXPECT_EQ(find_peak(all, "bandwidth", "read")->value, 11);
  EXPECT_EQ(find_peak(all, "latency", "kernel launch")->value, 2e-6);  // the shorter one is the better one
  // A full measurement replaces it, even by less.
  EXPECT_EQ(merged_peaks(stored, {{"flops", "float32", 90, "FLOP/s", "measured", "full"}})[0].value, 90);
}

TEST(FindPeak, MemoryIsItsFastestStream) {
  std::vector<Peak> peaks{{"bandwidth", "read", 20, "B/s", "measured", "sum"},
                          {"bandwidth", "triad", 26, "B/s", "measured", "triad"},
                          {"bandwidth", "copy", 24, "B/s", "measured", "copy"},
                          {"bandwidth", "read, L2", 90, "B/s", "measured", "sum"},
                          {"bandwidth", "read, L1, one core", 95, "B/s", "measured", "sum"},
                          {"bandwidth", "read, one core", 15, "B/s", "measured", "sum"},
                          {"bandwidth", "host to device, pinned", 70, "B/s", "measured", "copy"}};
  EXPECT_EQ(find_peak(peaks, "bandwidth", kMemoryStream)->type, "triad");
  peaks[5].value = 28;
  EXPECT_EQ(find_peak(peaks, "bandwidth", kMemoryStream)->type,
            "read, one core");  // all cores were slower: nobody knows why
  peaks[5].value = 15;
  // What was measured counts before what a data sheet promises.
  peaks.push_back({"bandwidth", "read", 40, "B/s", "spec", "data sheet"});
  EXPECT_EQ(find_peak(peaks, "bandwidth", kMemoryStream)->value, 26);
  EXPECT_EQ(find_peak({{"bandwidth", "read", 40, "B/s", "spec", ""}}, "bandwidth", kMemoryStream)->value, 40);
  EXPECT_EQ(find_peak({}, "bandwidth", kMemoryStream), nullptr);
}

TEST(CpuPeaksAreGood, BothStreamsAreKnown) {
  std::vector<Peak> peaks{{"bandwidth", "read", 20, "B/s", "measured", "sum"}};
  EXPECT_FALSE(cpu_peaks_are_good(peaks));  // as older versions stored them
  peaks.push_back({"bandwidth", "triad", 26, "B/s", "measured", "triad"});
  EXPECT_TRUE(cpu_peaks_are_good(peaks));
}

TEST(MeasuredWhileBusy, OnlyDenominatorsCount) {
  std::vector<Peak> peaks = some_peaks();
  EXPECT_FALSE(measured_while_busy(peaks));
  peaks.push_back({"bandwidth", "copy, L1", 1, "B/s", "measured", "copy, CPU share 40 %"});
  EXPECT_FALSE(measured_while_busy(peaks));
  peaks[1].method = "sum, CPU share 61 %";
  EXPECT_TRUE(measured_while_busy(peaks));
}

TEST_F(PeaksCache, AnotherMachineHasItsOwn) {
  ASSERT_TRUE(store_peaks(a_cpu(), some_peaks()));
  Device other = a_cpu();
  other.units = 8;
  EXPECT_TRUE(cached_peaks(other).empty());
}

TEST_F(PeaksCache, ADamagedFileIsNoFile) {
  ASSERT_TRUE(store_peaks(a_cpu(), some_peaks()));
  const std::string whole = *base::read_file(file(), 1 << 20);
  const std::size_t last_brace = whole.rfind('}');
  for (std::size_t length = 0; length <= last_brace; ++length) {
    ASSERT_TRUE(base::write_file(file(), whole.substr(0, length)));
    EXPECT_TRUE(cached_peaks(a_cpu()).empty()) << length;
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    EXPECT_TRUE(base::write_file(file(), text));
    return cached_peaks(a_cpu()).size();
  };
  EXPECT_EQ(with("\"schema_version\": 1", "\"schema_version\": 1"), 2u);  // the replacement itself does no harm
  EXPECT_EQ(with("\"schema_version\": 1", "\"schema_version\": 2"), 0u);
  EXPECT_EQ(with("\"schema_version\": 1", "\"schema_version\": \"1\""), 0u);
  EXPECT_EQ(with("100000000000.0", "-1"), 0u);
  EXPECT_EQ(with("100000000000.0", "1e999"), 0u);
  EXPECT_EQ(with("100000000000.0", "\"fast\""), 0u);
  EXPECT_EQ(with("\"flops\"", "\"flips\""), 0u);
  EXPECT_EQ(with("\"peaks\": [", "\"peaks\": [7,"), 0u);
  EXPECT_EQ(with(fingerprint(a_cpu()), "another"), 0u);
  EXPECT_EQ(with(whole, "[]"), 0u);
}

TEST_F(PeaksCache, AFolderThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(base::write_file(machine_.root() + "/file", "x"));
  ::setenv("LLMPROF_CACHE_DIR", (machine_.root() + "/file/below").c_str(), 1);
  EXPECT_FALSE(store_peaks(a_cpu(), some_peaks()));
}

TEST(PeakKernels, AllInstructionSetsComputeTheSame) {
  alignas(64) std::uint64_t buffer[4 * kReadBlockBytes / sizeof(std::uint64_t)];
  std::iota(std::begin(buffer), std::end(buffer), 7u);
  const std::uint64_t expected = std::accumulate(std::begin(buffer), std::end(buffer), std::uint64_t{0});
  for (const PeakKernels& kernels : peak_kernels()) {
    if (!kernels.supported()) continue;
    EXPECT_EQ(kernels.sum(reinterpret_cast<const std::byte*>(buffer), sizeof buffer, 1), expected) << kernels.isa;
    for (const auto kernel : {kernels.multiply_add_float32, kernels.multiply_add_float64}) {
      double sink[2] = {0.5, 0};
      const std::int64_t flops = kernel(100, sink);
      EXPECT_EQ(flops % (100 * 2), 0);
      // Every chain is at 1 after 100 halvings of its distance; the sum is the number of chains and lanes: flops / 200.
      EXPECT_NEAR(sink[1], static_cast<double>(flops) / 200, 1e-3) << kernels.isa;
      double once[2] = {0.5, 0};
      EXPECT_EQ(kernel(1, once) * 100, flops);
    }
  }
}

TEST(MeasurePeaks, StopsWhenAskedTo) {
  const auto peaks = measure_cpu_peaks(a_cpu(), [](const base::ProgressUpdate&) { return false; });
  ASSERT_FALSE(peaks);
  EXPECT_EQ(peaks.error().code, ErrorCode::kInterrupted);
}

TEST(MeasurePeaks, MeasuresTwoTypesAndTwoBandwidths) {
  Device device = probe_cpu();
  device.memory_bytes = 256 << 20;  // a small buffer: this tests the machinery, not the machine
  int updates = 0;
  const auto peaks = measure_cpu_peaks(device, [&](const base::ProgressUpdate&) { return ++updates > 0; });
  ASSERT_TRUE(peaks) << peaks.error().message;
  ASSERT_EQ(peaks->size(), 4u);
  const std::string threads = ", " + std::to_string(device.units) + " thread";
  for (const Peak& peak : *peaks) {
    EXPECT_GT(peak.value, 1e6) << peak.type;
    EXPECT_EQ(peak.source, "measured");
    EXPECT_THAT(peak.method, HasSubstr(threads));
    EXPECT_THAT(peak.method, HasSubstr("best of "));
  }
  EXPECT_EQ((*peaks)[0].type, "float32");
  EXPECT_EQ((*peaks)[1].type, "float64");
  EXPECT_EQ((*peaks)[2].type, "read");
  EXPECT_EQ((*peaks)[3].type, "triad");
  EXPECT_THAT((*peaks)[2].method, HasSubstr("sum of 67.1 MB"));  // a quarter of 256 MiB
  EXPECT_GT(updates, 5);
}

TEST(MeasurePeaks, StopsBetweenRounds) {
  int updates = 0;
  const auto peaks = measure_cpu_peaks(probe_cpu(), [&](const base::ProgressUpdate&) { return ++updates < 4; });
  EXPECT_FALSE(peaks);
  EXPECT_EQ(updates, 4);
}

TEST(DeviceCard, RidgeIsFlopsPerByte) {
  EXPECT_DOUBLE_EQ(*ridge(some_peaks(), "float32"), 5);  // 1e11 / 2e10
  EXPECT_FALSE(ridge(some_peaks(), "float64"));
  EXPECT_FALSE(ridge({}, "float32"));
}

TEST(DeviceCard, ShowsPeaksAndWhereTheyComeFrom) {
  const std::string card = device_card(a_cpu(), some_peaks());
  EXPECT_THAT(card, HasSubstr("float32    100 GFLOP/s, ridge at 5.00 FLOP per byte\n             measured: loop\n"));
  EXPECT_THAT(card, HasSubstr("20.0 GB/s"));
  EXPECT_THAT(device_card(a_cpu(), {}), HasSubstr("llmprof roofline"));
  std::vector<Peak> more = some_peaks();
  more.push_back({"bandwidth", "copy, L1", 1e12, "B/s", "measured", "copy"});
  EXPECT_THAT(device_card(a_cpu(), more), HasSubstr("more       1 measured, of caches"));
  const base::Json json = device_json(a_cpu(), some_peaks());
  EXPECT_EQ(json["peaks"][0]["ridge_flops_per_byte"], 5);
  EXPECT_EQ(device_json(a_cpu(), {})["peaks"].size(), 0u);
}

}  // namespace
}  // namespace llmprof::hw
