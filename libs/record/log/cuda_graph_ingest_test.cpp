// CUDA graphs of hand-made logs: nodes, their clones, launches as a whole and node by node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/run/run_ingest.h"
#include "record/testing/cuda_log_builder.h"
#include "record/testing/recording.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kLosses = "SELECT name, count, coalesce(detail, '') FROM loss ORDER BY name, detail";
constexpr const char* kNodes =
    "SELECT node, captured_node, n.name, kind, captured_ns, tid, m FROM graph_node n LEFT JOIN thread t ON t.id = "
    "thread_id LEFT JOIN gemm g ON g.id = gemm_id ORDER BY node";

class CudaGraphs : public testing::Test {
 protected:
  CudaGraphs() : log(77), cuda(log) {
    log.process({.ts_ns = kBegin, .pid = 77, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3", "python3");
    log.thread(1, 77, "main", kBegin + 10);
    cuda.device(0, "NVIDIA H200", 1, 2);
  }
  void ingest() {
    log.process({.ts_ns = kBegin + 900'000, .pid = 77, .ended = 1}, "/usr/bin/python3", "");
    recording.info(info_of(77)).log("77.log", log.bytes());
  }
  // A kernel node at `ts_ns` in graph 5; its clone, numbered 100 higher, in the executable graph 6.
  void capture(std::uint64_t node, std::uint64_t ts_ns, const std::string& name) {
    cuda.node(1, {.ts_ns = ts_ns, .node = node, .graph = 5, .stack = stack, .kind = wire::GraphNodeKind::kKernel},
              name);
  }
  void instantiate(std::uint64_t node, std::uint64_t ts_ns, std::uint64_t clone, std::uint32_t graph = 6) {
    cuda.node(
        1, {.ts_ns = ts_ns, .node = clone, .cloned_from = node, .graph = graph, .kind = wire::GraphNodeKind::kKernel});
  }

  LogBuilder log;
  CudaLogBuilder cuda;
  wire::DefinitionId stack = 0;
  Recording recording;
};

// A launch as a whole, and one node by node: the latter lasts from 2 000 to 2 400.
TEST_F(CudaGraphs, WholeAndSampledLaunches) {
  stack = cuda.stack("forward");
  const auto replay = cuda.stack("decode");
  capture(1, kBegin + 100, "_Z3onev");
  cuda.launch(1, {.begin_ns = kBegin + 90, .end_ns = kBegin + 110, .correlation = 3, .captured = 1});
  capture(2, kBegin + 200, "");
  cuda.gemm(1, {.begin_ns = kBegin + 190, .end_ns = kBegin + 210, .m = 8, .n = 1, .k = 1, .shape = cuda.gemm_shape()});
  instantiate(1, kBegin + 300, 101);
  instantiate(2, kBegin + 301, 102);
  const auto one = cuda.kernel_shape("_Z3onev"), two = cuda.kernel_shape("two");
  cuda.launch(1, {.begin_ns = kBegin + 900,
                  .end_ns = kBegin + 950,
                  .correlation = 10,
                  .stack = replay,
                  .graph = 6,
                  .op = wire::LaunchOp::kGraph});
  cuda.graph_launch({.begin_ns = kBegin + 1000, .end_ns = kBegin + 1500, .correlation = 10, .graph = 6, .stream = 7});
  cuda.launch(1, {.begin_ns = kBegin + 1900,
                  .end_ns = kBegin + 1950,
                  .correlation = 11,
                  .stack = replay,
                  .graph = 6,
                  .op = wire::LaunchOp::kGraph});
  cuda.kernel({.begin_ns = kBegin + 2200,
               .end_ns = kBegin + 2400,
               .graph_node = 102,
               .correlation = 11,
               .shape = two,
               .stream = 7,
               .graph = 6});
  cuda.kernel({.begin_ns = kBegin + 2000,
               .end_ns = kBegin + 2100,
               .graph_node = 101,
               .correlation = 11,
               .shape = one,
               .stream = 7,
               .graph = 6});
  ingest();
  EXPECT_THAT(
      recording.rows("SELECT l.begin_ns, l.end_ns, nodes_recorded, launch_begin_ns, launch_end_ns, tid, stream, "
                     "function FROM graph_launch l JOIN thread t ON t.id = thread_id JOIN stack USING (stack_id) "
                     "JOIN frame f ON f.id = frame_id ORDER BY l.begin_ns"),
      ElementsAre("1001000|1001500|false|1000900|1000950|77|7|decode",
                  "1002000|1002400|true|1001900|1001950|77|7|decode"));
  EXPECT_THAT(recording.rows(kNodes), ElementsAre("1|-|one|kernel|1000100|77|-", "2|-|-|kernel|1000200|77|8",
                                                  "101|1|one|kernel|1000100|77|-", "102|2|two|kernel|1000200|77|8"));
  EXPECT_THAT(recording.rows("SELECT k.name, k.launch_begin_ns, l.begin_ns, n.node, m, f.function FROM kernel k JOIN "
                             "graph_launch l ON l.id = graph_launch_id JOIN graph_node n ON n.id = graph_node_id LEFT "
                             "JOIN gemm g ON g.id = k.gemm_id JOIN stack s ON s.stack_id = k.stack_id JOIN frame f ON "
                             "f.id = frame_id ORDER BY k.begin_ns"),
              ElementsAre("one|1001900|1002000|101|-|forward", "two|1001900|1002000|102|8|forward"));
  // One graph was captured, one launched; the product ran in graphs only.
  EXPECT_THAT(
      recording.rows("SELECT (SELECT count(DISTINCT graph) FROM graph_node), (SELECT count(DISTINCT graph) FROM "
                     "graph_launch), (SELECT count(*) FROM graph_node n JOIN graph_launch l USING (graph)), "
                     "(SELECT count(kernel_id) FROM gemm)"),
      ElementsAre("2|1|4|0"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
  const auto findings = check_run(recording.run());
  ASSERT_TRUE(findings);
  EXPECT_TRUE(findings->empty()) << findings->front().where << ": " << findings->front().what;
}

// 101 is a clone of 51, which is a clone of 1. 52 and 53 are clones of each other. 60 was never announced.
TEST_F(CudaGraphs, ChainsOfClones) {
  instantiate(51, kBegin + 300, 101);  // before what it was cloned from
  instantiate(1, kBegin + 250, 51, 7);
  capture(1, kBegin + 100, "first");
  instantiate(53, kBegin + 400, 52);
  instantiate(52, kBegin + 400, 53);
  const auto shape = cuda.kernel_shape("ran");
  cuda.launch(1, {.begin_ns = kBegin + 900, .end_ns = kBegin + 950, .correlation = 10, .graph = 6});
  for (const std::uint64_t node : {101, 52, 60}) {
    cuda.kernel({.begin_ns = kBegin + 1000,
                 .end_ns = kBegin + 1010,
                 .graph_node = node,
                 .correlation = 10,
                 .shape = shape,
                 .graph = 6});
  }
  ingest();
  // 51 is of graph 7, which was never launched: left out. 53 is of graph 6: it is there, though it did not run.
  EXPECT_THAT(recording.rows(kNodes),
              ElementsAre("1|-|first|kernel|1000100|77|-", "52|-|ran|kernel|-|-|-", "53|-|-|kernel|-|-|-",
                          "60|-|ran|kernel|-|-|-", "101|1|ran|kernel|1000100|77|-"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("graph_unknown|2|"));
}

TEST_F(CudaGraphs, CopiesAreNodesToo) {
  cuda.node(1, {.ts_ns = kBegin + 100, .node = 1, .graph = 6, .kind = wire::GraphNodeKind::kCopy});
  cuda.launch(1, {.begin_ns = kBegin + 900, .end_ns = kBegin + 950, .correlation = 10, .graph = 6});
  cuda.copy({.begin_ns = kBegin + 1000,
             .end_ns = kBegin + 1100,
             .bytes = 8,
             .graph_node = 1,
             .correlation = 10,
             .graph = 6,
             .kind = wire::CopyKind::kDeviceToHost,
             .host_memory = wire::HostMemory::kPageable});
  cuda.copy({.begin_ns = kBegin + 1100,
             .end_ns = kBegin + 1200,
             .bytes = 8,
             .graph_node = 2,
             .correlation = 10,
             .graph = 6,
             .kind = wire::CopyKind::kMemset});
  ingest();
  EXPECT_THAT(recording.rows("SELECT node, kind FROM graph_node ORDER BY node"), ElementsAre("1|memcpy", "2|memset"));
  EXPECT_THAT(recording.rows("SELECT c.direction, host_memory, l.begin_ns, l.end_ns, n.node FROM copy c JOIN "
                             "graph_launch l ON l.id = graph_launch_id JOIN graph_node n ON n.id = graph_node_id "
                             "ORDER BY c.begin_ns"),
              ElementsAre("device_to_host|pageable|1001000|1001200|1", "fill|-|1001000|1001200|2"));
}

// While the program runs the log is read as it grows; what comes late joins what came early.
TEST_F(CudaGraphs, AreReadWhileTheProgramRuns) {
  const auto shape = cuda.kernel_shape("ran");
  capture(1, kBegin + 100, "");
  instantiate(1, kBegin + 200, 101);
  log.end_block();
  cuda.kernel({.begin_ns = kBegin + 1000,
               .end_ns = kBegin + 1010,
               .graph_node = 101,
               .correlation = 10,
               .shape = shape,
               .graph = 6});
  log.end_block();
  cuda.gemm(1, {.begin_ns = kBegin + 90, .end_ns = kBegin + 110, .m = 8, .n = 1, .k = 1});
  log.end_block();
  cuda.launch(1, {.begin_ns = kBegin + 900, .end_ns = kBegin + 950, .correlation = 10, .graph = 6});
  log.process({.ts_ns = kBegin + 900'000, .pid = 77, .ended = 1}, "/usr/bin/python3", "");
  const std::string bytes = log.bytes();
  TestFolder root;
  const std::string run_folder = root / "x.llmprof", folder = capture_folder(run_folder);
  ASSERT_TRUE(base::make_directories(folder));
  auto writer = trace::RunWriter::create(run_folder);
  ASSERT_TRUE(writer);
  RunIngest ingest(*writer, info_of(77), folder);
  for (std::size_t size = 64; size < bytes.size(); size += 100) {
    root.write("x.llmprof/capture/77.log", bytes.substr(0, size));
    ASSERT_TRUE(ingest.follow([] { return false; }));
  }
  root.write("x.llmprof/capture/77.log", bytes);
  const auto tally = ingest.finish(info_of(77), {}, base::no_progress);
  ASSERT_TRUE(tally);
  EXPECT_GT(tally->followed_bytes, 0);
  EXPECT_EQ(tally->kernels, 1);
  EXPECT_EQ(tally->gemms, 1);
  EXPECT_EQ(tally->graph_launches, 1);
  EXPECT_TRUE(tally->losses.empty());
  ASSERT_TRUE(writer->finish({}));
  const auto run = trace::Run::open(run_folder);
  ASSERT_TRUE(run);
  const auto table = run->query("SELECT launch_begin_ns, m FROM kernel JOIN gemm ON gemm.id = gemm_id");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 1u);
  EXPECT_EQ(table->rows[0][0].as_int(), kBegin + 900);
  EXPECT_EQ(table->rows[0][1].as_int(), 8);
}

// Graph numbers are of a process: two processes that both launch graph 6 have two graphs.
TEST_F(CudaGraphs, GraphsOfTwoProcesses) {
  LogBuilder other(88);
  CudaLogBuilder other_cuda(other);
  other.process({.ts_ns = kBegin, .pid = 88, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3", "python3");
  for (CudaLogBuilder* process : {&cuda, &other_cuda}) {
    process->launch(1, {.begin_ns = kBegin + 900, .end_ns = kBegin + 950, .correlation = 10, .graph = 6});
    process->graph_launch({.begin_ns = kBegin + 1000, .end_ns = kBegin + 1500, .correlation = 10, .graph = 6});
  }
  recording.log("88.log", other.bytes());
  ingest();
  EXPECT_THAT(recording.rows("SELECT count(*), count(DISTINCT graph) FROM graph_launch"), ElementsAre("2|2"));
}

// Kernels of a child graph run with numbers that nobody announced: 501 and 502 are of graph 8, which was made for that.
// Both graphs 8 and 9 have `twice`, so nobody knows whose 503 is. `one` is the outer graph's own too, but that one has
// its clone.
TEST_F(CudaGraphs, NestedKernelsAreThoseOfTheOneGraphThatHasThem) {
  capture(1, kBegin + 100, "one");
  const auto inner = [&](std::uint64_t node, std::uint64_t at_ns, std::uint32_t graph, const std::string& name) {
    cuda.node(1, {.ts_ns = kBegin + at_ns, .node = node, .graph = graph, .kind = wire::GraphNodeKind::kKernel}, name);
  };
  inner(81, 120, 8, "one");
  inner(82, 130, 8, "inner");
  inner(83, 140, 8, "twice");
  inner(93, 150, 9, "twice");
  instantiate(1, kBegin + 300, 101);
  cuda.launch(1, {.begin_ns = kBegin + 900, .end_ns = kBegin + 950, .correlation = 10, .graph = 6});
  const auto ran = [&](std::uint64_t node, const std::string& name) {
    cuda.kernel({.begin_ns = kBegin + 1000,
                 .end_ns = kBegin + 1010,
                 .graph_node = node,
                 .correlation = 10,
                 .shape = cuda.kernel_shape(name),
                 .graph = 6});
  };
  ran(101, "one");
  ran(501, "one");
  ran(502, "inner");
  ran(503, "twice");
  ingest();
  EXPECT_THAT(recording.rows("SELECT n.node, n.name, n.captured_node, n.captured_ns - 1000000 FROM kernel k JOIN "
                             "graph_node n ON n.id = k.graph_node_id ORDER BY n.node"),
              ElementsAre("101|one|1|100", "501|one|81|120", "502|inner|82|130", "503|twice|-|-"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("graph_unknown|1|"));
}

// ---- updates
// ----------------------------------------------------------------------------------------------------------
class CudaGraphUpdates : public CudaGraphs {
 protected:
  // Nodes 1 and 2 of graph 5 run `one` and `two`; their clones 101 and 102 are in the executable graph 6.
  CudaGraphUpdates() {
    capture(1, kBegin + 100, "one");
    capture(2, kBegin + 110, "two");
    instantiate(1, kBegin + 300, 101);
    instantiate(2, kBegin + 301, 102);
  }
  // A launch as a whole.
  void launch(std::uint64_t at_ns, std::uint32_t correlation) {
    cuda.launch(1, {.begin_ns = kBegin + at_ns,
                    .end_ns = kBegin + at_ns + 5,
                    .correlation = correlation,
                    .graph = 6,
                    .op = wire::LaunchOp::kGraph});
    cuda.graph_launch(
        {.begin_ns = kBegin + at_ns + 10, .end_ns = kBegin + at_ns + 60, .correlation = correlation, .graph = 6});
  }
  void set_kernel(std::uint64_t at_ns, std::uint64_t node, const std::string& name, std::uint32_t graph = 6) {
    cuda.node(1, {.ts_ns = kBegin + at_ns, .node = node, .graph = graph, .kind = wire::GraphNodeKind::kUpdate}, name);
  }
  void update(std::uint64_t at_ns, std::uint32_t source) {
    cuda.node(1, {.ts_ns = kBegin + at_ns, .cloned_from = source, .graph = 6, .kind = wire::GraphNodeKind::kUpdate});
  }
  // Of every launch its begin, and the kernels of its graph with the time they were captured at.
  std::vector<std::string> launched() {
    ingest();
    const auto rows = recording.rows(
        "SELECT l.begin_ns - 1000000, string_agg(coalesce(n.name, '?') || ' ' || "
        "coalesce(n.captured_ns - 1000000, 0), ', ' ORDER BY n.node) FROM graph_launch l LEFT JOIN "
        "graph_node n USING (graph) GROUP BY ALL ORDER BY 1");
    const auto findings = check_run(recording.run());
    EXPECT_TRUE(findings && findings->empty());
    return rows;
  }
};

TEST_F(CudaGraphUpdates, TheSameKernelChangesNothing) {
  launch(1000, 10);
  set_kernel(1500, 1, "one");
  launch(2000, 11);
  EXPECT_THAT(launched(), ElementsAre("1010|one 100, two 110", "2010|one 100, two 110"));
  EXPECT_THAT(recording.rows("SELECT count(DISTINCT graph) FROM graph_launch"), ElementsAre("1"));
}

TEST_F(CudaGraphUpdates, AnotherKernelIsAnotherGraphFromThenOn) {
  launch(1000, 10);
  set_kernel(1500, 1, "other");
  set_kernel(1510, 2, "else");  // nobody launched it between: the same version
  launch(2000, 11);
  set_kernel(2500, 1, "one");
  launch(3000, 12);
  EXPECT_THAT(launched(),
              ElementsAre("1010|one 100, two 110", "2010|other 1500, else 1510", "3010|one 2500, else 1510"));
  EXPECT_THAT(recording.rows("SELECT DISTINCT kind FROM graph_node"), ElementsAre("kernel"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
}

TEST_F(CudaGraphUpdates, BeforeTheFirstLaunchThereIsOneVersion) {
  set_kernel(500, 1, "other");
  launch(1000, 10);
  EXPECT_THAT(launched(), ElementsAre("1010|other 500, two 110"));
}

TEST_F(CudaGraphUpdates, NodesRecordedByTheirNumbersBelongToTheVersionOfTheirLaunch) {
  launch(1000, 10);
  set_kernel(1500, 1, "other");
  launch(2000, 11);
  const auto other = cuda.kernel_shape("other"), two = cuda.kernel_shape("two");
  cuda.launch(1, {.begin_ns = kBegin + 3000, .end_ns = kBegin + 3005, .correlation = 12, .graph = 6});
  for (const auto& [node, shape] : {std::pair(101, other), std::pair(102, two)}) {
    cuda.kernel({.begin_ns = kBegin + 3010,
                 .end_ns = kBegin + 3020,
                 .graph_node = static_cast<std::uint64_t>(node),
                 .correlation = 12,
                 .shape = shape,
                 .graph = 6});
  }
  EXPECT_THAT(launched(), ElementsAre("1010|one 100, two 110", "2010|other 1500, two 110", "3010|other 1500, two 110"));
  EXPECT_THAT(recording.rows("SELECT k.name, n.name, n.captured_ns - 1000000 FROM kernel k JOIN graph_node n ON n.id = "
                             "k.graph_node_id ORDER BY n.node"),
              ElementsAre("other|other|1500", "two|two|110"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
}

TEST_F(CudaGraphUpdates, ByAnotherGraph) {
  launch(1000, 10);
  const auto captured = [&](std::uint64_t at_ns, std::uint32_t graph, std::vector<std::string> names) {
    for (std::uint64_t i = 0; i < names.size(); ++i) {
      cuda.node(
          1,
          {.ts_ns = kBegin + at_ns + i, .node = graph * 10 + i, .graph = graph, .kind = wire::GraphNodeKind::kKernel},
          names[i]);
    }
  };
  captured(1100, 20, {"one", "two"});
  update(1200, 20);  // with the same kernels, as a program does before every launch
  launch(2000, 11);
  captured(2100, 30, {"one", "third"});
  update(2200, 30);
  launch(3000, 12);
  captured(3100, 40, {"one", "third", "fourth"});
  update(3200, 40);  // nobody knows which is which
  launch(4000, 13);
  EXPECT_THAT(launched(),
              ElementsAre("1010|one 100, two 110", "2010|one 100, two 110", "3010|one 2100, third 2101", "4010|? 0"));
}

// Nodes of graph 6 after an update are those of its source, though the kernels have the same names.
class CudaGraphRecaptures : public CudaGraphUpdates {
 protected:
  // Captures `one` and `two` in a range, the second in a product of m rows, and updates the executable with it.
  void recapture(std::uint64_t at_ns, std::uint32_t graph, const std::string& range, std::int64_t m) {
    log.push(1, kBegin + at_ns, range);
    for (std::uint64_t i = 0; i < 2; ++i) {
      cuda.node(1,
                {.ts_ns = kBegin + at_ns + 10 + 10 * i,
                 .node = graph * 10 + i,
                 .graph = graph,
                 .kind = wire::GraphNodeKind::kKernel},
                i == 0 ? "one" : "two");
    }
    log.pop(1, kBegin + at_ns + 30);
    cuda.gemm(1, {.begin_ns = kBegin + at_ns + 18,
                  .end_ns = kBegin + at_ns + 22,
                  .m = m,
                  .n = 1,
                  .k = 1,
                  .batch = 1,
                  .shape = shape});
    update(at_ns + 40, graph);
  }
  wire::DefinitionId shape = cuda.gemm_shape();
  std::vector<std::string> products() {
    return recording.rows(
        "SELECT l.begin_ns - 1000000, g.m FROM graph_launch l JOIN graph_node n USING (graph) JOIN gemm g ON g.id = "
        "n.gemm_id ORDER BY 1");
  }
};

TEST_F(CudaGraphRecaptures, InOtherRanges) {
  launch(1000, 10);
  recapture(1100, 20, "attention", 8);
  launch(2000, 11);
  recapture(2100, 30, "attention", 8);  // the same once more
  launch(3000, 12);
  recapture(3100, 40, "mlp", 8);
  launch(4000, 13);
  recapture(4100, 50, "attention", 8);  // as the second was
  launch(5000, 14);
  EXPECT_THAT(launched(), ElementsAre("1010|one 100, two 110", "2010|one 1110, two 1120", "3010|one 1110, two 1120",
                                      "4010|one 3110, two 3120", "5010|one 1110, two 1120"));
  EXPECT_THAT(recording.rows("SELECT count(DISTINCT graph) FROM graph_launch"), ElementsAre("3"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
}

TEST_F(CudaGraphRecaptures, OfOtherProducts) {
  recapture(200, 20, "attention", 8);
  launch(1000, 10);
  recapture(1100, 30, "attention", 16);
  launch(2000, 11);
  EXPECT_THAT(launched(), ElementsAre("1010|one 210, two 220", "2010|one 1110, two 1120"));
  EXPECT_THAT(products(), ElementsAre("1010|8", "2010|16"));
}

TEST_F(CudaGraphRecaptures, KnownAgainAfterAnUnknownGraph) {
  launch(1000, 10);
  update(1100, 77);  // nothing is known of graph 77
  launch(2000, 11);
  recapture(2100, 20, "attention", 8);
  launch(3000, 12);
  EXPECT_THAT(launched(), ElementsAre("1010|one 100, two 110", "2010|? 0", "3010|one 2110, two 2120"));
}

TEST_F(CudaGraphRecaptures, TooManyAreUnknownAndNeverTheFirst) {
  launch(100, 10);
  for (std::uint32_t i = 0; i < 300; ++i) {
    recapture(1000 + 100 * i, 100 + i, "layer " + std::to_string(i), 8);
    launch(1050 + 100 * i, 100 + i);
  }
  const std::vector<std::string> rows = launched();
  ASSERT_EQ(rows.size(), 301u);
  EXPECT_EQ(rows[254], "26360|one 26310, two 26320");
  EXPECT_EQ(rows[255], "26460|? 0");
  EXPECT_EQ(rows[300], "30960|? 0");
}

TEST_F(CudaGraphUpdates, OfAGraphThatIsNoExecutable) {
  set_kernel(500, 1, "later", 0);
  instantiate(1, kBegin + 600, 201, 7);
  launch(1000, 10);
  cuda.launch(1, {.begin_ns = kBegin + 2000,
                  .end_ns = kBegin + 2005,
                  .correlation = 11,
                  .graph = 7,
                  .op = wire::LaunchOp::kGraph});
  cuda.graph_launch({.begin_ns = kBegin + 2010, .end_ns = kBegin + 2020, .correlation = 11, .graph = 7});
  EXPECT_THAT(launched(), ElementsAre("1010|one 100, two 110", "2010|later 100"));
}

}  // namespace
}  // namespace llmprof::record
