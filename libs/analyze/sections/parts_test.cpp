#include <gtest/gtest.h>

#include <map>

#include "analyze/sections/sections.h"
#include "analyze/summary.h"
#include "trace/test_run.h"

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

// What was recorded names libraries by their path. The time of the call is the host's: it says nothing of the device.
TEST(Shapes, CallsOfAGpuLibraryWhoseKernelsWereNotSeenHaveNoTime) {
  const trace::TestFolder folder;
  trace::RunWriter writer = std::move(*trace::RunWriter::create(folder / "x.llmprof"));
  trace::add_small_run(writer);
  const auto name = [&](std::string_view text) { return writer.strings().intern(text); };
  for (const char* library : {"/venv/lib/libcublasLt.so.13", "/usr/lib/libopenblas.so.0"}) {
    writer.add(trace::GemmRow{.id = library[1] == 'v' ? 100 : 101,
                              .begin_ns = 2000,
                              .end_ns = 2500,
                              .thread_id = 1,
                              .library = name(library),
                              .function = name("gemm"),
                              .m = 700,
                              .n = 700,
                              .k = 700,
                              .type_a = name("float32")});
  }
  ASSERT_TRUE(writer.finish({}));
  auto run = trace::Run::open(folder / "x.llmprof");
  ASSERT_TRUE(run);
  const auto summary = summarise(*run, {});
  ASSERT_TRUE(summary);
  std::map<std::string, std::int64_t> times;
  for (const GemmShape& shape : summary->gemms) times[shape.library] = shape.time_ns;
  EXPECT_EQ(times["/venv/lib/libcublasLt.so.13"], 0);
  EXPECT_EQ(times["/usr/lib/libopenblas.so.0"], 500);
}

}  // namespace

}  // namespace llmprof::analyze
