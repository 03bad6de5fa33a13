// Pictures of a run whose numbers are derived by hand: tests/traces/gpu_graph.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analyze/summary.h"
#include "base/json.h"
#include "pictures/page_data.h"
#include "trace/test_run.h"
#include "traces.h"

namespace llmprof::pictures {
namespace {

class GraphRun : public testing::Test {
 protected:
  void SetUp() override {
    const Result<void> written = traces::write_gpu_graph(folder_ / "run.llmprof");
    ASSERT_TRUE(written) << written.error().message;
    Result<trace::Run> run = trace::Run::open(folder_ / "run.llmprof");
    ASSERT_TRUE(run) << run.error().message;
    run_ = std::make_unique<trace::Run>(std::move(*run));
    Result<analyze::Summary> summary = analyze::summarise(*run_, {});
    ASSERT_TRUE(summary) << summary.error().message;
    page_ = {.run = "run.llmprof", .info = run_->info(), .summary = std::move(*summary)};
  }
  double number(const std::string& sql) const { return run_->query(sql).value().rows[0][0].as_double(); }

  trace::TestFolder folder_;
  std::unique_ptr<trace::Run> run_;
  report::Page page_;
};

double busy_ns(const Timeline& timeline, Lane::Kind kind) {
  double sum = 0;
  for (const Lane& lane : timeline.lanes) {
    if (lane.kind != kind) continue;
    for (const Slice& slice : lane.slices)
      sum += static_cast<double>(slice.busy) * static_cast<double>(slice.end_ns - slice.begin_ns);
  }
  return sum;
}

// Every kernel by itself: one nanosecond a pixel.
TEST_F(GraphRun, TimelineInFullResolution) {
  const Timeline whole = timeline(*run_, {.window = {}, .width = 1'000'000, .stage = ""}).value();
  EXPECT_EQ(whole.run.begin_ns, 0);
  EXPECT_EQ(whole.run.end_ns, 140'000);
  // 96000 of decode, 4872 of prefill, the unknown graph's 1000; rope runs beside up0, so nothing is covered twice in a
  // lane.
  EXPECT_NEAR(busy_ns(whole, Lane::Kind::kStream), 96'000 + 4'872 + 1'000, 3);
  EXPECT_NEAR(busy_ns(whole, Lane::Kind::kStream),
              number("SELECT sum(time_ns) FROM work JOIN device d ON d.id = device_id WHERE d.kind = 'gpu'"), 3);
  EXPECT_EQ(busy_ns(whole, Lane::Kind::kCopies), 600);  // of the two launches recorded by node
  // Graph launches: 2 of 8800, 8 of 8000, 4000 and 1000.
  EXPECT_EQ(busy_ns(whole, Lane::Kind::kGraphs), 2 * 8'800 + 8 * 8'000 + 4'000 + 1'000);
}

// In steps of 88600 and 4500 ns, with kernels in 76000 and 7500/7800 of 4000, copies alone in 600: the rest; and the
// warm-up, 1200 ns in which a graph is captured and nothing executes.
TEST_F(GraphRun, IdleTimeAndItsCause) {
  const Timeline whole = timeline(*run_, {.window = {}, .width = 1'000'000, .stage = ""}).value();
  EXPECT_NEAR(busy_ns(whole, Lane::Kind::kIdle), (88'600 - 76'000) + (4'500 - 3'846) + 1'200, 4);
  const auto lane = std::find_if(whole.lanes.begin(), whole.lanes.end(),
                                 [](const Lane& each) { return each.kind == Lane::Kind::kIdle; });
  ASSERT_NE(lane, whole.lanes.end());
  // The first gap: the step begins at 10000, its graph is launched at 10100 and begins at 10500.
  const auto gap = std::find_if(lane->slices.begin(), lane->slices.end(),
                                [](const Slice& slice) { return slice.begin_ns == 10'000; });
  ASSERT_NE(gap, lane->slices.end());
  EXPECT_EQ(gap->end_ns, 10'500);
  EXPECT_TRUE(whole.names[static_cast<std::size_t>(gap->name)].ends_with("launched but not started"));
  EXPECT_EQ(whole.names[static_cast<std::size_t>(gap->stage)], "decode");
  double copying = 0;
  for (const Slice& slice : lane->slices)
    if (whole.names[static_cast<std::size_t>(slice.name)] == "copy only, no kernel")
      copying += static_cast<double>(slice.end_ns - slice.begin_ns);
  EXPECT_EQ(copying, 600);
}

// Three gaps of 100 ns in a step: nothing launched for long, the CPU had waited when the gap began, a copy.
TEST(Timeline, GapsHaveACulprit) {
  trace::TestFolder folder;
  trace::RunWriter writer = std::move(*trace::RunWriter::create(folder / "x.llmprof"));
  const auto name = [&](const std::string& text) { return writer.strings().intern(text); };
  writer.add(trace::ProcessRow{.id = 1, .pid = 7, .begin_ns = 0, .end_ns = 2000});
  writer.add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 7});
  writer.add(trace::DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Toy")});
  trace::RangeRow range{.id = 1, .begin_ns = 100, .end_ns = 1000, .name = name("decode"), .kind = name("push_pop")};
  range.process_id = range.thread_id = 1;
  writer.add(range);
  std::int64_t id = 1;
  const auto kernel = [&](std::int64_t launch, std::int64_t begin, std::int64_t end) {
    trace::KernelRow row{.id = ++id, .begin_ns = begin, .end_ns = end};
    row.name = name("gemm"), row.device_id = row.thread_id = 1;
    row.launch_begin_ns = launch, row.launch_end_ns = launch + 1;
    writer.add(row);
  };
  kernel(101, 110, 300);
  kernel(390, 400, 600);  // 300 … 400: waits for the CPU
  kernel(690, 700, 800);  // 600 … 700: after a synchronization
  kernel(790, 900, 990);  // 800 … 900: a copy
  trace::ApiRow wait{.id = ++id, .begin_ns = 410, .end_ns = 610};
  wait.thread_id = 1, wait.name = name("cudaStreamSynchronize");
  writer.add(wait);
  trace::CopyRow copy{.id = ++id, .begin_ns = 800, .end_ns = 900};
  copy.device_id = copy.thread_id = 1, copy.direction = name("host_to_device"), copy.launch_begin_ns = 700;
  writer.add(copy);
  trace::RunInfo info;
  info.llmprof_version = "0.0.0", info.source = "synthetic", info.environment = "{}";
  ASSERT_TRUE(writer.finish(info));
  trace::Run run = std::move(*trace::Run::open(folder / "x.llmprof"));
  ASSERT_TRUE(analyze::summarise(run, {}));
  const Timeline whole = timeline(run, {.window = {}, .width = 1'000'000, .stage = ""}).value();
  std::map<std::int64_t, std::string> cause;
  for (const Lane& lane : whole.lanes) {
    if (lane.kind != Lane::Kind::kIdle) continue;
    for (const Slice& slice : lane.slices) cause[slice.begin_ns] = whole.names[static_cast<std::size_t>(slice.name)];
  }
  EXPECT_EQ(cause[300], "GPU idle, waiting for CPU");
  EXPECT_EQ(cause[600], "GPU idle after synchronization");
  EXPECT_EQ(cause[800], "copy only, no kernel");
}

TEST_F(GraphRun, CoarseTimelinesKeepTheTime) {
  const double stream =
      busy_ns(timeline(*run_, {.window = {}, .width = 1'000'000, .stage = ""}).value(), Lane::Kind::kStream);
  const Timeline fine = timeline(*run_, {.window = {}, .width = 20'000, .stage = ""}).value();
  for (const int width : {3, 20, 500}) {
    const Timeline coarse = timeline(*run_, {.window = {}, .width = width, .stage = ""}).value();
    // rope executes beside another kernel: where both are merged, time is covered once. 2000 ns in each of 11 launches.
    EXPECT_LE(busy_ns(coarse, Lane::Kind::kStream), stream * 1.0001) << width;
    EXPECT_GE(busy_ns(coarse, Lane::Kind::kStream), stream - 11 * 2'000) << width;
    EXPECT_NEAR(busy_ns(thinned(fine, {.window = {}, .width = width, .stage = ""}), Lane::Kind::kGraphs),
                busy_ns(coarse, Lane::Kind::kGraphs), 1)
        << width;
  }
}

TEST_F(GraphRun, AWindowAndAStage) {
  const Timeline one = timeline(*run_, {.window = Window{20'000, 29'000}, .width = 100'000, .stage = ""}).value();
  // Step 2: launched at 20100, recorded by node: four kernels, argmax 29400 is outside.
  std::int64_t kernels = 0;
  for (const Lane& lane : one.lanes)
    if (lane.table == "kernel") kernels += static_cast<std::int64_t>(lane.slices.size());
  EXPECT_EQ(kernels, 4);
  const Timeline prefill = timeline(*run_, {.window = {}, .width = 1'000'000, .stage = "prefill"}).value();
  EXPECT_NEAR(busy_ns(prefill, Lane::Kind::kStream), 4'872, 3);
}

TEST_F(GraphRun, FlameTotalsAreTheRuns) {
  const Flame whole = flame(*run_, 4000).value();
  const double gpu = number("SELECT sum(time_ns) FROM work JOIN device d ON d.id = device_id WHERE d.kind = 'gpu'");
  EXPECT_EQ(whole.total[0], gpu);
  EXPECT_EQ(whole.total[2],
            number("SELECT sum(bytes) FROM copy") + number("SELECT coalesce(sum(bytes), 0) FROM allocation"));
  for (const std::size_t most : {4000U, 12U, 2U}) {
    const Flame cut = flame(*run_, most).value();
    EXPECT_LE(cut.nodes.size(), most);
    double sum = 0;
    for (std::size_t i = 0; i < cut.nodes.size(); ++i) {
      sum += cut.nodes[i].self[0];
      EXPECT_LT(cut.nodes[i].parent, static_cast<std::int32_t>(i));
    }
    EXPECT_NEAR(sum, gpu, 1) << most;
  }
  // Python frames of the capture, outermost first, then the module, then the kernel.
  std::vector<std::string> path;
  for (std::size_t i = 0; i < whole.nodes.size(); ++i) {
    if (whole.nodes[i].name != "gemm_nn" || whole.nodes[i].self[0] == 0) continue;
    for (auto at = static_cast<std::int32_t>(i); at >= 0; at = whole.nodes[static_cast<std::size_t>(at)].parent)
      path.insert(path.begin(), whole.nodes[static_cast<std::size_t>(at)].name);
    if (path.size() > 2 && path[1] == "decode" && path[3] == "forward (model.py:10)") break;
    path.clear();
  }
  EXPECT_EQ(path, (std::vector<std::string>{"all", "decode", "main (generate.py:40)", "forward (model.py:10)",
                                            "lm_head", "gemm_nn"}));
}

// Two steps of two layers: their kernels stand in one path, below all ranges around them.
TEST(Flame, LayersAreOnePathInsideTheRangesAroundThem) {
  trace::TestFolder folder;
  trace::RunWriter writer = std::move(*trace::RunWriter::create(folder / "x.llmprof"));
  const auto name = [&](const std::string& text) { return writer.strings().intern(text); };
  writer.add(trace::ProcessRow{.id = 1, .pid = 7, .begin_ns = 0, .end_ns = 1000});
  writer.add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 7});
  writer.add(trace::DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Toy")});
  std::int64_t id = 0;
  const auto range = [&](const std::string& text, std::int64_t begin, std::int64_t end) {
    trace::RangeRow row{.id = ++id, .begin_ns = begin, .end_ns = end, .name = name(text), .kind = name("push_pop")};
    row.process_id = row.thread_id = 1;
    writer.add(row);
  };
  for (std::int64_t step = 0; step < 2; ++step) {
    const std::int64_t at = 100 + 300 * step;
    range("epoch 0", at, at + 290);
    range("gpt2_forward", at + 10, at + 280);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      range("Layer " + std::to_string(layer), at + 20 + 100 * layer, at + 110 + 100 * layer);
      range("attention", at + 30 + 100 * layer, at + 100 + 100 * layer);
      trace::KernelRow kernel{.id = ++id, .begin_ns = at + 50 + 100 * layer, .end_ns = at + 60 + 100 * layer};
      kernel.name = name("softmax"), kernel.device_id = kernel.thread_id = 1;
      kernel.launch_begin_ns = at + 40 + 100 * layer, kernel.launch_end_ns = at + 41 + 100 * layer;
      writer.add(kernel);
    }
  }
  trace::RunInfo info;
  info.llmprof_version = "0.0.0", info.source = "synthetic", info.environment = "{}";
  ASSERT_TRUE(writer.finish(info));
  trace::Run run = std::move(*trace::Run::open(folder / "x.llmprof"));
  ASSERT_TRUE(analyze::summarise(run, {}));
  const Flame whole = flame(run).value();
  std::vector<std::string> names;
  for (const FlameNode& node : whole.nodes) names.push_back(node.name);
  ASSERT_GT(names.size(), 7U);
  EXPECT_EQ(whole.nodes[6].self[0], 40);
  EXPECT_EQ(names[7], "outside stages");  // host time of the outermost ranges
  names.resize(7);
  EXPECT_EQ(names,
            (std::vector<std::string>{"all", "forward", "epoch #", "gpt#_forward", "Layer.*", "attention", "softmax"}));
}

TEST(FlameDiff, NodesOfBoth) {
  Flame before, after;
  before.nodes = {{-1, "all", "root", {}}, {0, "a", "stage", {10, 0, 0}}, {0, "b", "stage", {5, 0, 0}}};
  after.nodes = {{-1, "all", "root", {}}, {0, "b", "stage", {7, 0, 0}}, {1, "k", "kernel", {1, 0, 0}}};
  const std::vector<FlameDiffNode> both = flame_diff(before, after);
  ASSERT_EQ(both.size(), 4U);
  EXPECT_EQ(both[2].before[0], 5);
  EXPECT_EQ(both[2].after[0], 7);
  EXPECT_EQ(both[3].parent, 2);
  EXPECT_EQ(both[1].after[0], 0);
}

TEST_F(GraphRun, RooflineHasRoofsAndPoints) {
  const Roofline roofs = roofline(*run_, page_.summary).value();
  EXPECT_EQ(roofs.device, "Toy GPU");
  std::map<std::string, double> by_name;
  for (const Roof& roof : roofs.roofs) by_name[roof.name] = roof.flops_per_s.value_or(roof.bytes_per_s.value_or(0));
  EXPECT_EQ(by_name, (std::map<std::string, double>{{"float32", 1e9}, {"tf32", 4e9}, {"memory bandwidth", 0.5e9}}));
  ASSERT_FALSE(roofs.points.empty());
  // Captured product of lm_head, 2 · 10 · 2 · 4 FLOPs for (10·4 + 4·2 + 10·2) · 4 bytes.
  const auto head = std::find_if(roofs.points.begin(), roofs.points.end(), [](const RooflinePoint& point) {
    return point.source == "shapes" && point.name.find("[10, 4]") == 0;
  });
  ASSERT_NE(head, roofs.points.end());
  EXPECT_NEAR(head->intensity, 160.0 / 272.0, 1e-6);
}

// 300 GFLOP and 200 MB of DRAM, 600 MB of L2 in a step: 1500 and 500 FLOP/B, at one height.
TEST_F(GraphRun, CountedStagesArePointsOfEachLevel) {
  page_.summary.counters.stages = {{.stage = "decode", .steps = 10, .measured = 2}};
  analyze::CountedWork& work = page_.summary.counters.stages[0].work;
  work.time_ns = 1e6;
  work.flops_per_s = 300e12;
  work.dram_intensity = 1500;
  work.l2_intensity = 500;
  const Roofline roofs = roofline(*run_, page_.summary).value();
  std::map<std::string, double> levels;
  for (const RooflinePoint& point : roofs.points) {
    if (point.source != "counters") continue;
    levels[point.level] = point.intensity;
    EXPECT_EQ(point.kind + " " + point.stage, "stage decode");
    EXPECT_EQ(point.flops_per_s, 300e12);
    EXPECT_EQ(point.time_ns, 1e7);
  }
  EXPECT_EQ(levels, (std::map<std::string, double>{{"dram", 1500}, {"l2", 500}}));
  const base::Json json = to_json(roofs);
  EXPECT_TRUE(std::any_of(json["points"].begin(), json["points"].end(),
                          [](const base::Json& point) { return point["level"] == "l2"; }));
}

TEST_F(GraphRun, DataOfThePage) {
  const base::Json data = run_data(*run_, page_).value();
  EXPECT_EQ(data["name"], "run");
  EXPECT_TRUE(data["thinned"].is_null());
  EXPECT_EQ(data["report"]["coverage"]["graph_launches"], 12);
  std::vector<std::string> stages;
  for (const base::Json& detail : data["details"])
    stages.push_back(detail["stage"].get<std::string>() + " " + detail["which"].get<std::string>());
  EXPECT_NE(std::find(stages.begin(), stages.end(), "decode median"), stages.end());
  EXPECT_NE(std::find(stages.begin(), stages.end(), "prefill median"), stages.end());
  for (const base::Json& lane : data["timeline"]["lanes"]) {
    for (const char* column : {"end", "label", "stage", "count", "busy", "id", "estimated"})
      EXPECT_EQ(lane[column].size(), lane["begin"].size());
  }
  const base::Json small = run_data(*run_, page_, 1000).value();  // cannot be reached: the least there is
  EXPECT_TRUE(small["thinned"].is_string());
  EXPECT_LT(script_json(small).size(), script_json(data).size());
}

TEST(ScriptJson, EscapesWhatEndsAScript) {
  const base::Json data = {{"name", "</script>&\xe2\x80\xa8\xe2\x80\xa9 <b>"}};
  const std::string text = script_json(data);
  EXPECT_EQ(text, R"({"name":"\u003c/script\u003e\u0026\u2028\u2029 \u003cb\u003e"})");
  EXPECT_EQ(base::parse_json(text, "page").value(), data);
}

TEST(HtmlPage, IsOneFileWithAPolicy) {
  const base::Json data = {
      {"made_by", "test"},
      {"runs",
       {{{"name", "<x>"}, {"report", {{"diagnosis", {{"headline", "a < b"}, {"findings", base::Json::array()}}}}}}}},
      {"diffs", base::Json::array()}};
  const Result<std::string> page = html_page(data);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_TRUE(page->starts_with("<!doctype html>"));
  EXPECT_NE(page->find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_NE(page->find("<title>&lt;x&gt; - llmprof</title>"), std::string::npos);
  EXPECT_NE(page->find("<p>a &lt; b</p>"), std::string::npos);
  EXPECT_EQ(page->find("<x>"), std::string::npos);
}

TEST(Redact, SecretsHomesAndHosts) {
  base::Json data = {
      {"report",
       {{"run", {{"path", "/home/ann/runs/x.llmprof"}, {"command", {"serve", "--api-key", "abc123", "/root/model"}}}},
        {"environment", {{"variables", {{"HF_TOKEN", "hf_abc"}, {"OMP_NUM_THREADS", "4"}}}}},
        {"notes", {{{"text", "on node-17.lan: read /Users/bob/x and /homework"}}}}}}};
  redact(data, {.hosts = {"node-17.lan"}});
  const base::Json& report = data["report"];
  EXPECT_EQ(report["run"]["path"], "~/runs/x.llmprof");
  EXPECT_EQ(report["run"]["command"], (base::Json{"serve", "--api-key", "***", "~/model"}));
  EXPECT_EQ(report["environment"]["variables"]["HF_TOKEN"], "***");
  EXPECT_EQ(report["environment"]["variables"]["OMP_NUM_THREADS"], "4");
  EXPECT_EQ(report["notes"][0]["text"], "on (host): read ~/x and /homework");
  base::Json kept = {{"text", "node-17.lan"}};
  redact(kept, {.hosts = {"node-17.lan"}, .keep_hosts = true});
  EXPECT_EQ(kept["text"], "node-17.lan");
}

}  // namespace
}  // namespace llmprof::pictures
