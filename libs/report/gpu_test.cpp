#include "report/sections.h"

#include <gtest/gtest.h>

#include "report/drawn.h"

namespace llmprof::report {
namespace {

TEST(GpuTables, WithoutAGpuThereIsNothing) {
  const Page page;
  EXPECT_EQ(gpu_coverage(page), "");
  EXPECT_EQ(drawn(kernel_table, page), "");
  EXPECT_EQ(drawn(source_table, page), "");
  EXPECT_EQ(gap_lines(page, {}), "");
}

Page graph_page() {
  Page page;
  analyze::Summary& s = page.summary;
  s.coverage.gpu_ns = 1000;
  s.coverage.gpu_placed_ns = 995;
  s.coverage.gpu_stage_ns = 995;
  s.coverage.gpu_node_ns = 1000;
  s.coverage.estimated_ns = 900;
  s.coverage.estimated_placed_ns = 900;
  s.coverage.graphs = 1;
  s.coverage.graph_launches = 512;
  s.coverage.graph_launches_by_node = 4;
  return page;
}

TEST(GpuCoverage, SaysWhatIsMeasuredAndWhatIsEstimated) {
  const std::string text = gpu_coverage(graph_page());
  EXPECT_NE(text.find("99.5 % of it attributed to a stage and a kernel or graph"), std::string::npos) << text;
  EXPECT_NE(text.find("512 launches of 1 graph, 4 of them recorded node by node. 10.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("measured; 90.0"), std::string::npos) << text;
}

TEST(Estimate, NamesItsBasis) {
  Page page = graph_page();
  page.summary.stages.push_back(
      {.name = "decode", .estimated_ns = 900, .graph_launches = 512, .graph_launches_by_node = 4});
  page.summary.stages.push_back({.name = "prefill"});
  EXPECT_EQ(estimate_line(page, "decode"), "  ~: partly estimated, from 4 of 512 graph launches.\n");
  EXPECT_EQ(estimate_line(page, "prefill"), "");
}

TEST(Estimate, OfSampledKernelsIsFromTheSameLaunches) {
  Page page = graph_page();
  page.summary.coverage.graph_launches = page.summary.coverage.graph_launches_by_node = 0;
  page.summary.coverage.estimated_kernels = 7;
  page.summary.stages.push_back({.name = "decode", .estimated_ns = 900});
  EXPECT_EQ(estimate_line(page, "decode"), "  ~: partly estimated, from the same launches at other times.\n");
  EXPECT_NE(gpu_coverage(page).find("10.0 % of the GPU time was measured"), std::string::npos) << gpu_coverage(page);
}

TEST(Gaps, StandWithTheirStages) {
  Page page;
  page.summary.gpu.gaps = {{"", "another profiler took the buffers", 2, 3000},
                           {"decode", "another profiler took the buffers", 1, 1000}};
  EXPECT_EQ(gap_lines(page, {}),
            "  Not recorded: 3.00 us in 2 gaps (another profiler took the buffers); of decode 1.00 us.\n");
}

TEST(Sources, SayHowToGetThem) {
  Page page;
  page.summary.gpu.by = "line";
  EXPECT_NE(drawn(source_table, page).find("--stacks python"), std::string::npos);
}

}  // namespace
}  // namespace llmprof::report
