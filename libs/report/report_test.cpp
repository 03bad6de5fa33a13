#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/sections.h"

namespace llmprof::report {
namespace {

using base::Json;
using testing::HasSubstr;
using testing::Not;

analyze::Efficiency efficiency() {
  analyze::Efficiency e{.flops = 2e9,
                        .flops_shapes = 3e9,
                        .bytes = 1e9,
                        .flops_per_s = 4e9,
                        .flops_shapes_per_s = 6e9,
                        .bytes_per_s = 2e9,
                        .mfu = 0.25,
                        .mbu = 0.5,
                        .bound = "memory"};
  return e;
}

// A page with every field set and names as long and as hostile as programs can make them.
Page full_page() {
  Page page{.run = "x.llmprof"};
  page.info.command = {"program", std::string(300, 'a'), "\x1b[31mred"};
  page.info.created = "2026-01-02T03:04:05Z";
  page.info.environment =
      R"({"system": {"kernel": "6.1.0", "distribution": "Debian"}, "cpu": {"cores": 2, "quota_cpus": null}})";
  analyze::Summary& s = page.summary;
  s.coverage = {.processes = 2,
                .injected = 1,
                .threads = 3,
                .kernels = 10,
                .ranges = 20,
                .gemms = 5,
                .wall_ns = 1'000'000'000,
                .in_stages_ns = 500'000'000,
                .kernel_ns = 200,
                .attributed_kernel_ns = 100,
                .data_losses = 1};
  s.losses = {
      {"buffer_full", "data_loss", "records", std::string(150, 'm') + " long meaning", "do this", "detail", 12}};
  s.devices = {{.kind = "cpu",
                .name = "A CPU",
                .chip = "x86-64-v3",
                .units = 2,
                .memory_bytes = 1 << 30,
                .cache_bytes = 1 << 20,
                .peak_flops = 16e9,
                .peak_bandwidth = 4e9,
                .peak_flops_method = "FMA loop",
                .peak_bandwidth_method = "read loop",
                .type = "float32",
                .peak_flops_source = "measured",
                .peak_bandwidth_source = "spec"}};
  s.busy_devices = 1;
  s.peak_flops = 16e9;
  s.peak_bandwidth = 4e9;
  s.model = R"({"model_type": "llama"})";
  s.model_family = "llama";
  s.parameters = 110'000'000;
  s.weights_read_bytes = 440e6;
  analyze::Stage prefill{.name = "prefill",
                         .source = "declared",
                         .steps = 1,
                         .kernels = 4,
                         .time_ns = 500'000'000,
                         .share = 0.5,
                         .device_busy_ns = 400'000'000,
                         .idle_ns = 100'000'000,
                         .busy = 0.8,
                         .tokens = 64,
                         .tokens_per_s = 128.0,
                         .ttft_ns = 500'000'000,
                         .step_p50_ns = 1,
                         .step_p90_ns = 2,
                         .step_p99_ns = 3,
                         .label = "prefill"};
  prefill.efficiency = efficiency();
  prefill.efficiency.floor_ns = 250e6;
  prefill.efficiency.of_floor = 0.5;
  analyze::Stage decode = prefill;
  decode.name = "decode", decode.label = "decode*";
  decode.confidence = 0.9;
  decode.ttft_ns.reset();
  decode.tpot_p50_ns = 11'000'000;
  decode.tpot_p90_ns = 12'000'000;
  decode.tpot_p99_ns = 13'000'000;
  decode.latency_p50_ns = decode.tpot_p50_ns, decode.latency_p90_ns = decode.tpot_p90_ns;
  decode.latency_p99_ns = decode.tpot_p99_ns;
  decode.efficiency = {.bound = "unknown", .why = "a reason"};
  s.stages = {prefill, decode};
  analyze::Part part{.name = "layers.0." + std::string(120, 'x'),
                     .stage = "prefill",
                     .calls = 1234567,
                     .total_ns = 99'999'999'999,
                     .self_ns = 88'888'888'888,
                     .kernel_ns = 3,
                     .share = 0.123};
  part.efficiency = efficiency();
  s.modules = {part, part};
  s.ops = {part};
  s.ops[0].products = {{.m = 123456,
                        .n = 123456,
                        .k = 123456,
                        .batch = 128,
                        .calls = 1234567,
                        .time_ns = 9,
                        .shape = "[123456, 123456] x [123456, 123456] x128",
                        .flops_per_s = 1e9}};
  s.blocks = {{.name = "layers." + std::string(120, '9'), .stages = {{"prefill", 1, 2}, {"decode", 3, 4}}}};
  s.training = {{.process_id = 1, .thread_id = 2}};
  s.training[0].steps.assign(1000,
                             {.number = 999'999, .forward_ns = 1, .backward_ns = 2, .optimizer_ns = 3, .total_ns = 7});
  s.gemms = {{.function = "cblas_sgemm64_",
              .type = "float32",
              .stage = "prefill",
              .m = 123456,
              .n = 123456,
              .k = 123456,
              .batch = 128,
              .calls = 1234567,
              .time_ns = 99'999'999'999,
              .ops = std::string(200, 'o'),
              .flops_per_s = 123e9,
              .bytes_per_s = 45e9,
              .of_peak = 0.77,
              .label = "cblas_sgemm64_ x128"}};
  return page;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Text, NeverWiderThan100ColumnsAndNoControlBytes) {
  Page page = full_page();
  for (const std::string& line : lines_of(to_text(page, false))) {
    EXPECT_LE(base::display_width(line), line_width()) << line;
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  }
  page.summary = {};  // nothing seen at all
  for (const std::string& line : lines_of(to_text(page, false))) EXPECT_LE(base::display_width(line), line_width()) << line;
}

TEST(Text, ColourOnlyWhenAsked) { EXPECT_THAT(to_text(full_page(), true), HasSubstr("\x1b[1mCoverage")); }

TEST(Text, CoverageAndLossesComeFirst) {
  const std::string text = to_text(full_page(), false);
  EXPECT_LT(text.find("Coverage"), text.find("Stages"));
  EXPECT_LT(text.find("buffer_full"), text.find("Machine"));
}

TEST(Text, SpellsTheDenominatorsOut) {
  const std::string text = to_text(full_page(), false);
  EXPECT_THAT(text,
              HasSubstr("MFU %: model FLOPs / time, of 16.0 GFLOP/s float32 (measured on this machine: FMA loop)."));
  EXPECT_THAT(text, HasSubstr("MBU %: bytes that must move / time, of 4.00 GB/s bandwidth (spec: read loop)."));
  EXPECT_THAT(text, HasSubstr("% of wall: of 1.00 s."));
  EXPECT_THAT(text, HasSubstr("decode: a reason."));
  EXPECT_THAT(text, HasSubstr("* decode: inferred from the names of ranges, confidence 0.9."));
}

TEST(Text, ARunWithoutRangesSaysHowToGetThem) {
  Page page = full_page();
  page.summary.stages.clear();
  page.summary.modules.clear();
  page.summary.ops.clear();
  page.summary.coverage.ranges = 0;
  const std::string text = to_text(page, false);
  EXPECT_THAT(text, HasSubstr("annotate the program"));
  EXPECT_THAT(text, HasSubstr("Matrix products by time"));
}

TEST(Text, SharedTimesAndNamedBandwidths) {
  Page page = full_page();
  EXPECT_THAT(to_text(page, false), Not(HasSubstr("groups of one call")));
  page.summary.gemms[0].label = "cublasGemmGroupedBatchedEx x128 shared";
  page.summary.gemms[0].shared_ns = page.summary.gemms[0].time_ns;
  page.summary.devices[0].peak_bandwidth_source = "measured";
  page.summary.devices[0].peak_bandwidth_name = "triad, the fastest of 4 streams";
  page.summary.imported.counted = {{.name = "scatter", .launches = 1, .time_ns = 1000, .sectors_per_load = 31.5}};
  const std::string text = to_text(page, false);
  EXPECT_THAT(text, HasSubstr("cublasGemmGroupedBatchedEx x128 shared"));
  EXPECT_THAT(text, HasSubstr("shared: groups of one call, computed by one kernel."));
  EXPECT_THAT(text, HasSubstr("bandwidth (triad, the fastest of 4 streams,"));
  EXPECT_THAT(text, HasSubstr("sectors/load"));
  EXPECT_THAT(text, HasSubstr("31.5"));
}

TEST(Text, TopAndStageLimitTheRows) {
  Page page = full_page();
  page.top = 1;
  EXPECT_THAT(to_text(page, false), HasSubstr("1 more modules"));
  page.stage = "decode";
  const std::string text = to_text(page, false);
  EXPECT_THAT(text, Not(HasSubstr("Modules by self time")));
  EXPECT_THAT(text, Not(HasSubstr("Operators of prefill")));
}

TEST(Text, SaysWhoTookPart) {
  Page page = full_page();
  const std::string kind = page.summary.devices[0].kind;
  page.summary.devices.push_back({.kind = kind, .name = "Other", .kernel_ns = 2000, .idle = true});
  analyze::Job& job = page.summary.job;
  job.ranks.resize(2), job.devices = 2, job.world = 4;
  job.groups = {.tensor = 2, .data = 2};
  job.origin = "--parallel tp=2";
  const auto text = [&] {  // without line breaks
    std::string words;
    for (const char c : to_text(page, false)) {
      if (c != '\n' && (c != ' ' || !words.ends_with(' '))) words += c;
      if (c == '\n' && !words.ends_with(' ')) words += ' ';
    }
    return words;
  };
  EXPECT_THAT(text(), HasSubstr("Other; counts as idle: 2.00 us of kernels are less than 1 % of what the busiest"));
  EXPECT_THAT(text(),
              HasSubstr("2 ranks on 2 CPUs: tensor parallel 2, data parallel 2. 2 of 4 ranks were recorded. Source: "
                        "--parallel tp=2."));
  Json json;
  to_json(page, json);  // pages show this
  EXPECT_THAT(json["job"]["sentence"].get<std::string>(),
              HasSubstr("2 of 4 ranks were recorded. Source: --parallel"));
  job.known = false, job.why = "2 ranks; nobody knows";
  EXPECT_THAT(text(), HasSubstr("2 ranks; nobody knows. Tokens/s and whatever else depends on it are not stated."));
}

TEST(Json, HasTheContractKeys) {
  Json out{{"schema", "llmprof.report"}, {"schema_version", 1}, {"llmprof_version", "0"}};
  to_json(full_page(), out);
  std::vector<std::string> top;
  for (const auto& [key, value] : out.items()) top.push_back(key);
  EXPECT_THAT(top, testing::ElementsAre(
                       "schema", "schema_version", "llmprof_version", "run", "coverage", "losses", "recording_cost",
                       "environment", "devices", "model", "stages", "measures", "diagnosis", "waterfalls", "idle",
                       "modules", "operators", "unmatched", "ridge", "gemms", "kernels", "gpu_by_source", "gaps",
                       "notes", "peaks_together", "job", "telemetry", "device_memory", "host", "functions",
                       "top_functions", "python_functions", "stacks", "blocks", "ranges", "training", "sources",
                       "framework_operators", "attention", "counters", "hardware_counters", "totals", "flags"));
  const Json& prefill = out["stages"][0];
  for (const char* key : {"name", "steps", "time_ns", "device_busy_ns", "flops", "bytes", "mfu", "mbu", "ttft_ns"}) {
    EXPECT_TRUE(prefill.contains(key)) << key;
  }
  EXPECT_EQ(prefill["mfu"], 0.25);
  const Json& decode = out["stages"][1];
  EXPECT_TRUE(decode["mfu"].is_null());
  EXPECT_EQ(decode["why"], "a reason");
  EXPECT_EQ(decode["tpot_p99_ns"], 13'000'000);
}

void collect_keys(const Json& value, std::set<std::string>& keys) {
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) {
    if (value.is_object()) keys.insert(key);
    if (key != "environment" && key != "config") collect_keys(child, keys);  // described elsewhere
  }
}

TEST(Json, EveryKeyIsDocumented) {
  Json out;
  to_json(full_page(), out);
  std::set<std::string> keys;
  collect_keys(out, keys);
  const Result<std::string> document = base::read_file(LLMPROF_SOURCE_DIR "/docs/format/json.md", 1 << 20);
  ASSERT_TRUE(document) << document.error().message;
  for (const std::string& key : keys) EXPECT_THAT(*document, HasSubstr("`" + key + "`"));
}

TEST(EnvironmentLine, SaysWhatIsThere) {
  EXPECT_EQ(environment_line(full_page().info.environment), "Debian, kernel 6.1.0, cores 2");
  EXPECT_EQ(environment_line("not JSON"), "");
  EXPECT_EQ(environment_line(""), "");
}

TEST(Layout, WrapsAndFormats) {
  EXPECT_EQ(wrapped("a b"), "  a b\n");
  EXPECT_EQ(percent_cell(0.4231), "42.3");
  EXPECT_EQ(percent_cell(0.0001), "<0.1");
  EXPECT_EQ(percent_cell(std::nullopt), "-");
  EXPECT_EQ(counted(1, "thread"), "1 thread");
  EXPECT_EQ(counted(2, "process"), "2 processes");
}

}  // namespace
}  // namespace llmprof::report
