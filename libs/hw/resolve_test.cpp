#include "hw/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/testing/fake_machine.h"

namespace llmprof::hw {
namespace {

using ::testing::HasSubstr;

Device a_cpu() { return {.kind = "cpu", .name = "Fake CPU 9000", .units = 4, .memory_bytes = 16ll << 30}; }
Device a_gpu(const char* name) { return {.kind = "gpu", .name = name, .units = 132, .memory_bytes = 80ll << 30}; }

class Resolve : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("LLMPROF_CACHE_DIR", machine_.root().c_str(), 1); }
  void TearDown() override { ::unsetenv("LLMPROF_CACHE_DIR"); }
  FakeMachine machine_;
  const std::vector<Device> here_{a_cpu(), a_gpu("NVIDIA H100 80GB HBM3"), a_gpu("Tesla T4"), a_gpu("NVIDIA Z9000")};
};

TEST_F(Resolve, NoNameIsTheBestDeviceOfThisMachine) {
  EXPECT_EQ(resolve_device("", here_)->device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(resolve_device("", {a_cpu()})->device.kind, "cpu");
  EXPECT_FALSE(resolve_device("", std::vector<Device>{}));
}

TEST_F(Resolve, KnowsThisMachineByKindNumberAndName) {
  EXPECT_EQ(resolve_device("cpu", here_)->device.name, "Fake CPU 9000");
  EXPECT_EQ(resolve_device("gpu", here_)->device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(resolve_device("1", here_)->device.name, "Tesla T4");
  EXPECT_EQ(resolve_device("Fake CPU 9000", here_)->device.kind, "cpu");
  const auto mine = resolve_device("t4", here_);  // the one that is here, not the catalogue's
  EXPECT_TRUE(mine->here);
  EXPECT_EQ(mine->device.name, "Tesla T4");
  EXPECT_EQ(mine->spec, find_device("t4"));
}

TEST_F(Resolve, KnowsTheCatalogue) {
  const auto spec = resolve_device("b200", here_);
  ASSERT_TRUE(spec);
  EXPECT_FALSE(spec->here);
  EXPECT_EQ(spec->device.name, "NVIDIA B200");
  EXPECT_EQ(find_peak(spec->peaks, "flops", "float8_e4m3")->value, 4500e12);
}

TEST_F(Resolve, NamesMatchLoosely) {
  EXPECT_EQ(resolve_device("H100 PCIe", {a_cpu()})->device.name, "NVIDIA H100 PCIe");
  EXPECT_EQ(resolve_device("a100 80gb", {a_cpu()})->device.name, "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(resolve_device("h100nvl", {a_cpu()})->device.name, "NVIDIA H100 NVL");
  EXPECT_EQ(resolve_device("rx 7900", {a_cpu()})->device.name, "AMD Radeon RX 7900 XTX");
}

TEST_F(Resolve, AnUnknownNameIsAnErrorWithCandidates) {
  const auto missing = resolve_device("h100", {a_cpu()});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("h100 fits several devices: h100-sxm, h100-pcie, h100-nvl"));
  EXPECT_THAT(resolve_device("b20", {a_cpu()}).error().message, HasSubstr("b200, gb200"));
  EXPECT_THAT(resolve_device("rtx 4080", {a_cpu()}).error().hint, HasSubstr("did you mean rtx4090"));
  EXPECT_THAT(resolve_device("a100 80gb mig 1g", {a_cpu()}).error().message, HasSubstr("unknown device"));
  EXPECT_THAT(resolve_device("gpu", {a_cpu()}).error().message, HasSubstr("no GPU"));
  EXPECT_THAT(resolve_device("7", here_).error().message, HasSubstr("no GPU 7: it has 3"));
  EXPECT_FALSE(resolve_device("-1", here_));
  EXPECT_FALSE(resolve_device("99999999999999999999999", here_));
}

TEST_F(Resolve, ADeviceOfThisMachineWithoutEntryHasNoPeaks) {
  const auto odd = resolve_device("2", here_);
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->peaks.empty());
  EXPECT_EQ(odd->spec, nullptr);
  EXPECT_TRUE(resolve_device("cpu", here_)->peaks.empty());  // not measured, and no guess
}

TEST_F(Resolve, MeasuredPeaksTakePrecedence) {
  const Device gpu = a_gpu("Tesla T4");
  ASSERT_TRUE(store_peaks(gpu, {{"flops", "float16", 50e12, "FLOP/s", "measured", "GEMM"}}));
  const std::vector<Peak> peaks = known_peaks(gpu);
  EXPECT_EQ(find_peak(peaks, "flops", "float16")->value, 50e12);
  EXPECT_EQ(find_peak(peaks, "flops", "float16")->source, "measured");
  EXPECT_EQ(find_peak(peaks, "flops", "float32")->value, 8.1e12);
  EXPECT_EQ(find_peak(peaks, "flops", "float32")->source, "spec");
  EXPECT_EQ(std::count_if(peaks.begin(), peaks.end(), [](const Peak& p) { return p.type == "float16"; }), 1);
}

TEST_F(Resolve, ACpuNeverGetsSpecPeaks) {
  Device odd = a_cpu();
  odd.name = "NVIDIA H200";
  EXPECT_TRUE(with_spec_peaks(odd, {}).empty());
}

}  // namespace
}  // namespace llmprof::hw
