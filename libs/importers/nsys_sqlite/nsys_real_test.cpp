// Real exports of Nsight Systems 2025.3.2 (tests/imports). The numbers were counted by Python's sqlite3 on the same
// files with the query that stands beside them; K is CUPTI_ACTIVITY_KIND_KERNEL, R is CUPTI_ACTIVITY_KIND_RUNTIME.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"

namespace llmprof::importers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trace::Loss;

class NsysReal : public testing::Test {
 protected:
  void read(const std::string& name) {
    auto input = Input::open(std::string(LLMPROF_SOURCE_DIR) + "/tests/imports/" + name + ".sqlite.gz");
    ASSERT_TRUE(input) << input.error().message;
    const Importer* importer = find_importer("nsys");
    EXPECT_EQ(sniff(*input->head()), importer);
    const auto done = importer->parse(*input, sink);
    ASSERT_TRUE(done) << done.error().message;
    sink.flush();
  }
  template <class Row>
  std::int64_t sum_ns() const {
    std::int64_t sum = 0;
    for (const Row& row : sink.rows<Row>()) sum += row.end_ns - row.begin_ns;
    return sum;
  }
  std::map<std::string, int> count_ranges() const {
    std::map<std::string, int> counts;
    for (const auto& row : sink.rows<trace::RangeRow>()) ++counts[std::string(sink.text(row.name))];
    return counts;
  }
  std::string note(std::string_view subject) const {
    for (const auto& row : sink.rows<trace::NoteRow>()) {
      if (sink.text(row.subject) == subject) return std::string(sink.text(row.text));
    }
    return "";
  }
  MemorySink sink;
};

TEST_F(NsysReal, LlamaHasItsKernelsCopiesAndCalls) {
  read("nsys_llama");
  // SELECT count(*), sum(end - start) FROM K
  EXPECT_EQ(sink.rows<trace::KernelRow>().size(), 2051u);
  EXPECT_EQ(sum_ns<trace::KernelRow>(), 4759500);
  // SELECT count(*) FROM R, less 11 of cuKernelGetFunction; … WHERE name LIKE '%Synchronize%'
  const auto calls = sink.rows<trace::ApiRow>();
  EXPECT_EQ(calls.size(), 2586u - 11u);
  EXPECT_EQ(std::ranges::count_if(calls, [](const auto& row) { return row.waits; }), 52);
  // MEMCPY: 41 of 221268096 bytes, 22683190 ns, pageable to device; MEMSET: 10 of 25380 bytes, 8480 ns
  std::int64_t bytes = 0, filled = 0;
  for (const auto& row : sink.rows<trace::CopyRow>()) {
    const bool fill = sink.text(row.direction) == "fill";
    (fill ? filled : bytes) += row.bytes;
    if (!fill) {
      EXPECT_EQ(sink.text(row.direction), "host_to_device");
      EXPECT_EQ(sink.text(row.host_memory), "pageable");
    }
  }
  EXPECT_EQ(sink.rows<trace::CopyRow>().size(), 51u);
  EXPECT_EQ(bytes, 221268096);
  EXPECT_EQ(filled, 25380);
  EXPECT_EQ(sum_ns<trace::CopyRow>(), 22683190 + 8480);
  EXPECT_THAT(sink.details, ElementsAre("input_ignored 11: calls like cuGetProcAddress and cuKernelGetName"));
}

TEST_F(NsysReal, KernelsAreJoinedToTheirLaunches) {
  read("nsys_llama");
  // SELECT sum(R.start), sum(R.end) FROM K JOIN R USING (correlationId)
  std::int64_t begin = 0, end = 0;
  std::set<trace::Id> threads;
  for (const auto& row : sink.rows<trace::KernelRow>()) {
    ASSERT_TRUE(row.launch_begin_ns && row.launch_end_ns);
    EXPECT_LE(*row.launch_begin_ns, row.begin_ns);
    begin += *row.launch_begin_ns;
    end += *row.launch_end_ns;
    threads.insert(row.thread_id);
  }
  EXPECT_EQ(begin, 31979997673840);
  EXPECT_EQ(end, 31980099198742);
  EXPECT_EQ(threads.size(), 1u);
  // globalTid 281486586544820 is process 692, thread 692
  for (const auto& row : sink.rows<trace::ThreadRow>()) {
    if (threads.contains(row.id)) {
      EXPECT_EQ(row.tid, 692);
    }
  }
  EXPECT_EQ(sink.rows<trace::ThreadRow>().size(), 1u) << "PROFILER_OVERHEAD names threads of Nsight's own";
  const auto processes = sink.rows<trace::ProcessRow>();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid, 692);
  EXPECT_EQ(sink.text(processes[0].executable), "python3");
}

TEST_F(NsysReal, LlamaSaysWhatItRanOn) {
  read("nsys_llama");
  const auto devices = sink.rows<trace::DeviceRow>();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(sink.text(devices[0].name), "NVIDIA H200");
  EXPECT_EQ(sink.text(devices[0].driver), "580.159.04");
  EXPECT_EQ(sink.text(devices[0].uuid), "GPU-00000000-0000-4000-8000-000000000001");
  EXPECT_EQ(devices[0].units, 132);
  EXPECT_EQ(devices[0].memory_bytes, 150109880320);
  EXPECT_EQ(devices[0].clock_mhz, 1980);
  EXPECT_EQ(sink.clock.wall_of_zero_ns, 1794708399392700330);
  EXPECT_EQ(sink.facts.tool, "Nsight Systems 2025.3.2.0, export schema 3.20.3");
  EXPECT_EQ(sink.facts.command, "python3 fix.py --out fx --family llama --what run");
  EXPECT_EQ(sink.facts.host, "gpu-host");
  EXPECT_EQ(note("machine"),
            "Ubuntu 24.04.3 LTS, Intel(R) Xeon(R) Processor, 16 CPU cores, NVIDIA driver 580.159.04, CUDA 13.0");
  EXPECT_EQ(sink.rows<trace::ProcessRow>()[0].rank, 0);
}

TEST_F(NsysReal, RangesAreNestedByTime) {
  read("nsys_llama");
  // SELECT text, count(*) FROM NVTX_EVENTS GROUP BY 1; a decode_step lies in a decode, by their times
  EXPECT_EQ(count_ranges(), (std::map<std::string, int>{{"prefill", 2}, {"decode", 2}, {"decode_step", 9}}));
  EXPECT_EQ(sum_ns<trace::RangeRow>(), 631803288 + 630909283 + 391812698);
  std::map<trace::Id, std::string> names;
  for (const auto& row : sink.rows<trace::RangeRow>()) names[row.id] = sink.text(row.name);
  for (const auto& row : sink.rows<trace::RangeRow>()) {
    const bool step = sink.text(row.name) == "decode_step";
    EXPECT_EQ(row.depth, step ? 1 : 0);
    EXPECT_EQ(row.parent_id ? names[*row.parent_id] : "", step ? "decode" : "");
    EXPECT_TRUE(row.closed);
    EXPECT_EQ(sink.text(row.source), "nsys");
  }
}

TEST_F(NsysReal, NamesOfKernelsAreThoseOfOurOwnCapture) {
  read("nsys_tiny");
  std::map<std::string, int> names;
  for (const auto& row : sink.rows<trace::KernelRow>()) ++names[std::string(sink.text(row.name))];
  // demangledName is "scale(float *, int, float)" and "fill(float *, int)"; nsys stats counts 7 and 2
  EXPECT_EQ(names, (std::map<std::string, int>{{"scale", 7}, {"fill", 2}}));
  read("nsys_llama");
  const auto& texts = sink.names();
  EXPECT_TRUE(
      texts.knows("at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, "
                  "std::array<char*, 3ul> >"));
}

TEST_F(NsysReal, MarksDomainsCategoriesAndPayloads) {
  read("nsys_tiny");
  // NVTX_EVENTS of the program: a mark, a start_end range, one range in domain engine with category 7 named tokens, the
  // registered text decode_step and payload 42
  int in_domain = 0;
  for (const auto& row : sink.rows<trace::RangeRow>()) {
    const std::string_view name = sink.text(row.name), kind = sink.text(row.kind);
    EXPECT_EQ(kind, name == "token" ? "mark" : name == "request" ? "start_end" : "push_pop");
    if (row.domain.id == 0) continue;
    ++in_domain;
    EXPECT_EQ(name, "decode_step");
    EXPECT_EQ(sink.text(row.domain), "engine");
    EXPECT_EQ(sink.text(row.category), "tokens");
    EXPECT_EQ(row.payload, 42);
    EXPECT_EQ(row.end_ns - row.begin_ns, 22053);
  }
  EXPECT_EQ(in_domain, 1);
  EXPECT_EQ(sink.rows<trace::RangeRow>().size(), 11u);
}

TEST_F(NsysReal, LaunchesOfWholeGraphs) {
  read("nsys_tiny");
  // SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE; all of one executable graph
  const auto launches = sink.rows<trace::GraphLaunchRow>();
  EXPECT_EQ(launches.size(), 3u);
  EXPECT_EQ(sum_ns<trace::GraphLaunchRow>(), 51520);
  for (const auto& row : launches) {
    EXPECT_FALSE(row.nodes_recorded);
    EXPECT_EQ(row.graph, launches[0].graph);
    EXPECT_TRUE(row.launch_begin_ns);
  }
  EXPECT_TRUE(sink.rows<trace::GraphNodeRow>().empty());
  // 4 rows of CUDA_GRAPH_EVENTS, 12 calls of cuKernelGetName, 2 of cuLibraryGetKernel
  EXPECT_EQ(sink.lost(Loss::kInputIgnored), 4 + 12 + 2);
}

TEST_F(NsysReal, NodesOfGraphs) {
  read("nsys_graph_node");
  // 653 kernels, of which 204 = 3 launches of 68 nodes; copies and fills in the graph: 3 and 6 more
  // SELECT count(DISTINCT graphNodeId) FROM CUDA_GRAPH_NODE_EVENTS: 148, of which 77 are of the executable graph
  const auto kernels = sink.rows<trace::KernelRow>();
  EXPECT_EQ(kernels.size(), 653u);
  EXPECT_EQ(sum_ns<trace::KernelRow>(), 1617116);
  const auto launches = sink.rows<trace::GraphLaunchRow>();
  ASSERT_EQ(launches.size(), 3u);
  std::map<trace::Id, int> of_launch;
  for (const auto& row : kernels) {
    if (row.graph_launch_id) ++of_launch[*row.graph_launch_id];
    EXPECT_EQ(row.graph_launch_id.has_value(), row.graph_node_id.has_value());
  }
  for (const auto& row : launches) {
    EXPECT_EQ(of_launch[row.id], 68);
    EXPECT_TRUE(row.nodes_recorded);
    EXPECT_EQ(row.graph, launches[0].graph);
  }
  // SELECT min(start), max(end) FROM K WHERE correlationId = 11652
  std::set<std::int64_t> spans;
  for (const auto& row : launches) spans.insert(row.end_ns - row.begin_ns);
  EXPECT_EQ(*spans.rbegin(), 4893224956 - 4892978204);
  const auto nodes = sink.rows<trace::GraphNodeRow>();
  EXPECT_EQ(nodes.size(), 148u);
  // 71 nodes were captured between 4886084934 and 4888445056, in the range graph_capture, and cloned
  int clones = 0;
  for (const auto& row : nodes) {
    if (!row.captured_node) continue;
    ++clones;
    EXPECT_GE(*row.captured_ns, 4886084934);
    EXPECT_LE(*row.captured_ns, 4888445056);
    EXPECT_TRUE(row.thread_id);
  }
  EXPECT_EQ(clones, 71);
}

TEST_F(NsysReal, GpuMetricsBecomeTelemetry) {
  read("nsys_gpu_metrics");
  // 22 metrics of 20 times; those named [Avg] are left out: 4 of them; dram_active is added
  std::map<std::string, std::pair<int, double>> sums;
  for (const auto& row : sink.rows<trace::TelemetryRow>()) {
    auto& [count, sum] = sums[std::string(sink.text(row.metric)) + "|" + std::string(sink.text(row.unit))];
    ++count;
    sum += row.value;
    EXPECT_EQ(row.device_id, sink.rows<trace::DeviceRow>()[0].id);
  }
  // SELECT metricId, count(*), sum(value) FROM GPU_METRICS GROUP BY 1
  EXPECT_EQ(sums["sm_active|%"], std::pair(20, 30.0));
  EXPECT_EQ(sums["tensor_active|%"], std::pair(20, 7.0));
  EXPECT_EQ(sums["sm_occupancy|%"], std::pair(20, 8.0));
  EXPECT_EQ(sums["DRAM Read Bandwidth|%"], std::pair(20, 21.0));
  EXPECT_EQ(sums["dram_active|%"], std::pair(20, 32.0));
  EXPECT_EQ(sums["GR Active|%"], std::pair(20, 169.0));
  EXPECT_NEAR(sums["sm_clock_mhz|MHz"].second, 39528.170122, 1e-6);
  EXPECT_EQ(sums.size(), 22u - 4u + 1u);
}

TEST_F(NsysReal, StacksOfLaunchesAndSamples) {
  read("nsys_rich");
  // COMPOSITE_EVENTS: 49 samples of 2 ms CPU time (LINUX_PERF_OPTIONS:SAMPLING_PERIOD), 26 with a broken backtrace
  const auto samples = sink.rows<trace::SampleRow>();
  EXPECT_EQ(samples.size(), 49u);
  EXPECT_EQ(std::ranges::count_if(samples, [](const auto& row) { return row.truncated; }), 26);
  EXPECT_EQ(samples[0].weight_ns, 2'000'000);
  // SELECT count(*) FROM K JOIN R USING (correlationId) WHERE callchainId IN (SELECT id FROM CUDA_CALLCHAINS)
  const auto kernels = sink.rows<trace::KernelRow>();
  EXPECT_EQ(std::ranges::count_if(kernels, [](const auto& row) { return row.stack_id.has_value(); }), 46);
}

TEST_F(NsysReal, LibraryCallsMemoryAndWhatIsLeftOut) {
  read("nsys_rich");
  // 654 calls of CUDA, and 176 ranges of domain cuBLAS
  EXPECT_EQ(sink.rows<trace::ApiRow>().size(), 654u + 176u);
  EXPECT_EQ(sink.rows<trace::RangeRow>().size(), 4u);
  // CUDA_GPU_MEMORY_USAGE_EVENTS: 12 of device memory, 163735300 bytes, 2 pinned; none is freed; 55 variables
  std::int64_t bytes = 0;
  for (const auto& row : sink.rows<trace::AllocationRow>()) {
    if (sink.text(row.kind) == "device") bytes += row.bytes;
    EXPECT_FALSE(row.end_ns);
  }
  EXPECT_EQ(sink.rows<trace::AllocationRow>().size(), 14u);
  EXPECT_EQ(bytes, 163735300);
  EXPECT_THAT(note("nsys"), HasSubstr("in 206 intervals"));
  // variables 55, Python backtraces 181, OSRT_API 100, SCHED_EVENTS 50, CUDA events 1
  EXPECT_EQ(sink.lost(Loss::kInputIgnored), 55 + 181 + 100 + 50 + 1);
}

}  // namespace
}  // namespace llmprof::importers
