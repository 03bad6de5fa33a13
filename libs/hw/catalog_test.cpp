// The data of the catalogue: every number sourced and plausible, and the figures that other tools have wrong.

#include "hw/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/asset.h"
#include "hw/device_card.h"

namespace llmprof::hw {

std::span<const base::Asset> assets();

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

double peak(const char* device, const char* type) {
  const DeviceSpec* spec = find_device(device);
  if (spec == nullptr || spec->peak(type) == nullptr) return 0;
  return spec->peak(type)->value / 1e12;
}

double gigabytes_per_second(const char* device) {
  const DeviceSpec* spec = find_device(device);
  return spec == nullptr || spec->figure("bandwidth") == nullptr ? 0 : spec->figure("bandwidth")->value / 1e9;
}

std::string named(const char* name) {
  const DeviceSpec* spec = find_device(name);
  return spec == nullptr ? "" : spec->short_names.front();
}

TEST(Catalog, EveryFileIsReadableAndNotEmpty) {
  ASSERT_GE(assets().size(), 8u);
  std::size_t count = 0;
  for (const base::Asset& asset : assets()) {
    const auto some = parse_catalog(asset.bytes, asset.path);
    ASSERT_TRUE(some) << some.error().message;
    EXPECT_FALSE(some->empty()) << asset.path;
    count += some->size();
  }
  EXPECT_EQ(catalog().size(), count);
}

TEST(Catalog, EveryNumberHasAUnitATagAndASource) {
  for (const DeviceSpec& spec : catalog()) {
    for (const std::vector<Figure>* figures : {&spec.figures, &spec.peaks}) {
      for (const Figure& figure : *figures) {
        EXPECT_GT(figure.value, 0) << spec.name << ' ' << figure.key;
        EXPECT_FALSE(figure.source.empty() || figure.tag.empty()) << spec.name << ' ' << figure.key;
        EXPECT_TRUE(!figure.unit.empty() || figure.key == "units") << spec.name << ' ' << figure.key;
      }
    }
  }
}

TEST(Catalog, EveryDeviceCanBeComparedWithOthers) {
  for (const DeviceSpec& spec : catalog()) {
    EXPECT_NE(spec.figure("bandwidth"), nullptr) << spec.name;
    EXPECT_NE(spec.figure("memory"), nullptr) << spec.name;
    EXPECT_TRUE(spec.peak("float16") != nullptr || spec.peak("float32") != nullptr) << spec.name;
    EXPECT_THAT((std::set<std::string>{"gpu", "npu", "cpu+gpu"}), Contains(spec.kind)) << spec.name;
  }
}

TEST(Catalog, NamesAreUnique) {
  std::set<std::string> seen;
  for (const DeviceSpec& spec : catalog()) {
    std::vector<std::string> names{spec.name};
    names.insert(names.end(), spec.short_names.begin(), spec.short_names.end());
    names.insert(names.end(), spec.reported_names.begin(), spec.reported_names.end());
    for (const std::string& name : names) EXPECT_EQ(find_device(name), &spec) << name;
    for (const std::string& name : spec.short_names) EXPECT_TRUE(seen.insert(name).second) << name;
  }
}

// first / second of a device's peaks; nothing unless it has both.
std::optional<double> ratio(const DeviceSpec& spec, std::string_view first, std::string_view second) {
  const Figure *a = spec.peak(first), *b = spec.peak(second);
  return a == nullptr || b == nullptr ? std::nullopt : std::optional(a->value / b->value);
}

// Fewer bits are never slower, and tensor cores never slower than the lanes beside them.
TEST(Catalog, PeaksAreInOrder) {
  const std::pair<const char*, const char*> order[] = {{"float64_vector", "float64"}, {"float32_vector", "float32"},
                                                       {"float64", "float32"},        {"float32", "tf32"},
                                                       {"tf32", "float16"},           {"tf32", "bfloat16"},
                                                       {"float32", "float16"},        {"float16", "float8"},
                                                       {"bfloat16", "float8"},        {"float8", "float6"},
                                                       {"float6", "float4"},          {"float8", "float4"},
                                                       {"float16", "int8"},           {"int8", "int4"},
                                                       {"float16", "float16_acc16"}};
  for (const DeviceSpec& spec : catalog()) {
    for (const auto& [slow, fast] : order) {
      EXPECT_LE(ratio(spec, slow, fast).value_or(0), 1) << spec.name << ": " << slow << " > " << fast;
    }
  }
}

// With sparsity, bfloat16 would be twice float16, or float8 and int8 four times as fast.
TEST(Catalog, NoRateIsOneWithSparsity) {
  for (const DeviceSpec& spec : catalog()) {
    EXPECT_NEAR(ratio(spec, "bfloat16", "float16").value_or(1), 1, 0.01) << spec.name;
    // GeForce halves float16 where sums are float32, but not int8.
    const bool halved = spec.peak("float16_acc16") != nullptr;
    const char* half = halved ? "float16_acc16" : "float16";
    EXPECT_LE(ratio(spec, "float8", half).value_or(0), 2.1) << spec.name;
    EXPECT_LE(ratio(spec, "int8", half).value_or(0), 2.1) << spec.name;
  }
}

TEST(Catalog, RidgesSizesAndClocksArePlausible) {
  for (const DeviceSpec& spec : catalog()) {
    const std::vector<Peak> peaks = spec_peaks(spec);
    for (const Peak& peak : peaks) {
      if (peak.quantity != "flops" || peak.type.starts_with("float64")) continue;
      // 4 for float32 on an H20-like bandwidth monster, 1875 for float4 on a GB300.
      EXPECT_THAT(ridge(peaks, peak.type).value_or(-1), AllOf(Ge(4), Le(2000))) << spec.name << ' ' << peak.type;
    }
    const Device device = device_of(spec);
    EXPECT_THAT(device.memory_bytes, AllOf(Ge(8ll << 30), Le(1ll << 40))) << spec.name;
    EXPECT_THAT(device.cache_bytes, Le(512ll << 20)) << spec.name;
    EXPECT_THAT(device.units, Le(512)) << spec.name;
    EXPECT_THAT(device.clock_mhz.value_or(2000), AllOf(Ge(1000), Le(3000))) << spec.name;
  }
}

// What torch/_inductor/analysis/device_info.py, LLM-Viewer, Lightning and resellers have wrong.
TEST(Catalog, KnownWrongFiguresStayAway) {
  EXPECT_EQ(gigabytes_per_second("l4"), 300);         // not the H100's 3,350
  EXPECT_EQ(peak("l4", "bfloat16"), 121);             // not 242, with sparsity
  EXPECT_EQ(peak("h100-sxm", "bfloat16"), 989);       // not 1,979, with sparsity
  EXPECT_EQ(peak("h100-sxm", "float8"), 1979);        // not 3,958
  EXPECT_EQ(peak("h100-sxm", "tf32"), 494.5);         // not the A100's 156
  EXPECT_EQ(gigabytes_per_second("h100-sxm"), 3350);  // not 3,072
  EXPECT_EQ(peak("a100-80gb", "tf32"), 156);
  EXPECT_EQ(peak("a100-80gb", "float8"), 0);  // Ampere has none
  EXPECT_EQ(peak("t4", "float16"), 65);
  EXPECT_EQ(peak("t4", "bfloat16"), 0);  // Turing has none
  EXPECT_EQ(gigabytes_per_second("t4"), 320);
  EXPECT_EQ(peak("a10g", "float16"), 70);  // not the A10's 125
  EXPECT_EQ(peak("a10", "float16"), 125);
  EXPECT_EQ(peak("rtx4090", "bfloat16"), 165.2);  // not 330.3, with sums in float16
  EXPECT_EQ(peak("b300", "int8"), 0);             // sources disagree by a factor of 30
  EXPECT_EQ(peak("mi300x", "float16"), 1307.4);   // not 2,615, with sparsity
}

TEST(Catalog, ConflictsAreTold) {
  for (const char* name : {"t4", "a10g", "b200", "b300", "l4", "h100-sxm", "m4-max", "rtx4090", "gh200-144gb"}) {
    ASSERT_NE(find_device(name), nullptr) << name;
    EXPECT_THAT(find_device(name)->conflicts, ::testing::Not(IsEmpty())) << name;
  }
}

TEST(FindDevice, KnowsTheNamesThatDriversReport) {
  EXPECT_EQ(named("Tesla T4"), "t4");
  EXPECT_EQ(named("Tesla V100-SXM2-32GB"), "v100-32gb");
  EXPECT_EQ(named("NVIDIA A100-SXM4-40GB"), "a100-40gb");
  EXPECT_EQ(named("A100-SXM4-80GB"), "a100-80gb");  // drivers before 470
  EXPECT_EQ(named("NVIDIA A100 80GB PCIe"), "a100-pcie-80gb");
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(named("NVIDIA H100 PCIe"), "h100-pcie");
  EXPECT_EQ(named("NVIDIA H100 NVL"), "h100-nvl");
  EXPECT_EQ(named("NVIDIA H200"), "h200");
  EXPECT_EQ(named("NVIDIA GH200 480GB"), "gh200");
  EXPECT_EQ(named("NVIDIA B200"), "b200");
  EXPECT_EQ(named("NVIDIA B300 SXM6 AC"), "b300");
  EXPECT_EQ(named("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(named("NVIDIA RTX PRO 6000 Blackwell Workstation Edition"), "rtx-pro-6000");
  EXPECT_EQ(named("Apple M3 Ultra"), "m3-ultra");
}

TEST(FindDevice, DoesNotMindCasePunctuationAndVendor) {
  EXPECT_EQ(named("H200"), "h200");
  EXPECT_EQ(named("  nvidia_a100 sxm4 80gb "), "a100-80gb");
  EXPECT_EQ(named("M3 Ultra"), "m3-ultra");
  EXPECT_EQ(named("RTX 4090"), "rtx4090");
}

TEST(FindDevice, NeverGuesses) {
  for (const char* name :
       {"", " ", "NVIDIA", "h100", "a100", "v100", "NVIDIA H100", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "GRID T4-16Q",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", "NVIDIA H20-3e", "NVIDIA Z9000",
        "NVIDIA GeForce GTX 1080 Ti", "h2000", "t", "4"}) {
    EXPECT_EQ(find_device(name), nullptr) << name;
  }
  EXPECT_EQ(find_device(std::string(100'000, 'x')), nullptr);
}

TEST(Suggest, NamesTheCandidates) {
  EXPECT_THAT(suggest("h100"), ElementsAre("h100-sxm", "h100-pcie", "h100-nvl"));
  EXPECT_THAT(suggest("A100"), ElementsAre("a100-40gb", "a100-80gb", "a100-pcie-40gb", "a100-pcie-80gb"));
  EXPECT_THAT(suggest("rtx 4080"), Contains("rtx4090"));  // one letter differs
  EXPECT_THAT(suggest("ultra"), ElementsAre("m1-ultra", "m2-ultra", "m3-ultra"));
  EXPECT_THAT(suggest("zzzzzz"), IsEmpty());
  EXPECT_THAT(suggest(""), IsEmpty());
  EXPECT_LE(suggest("a").size(), 8u);
}

TEST(SpecPeaks, SayWhereTheyComeFrom) {
  const std::vector<Peak> h200 = spec_peaks(*find_device("h200"));
  const Peak* brain = find_peak(h200, "flops", "bfloat16");
  ASSERT_NE(brain, nullptr);
  EXPECT_EQ(brain->value, 989e12);
  EXPECT_EQ(brain->source, "spec");
  EXPECT_THAT(brain->method, HasSubstr("dense, 1830 MHz, NVIDIA H200 product page"));
  const Peak* bandwidth = find_peak(h200, "bandwidth", "");
  ASSERT_NE(bandwidth, nullptr);
  EXPECT_EQ(bandwidth->value, 4.8e12);
  EXPECT_EQ(bandwidth->unit, "B/s");
  const std::vector<Peak> a30 = spec_peaks(*find_device("a30"));
  EXPECT_THAT(find_peak(a30, "flops", "bfloat16")->method, HasSubstr(", unverified"));
  const std::vector<Peak> geforce = spec_peaks(*find_device("rtx3090"));
  EXPECT_THAT(find_peak(geforce, "flops", "float16")->method, HasSubstr("float32 accumulate"));
}

TEST(SpecPeaks, FormatsOfOneWidthShareARate) {
  const std::vector<Peak> b200 = spec_peaks(*find_device("b200"));
  EXPECT_EQ(find_peak(b200, "flops", "float8_e4m3")->value, 4500e12);
  EXPECT_EQ(find_peak(b200, "flops", "mxfp4")->value, 9000e12);
  EXPECT_EQ(find_peak(b200, "flops", "float7"), nullptr);
  EXPECT_EQ(find_peak({}, "flops", "float32"), nullptr);
}

TEST(DeviceOf, CarriesSizesInBytes) {
  const Device t4 = device_of(*find_device("t4"));
  EXPECT_EQ(t4.kind, "gpu");
  EXPECT_EQ(t4.memory_bytes, 16ll << 30);
  EXPECT_EQ(t4.cache_bytes, 4ll << 20);
  EXPECT_EQ(t4.units, 40);
}

}  // namespace
}  // namespace llmprof::hw
