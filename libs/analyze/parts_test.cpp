#include "analyze/parts.h"

#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

Part module(std::string name, std::int64_t total_ns, std::int64_t kernel_ns) {
  return {.name = std::move(name), .stage = "decode", .total_ns = total_ns, .kernel_ns = kernel_ns};
}

TEST(SetTimes, KernelsThatOutlastTheirRangesCountInTheirModuleAndThoseAround) {
  // The host launches and goes on: 10 ns in the range "mlp", 4 in "mlp.up", while the kernel of "mlp.up" takes 30.
  std::vector<Part> modules = {module("mlp", 10, 0), module("mlp.up", 4, 30), module("norm", 5, 2),
                               module("mlp2", 7, 0)};
  set_times(modules);
  EXPECT_EQ(modules[0].time_ns, 30);
  EXPECT_EQ(modules[1].time_ns, 30);
  EXPECT_EQ(modules[2].time_ns, 5);  // on a CPU the kernel lies inside its range
  EXPECT_EQ(modules[3].time_ns, 7);  // "mlp" is no part of "mlp2"
}

}  // namespace
}  // namespace llmprof::analyze
