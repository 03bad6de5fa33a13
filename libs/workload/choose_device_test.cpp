#include "workload/choose_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/cuda/testing/test_device.h"

namespace llmprof::workload {
namespace {

TEST(ChooseDevice, TheCpuNeedsNothing) {
  const auto device = choose_device("cpu");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->gpu, nullptr);
  EXPECT_EQ(device->reason, "");
}

TEST(ChooseDevice, UnknownNamesAreRefusedWithTheKnownOnes) {
  const auto device = choose_device("tpu");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUsage);
  EXPECT_THAT(device.error().message, testing::HasSubstr("'tpu'"));
  EXPECT_EQ(device.error().hint, "known: cpu, cuda, auto");
}

// With a GPU or without: auto takes what cuda would, and else the CPU with cuda's reason.
TEST(ChooseDevice, AutoTakesAGpuOrSaysWhyNot) {
  const auto gpu = choose_device("cuda");
  const auto device = choose_device("auto");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->gpu != nullptr, gpu.has_value());
  if (gpu) {
    EXPECT_EQ(device->reason, "device cuda: " + (*gpu).gpu->name());
  } else {
    EXPECT_EQ(gpu.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(gpu.error().hint, testing::HasSubstr("--device cpu"));
    EXPECT_EQ(device->reason, "device cpu: " + gpu.error().message);
  }
}

TEST(ChooseType, TheCpuHasFloat32Only) {
  const ChosenDevice cpu;
  EXPECT_EQ(*choose_type("", cpu), ElementType::kFloat32);
  EXPECT_EQ(*choose_type("float32", cpu), ElementType::kFloat32);
  EXPECT_EQ(choose_type("bf16", cpu).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(choose_type("int8", cpu).error().code, ErrorCode::kUsage);
}

TEST(ChooseType, AGpuTakesBfloat16UnlessAsked) {
  const ChosenDevice gpu{cuda::test_device(), ""};
  EXPECT_EQ(*choose_type("", gpu), ElementType::kBfloat16);
  EXPECT_EQ(*choose_type("bfloat16", gpu), ElementType::kBfloat16);
  EXPECT_EQ(*choose_type("float32", gpu), ElementType::kFloat32);
}

}  // namespace
}  // namespace llmprof::workload
