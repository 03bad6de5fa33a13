// The roofline CSV: kernels with counters, stages, classes told apart in samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/file.h"
#include "exporters/exporter.h"
#include "trace/test_run.h"

namespace llmprof::exporters {
namespace {

using Row = std::map<std::string, std::string>;
using testing::HasSubstr;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line + ",");
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

std::vector<Row> rows_of(const std::string& text) {
  std::istringstream stream(text);
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> titles = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(stream, line)) {
    const std::vector<std::string> cells = cells_of(line);
    EXPECT_EQ(cells.size(), titles.size()) << line;
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(cells.size(), titles.size()); ++i) row[titles[i]] = cells[i];
  }
  return rows;
}

// A GPU of 8 TFLOP/s bfloat16 and 10 GB/s, one kernel of 1 us on it; a window of a step.
void write_run(const std::string& folder, bool counters) {
  auto writer = trace::RunWriter::create(folder);
  ASSERT_TRUE(writer);
  const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
  writer->add(trace::DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Toy")});
  writer->add(trace::PeakRow{.device_id = 1,
                             .quantity = name("flops"),
                             .type = name("bfloat16"),
                             .value = 8e12,
                             .unit = name("FLOP/s"),
                             .source = name("measured")});
  writer->add(trace::PeakRow{.device_id = 1,
                             .quantity = name("bandwidth"),
                             .type = name("read"),
                             .value = 1e10,
                             .unit = name("B/s"),
                             .source = name("measured")});
  writer->add(trace::KernelRow{.id = 7, .begin_ns = 1000, .end_ns = 2000, .name = name("gemm"), .device_id = 1});
  std::int64_t id = 100;
  const auto count = [&](const char* metric, double value) {
    writer->add(trace::CounterRow{.id = ++id,
                                  .scope = name("kernel"),
                                  .scope_id = 7,
                                  .metric = name(metric),
                                  .value = value,
                                  .unit = name(""),
                                  .method = name("kernel"),
                                  .passes = 3});
  };
  if (counters) {
    count("sm__ops_path_tensor_src_bf16_dst_fp32.sum", 4e6);
    count("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 0);
    count("dram__bytes_read.sum", 3000);
    count("dram__bytes_write.sum", 1000);
    count("lts__t_bytes.sum", 8000);
    count("l1tex__t_bytes.sum", 10000);
    count("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", 6000);
    writer->add(trace::CounterWindowRow{.id = 50,
                                        .counter_window_id = 50,
                                        .scope = name("range"),
                                        .method = name("range"),
                                        .begin_ns = 900,
                                        .end_ns = 2100,
                                        .device_id = 1,
                                        .name = name("decode")});
  }
  const auto finished = writer->finish({.command = {"serve"}, .environment = "{}", .source = "test"});
  ASSERT_TRUE(finished) << finished.error().message;
}

analyze::Counters analysed() {
  analyze::Counters counters;
  analyze::CountedStage stage{.stage = "decode", .steps = 9, .measured = 4, .method = "range"};
  stage.work = {.flops = 12e9,
                .tensor_flops = 11e9,
                .dram_bytes = 6e9,
                .l2_bytes = 24e9,
                .time_ns = 2e6,
                .dram_intensity = 2,
                .flops_per_s = 6e12,
                .dram_bytes_per_s = 3e12,
                .type = "bfloat16",
                .bound = "memory",
                .of_roof = 0.75};
  counters.stages = {stage};
  const auto rate = [](const char* counter, double value, std::optional<double> error) {
    return analyze::CounterValue{.counter = counter, .unit = "bytes/s", .value = value, .error = error};
  };
  counters.unmixed = {{.name = "copy_kernel",
                       .time_ns = 500'000'000,
                       .values = {rate("dram_read_bytes", 3e9, 0.1), rate("dram_write_bytes", 1e9, 0.2)}},
                      {.name = "unclear",
                       .time_ns = 5,
                       .values = {rate("dram_read_bytes", 3e9, 1.5), rate("dram_write_bytes", 1, 0.1)}},
                      {.name = "no error",
                       .time_ns = 5,
                       .values = {rate("dram_read_bytes", 3e9, {}), rate("dram_write_bytes", 1, 0.1)}}};
  return counters;
}

struct Export {
  trace::TestFolder folder;
  std::optional<trace::Run> run;

  explicit Export(bool counters) {
    write_run(folder / "x.llmprof", counters);
    auto opened = trace::Run::open(folder / "x");
    EXPECT_TRUE(opened);
    run.emplace(std::move(*opened));
  }
  Result<Written> write(const Selection& selection, analyze::Counters counters) {
    return find_exporter("roofline-csv")
        ->write({.run = *run,
                 .selection = selection,
                 .output = folder / "x.csv",
                 .tables = {},
                 .counters = std::move(counters)});
  }
  std::vector<Row> rows(const Selection& selection, analyze::Counters counters) {
    const Result<Written> written = write(selection, std::move(counters));
    EXPECT_TRUE(written) << written.error().message;
    return rows_of(base::read_file(folder / "x.csv", 1 << 20).value());
  }
};

TEST(RooflineCsv, AKernelHasBytesOfEveryLevel) {
  Export out(true);
  const std::vector<Row> rows = out.rows({}, {});
  ASSERT_EQ(rows.size(), 1U);
  Row row = rows[0];
  EXPECT_EQ(row["kernel_id"] + " " + row["name"] + " " + row["scope"] + " " + row["method"], "7 gemm kernel kernel");
  // 4 MFLOP / 4000, 8000 and 16000 bytes; the copies of the TMA count among those of L1.
  EXPECT_EQ(row["dram_bytes"] + " " + row["l2_bytes"] + " " + row["l1_bytes"], "4000 8000 16000");
  EXPECT_EQ(row["flops_per_byte"] + " " + row["flops_per_l2_byte"] + " " + row["flops_per_l1_byte"], "1000 500 250");
  EXPECT_EQ(row["flops_per_s"] + " " + row["bytes_per_s"], "4e+12 4000000000");
  // 0.5 us at 8 TFLOP/s, 0.4 us at 10 GB/s: compute, half of it. At 1000 FLOP/B memory would allow 10 TFLOP/s.
  EXPECT_EQ(row["bound"] + " " + row["share_of_roof"] + " " + row["roof_flops_per_s"], "compute 0.5 8e+12");
  EXPECT_EQ(row["error"] + row["measured"] + row["stage"], "");
}

TEST(RooflineCsv, StagesAndClassesFollowTheKernels) {
  Export out(true);
  std::vector<Row> rows = out.rows({}, analysed());
  ASSERT_EQ(rows.size(), 3U);
  Row& stage = rows[1];
  EXPECT_EQ(stage["kernel_id"] + stage["name"], "");
  EXPECT_EQ(stage["scope"] + " " + stage["stage"] + " " + stage["device"] + " " + stage["measured"],
            "stage decode Toy 4");
  EXPECT_EQ(stage["flops_per_byte"] + " " + stage["flops_per_l2_byte"] + " " + stage["l1_bytes"], "2 0.5 ");
  EXPECT_EQ(stage["roof_flops_per_s"], "2e+10");  // 2 FLOP/B at 10 GB/s
  EXPECT_EQ(stage["bound"] + " " + stage["share_of_roof"] + " " + stage["peak_flops_per_s"], "memory 0.75 8e+12");
  Row& unmixed = rows[2];  // the others have an error that is not known, or as large as their value
  EXPECT_EQ(unmixed["scope"] + " " + unmixed["name"], "unmixed copy_kernel");
  EXPECT_EQ(unmixed["bytes_per_s"] + " " + unmixed["dram_bytes"], "4000000000 2000000000");  // for half a second
  EXPECT_EQ(unmixed["error"], "0.125");                                                      // (3 * 0.1 + 1 * 0.2) / 4
  EXPECT_EQ(unmixed["flops"] + unmixed["bound"], "");
  EXPECT_EQ(unmixed["missing"], "operations");
}

TEST(RooflineCsv, AStageAloneAndWindowsOfTime) {
  Export out(true);
  EXPECT_EQ(out.rows({.begin_ns = {}, .end_ns = {}, .stage = "decode"}, analysed()).size(), 1U);
  EXPECT_THAT(out.write({.begin_ns = 0, .end_ns = 5000, .stage = ""}, analysed()).value().notes,
              testing::ElementsAre(HasSubstr("--window leaves them out")));
}

TEST(RooflineCsv, WithoutCountersItSaysHowToGetThem) {
  Export out(false);
  const Result<Written> written = out.write({}, {});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().hint, HasSubstr("llmprof record --counters roofline"));
}

}  // namespace
}  // namespace llmprof::exporters
