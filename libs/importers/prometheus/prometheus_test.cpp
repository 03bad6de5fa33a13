// A real exporter's text (tests/imports) against counts that Python gives; bad lines one by one; texts of vLLM and DCGM
// by hand, from their documentation.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"
#include "importers/prometheus/scrape.h"

namespace llmprof::importers {
namespace {

using namespace trace;

class Prometheus : public testing::Test {
 protected:
  Result<void> read(Input input) {
    auto result = find_importer("prometheus")->parse(input, sink_);
    sink_.flush();
    return result;
  }
  Result<void> read_text(const std::string& text) { return read(Input::of_text("input", text)); }
  // What a line that cannot be used is counted as.
  static std::string lost(const std::string& line) {
    MemorySink sink;
    Input input = Input::of_text("input", "good 1\n" + line + "\n");
    if (!find_importer("prometheus")->parse(input, sink)) return "refused";
    sink.flush();
    return sink.details.empty() ? "" : sink.details.front();
  }
  MemorySink sink_;
};

TEST_F(Prometheus, twoScrapesOfARealExporter) {
  auto input = Input::open(std::string(LLMPROF_SOURCE_DIR) + "/tests/imports/prometheus_node_exporter.txt.gz");
  ASSERT_TRUE(input);
  const auto head = input->head();
  EXPECT_EQ(sniff(*head)->name, "prometheus");
  ASSERT_TRUE(read(std::move(*input)));
  EXPECT_TRUE(sink_.losses.empty()) << sink_.details.front();
  // Python: 96 lines that are no comments, 48 series, each twice.
  const auto rows = sink_.rows<MetricRow>();
  EXPECT_EQ(rows.size(), 96u);
  std::set<std::pair<std::uint32_t, std::uint32_t>> series;
  std::vector<double> times;
  for (const MetricRow& row : rows) {
    series.insert({row.name.id, row.labels.id});
    if (sink_.text(row.name) == "node_time_seconds") times.push_back(row.value);
    EXPECT_FALSE(row.ts_ns);
  }
  EXPECT_EQ(series.size(), 48u);
  EXPECT_EQ(times, (std::vector<double>{1.7947724375492845e+09, 1.794772438619192e+09}));
  const auto idle = std::ranges::find_if(
      rows, [&](const MetricRow& row) { return sink_.text(row.labels) == "cpu=\"0\",mode=\"idle\""; });
  ASSERT_NE(idle, rows.end());
  EXPECT_EQ(idle->value, 17896.06);
  EXPECT_EQ(sink_.text(idle->kind), "counter");
  EXPECT_EQ(sink_.text(idle->unit), "seconds");
  EXPECT_FALSE(sink_.clock.wall_of_zero_ns);
}

TEST_F(Prometheus, badLinesAreSkippedAndCounted) {
  EXPECT_EQ(lost("#"), "");
  EXPECT_EQ(lost("# HELP"), "");
  EXPECT_EQ(lost("# TYPE"), "");
  EXPECT_EQ(lost("{A}0"), "input_damaged 1: lines without the name of a metric, at line 2");
  EXPECT_EQ(lost("a{=\"x\"} 1"), "input_damaged 1: lines with a label without a name, at line 2");
  EXPECT_EQ(lost("a{b} 1"), "input_damaged 1: lines with a label without a value, at line 2");
  EXPECT_EQ(lost("a{b=c} 1"), "input_damaged 1: lines with a label without a value, at line 2");
  EXPECT_EQ(lost("a{b=\"c} 1"), "input_damaged 1: lines with a quote that is not closed, at line 2");
  EXPECT_EQ(lost("a{b=\"c\\\"} 1"), "input_damaged 1: lines with a quote that is not closed, at line 2");
  EXPECT_EQ(lost("a{b=\"c\" 1"), "input_damaged 1: lines with labels that do not end, at line 2");
  EXPECT_EQ(lost("a 1e400"), "input_damaged 1: lines without a number that can be read, at line 2");
  EXPECT_EQ(lost("a one"), "input_damaged 1: lines without a number that can be read, at line 2");
  EXPECT_EQ(lost("a"), "input_damaged 1: lines without a number that can be read, at line 2");
  EXPECT_EQ(lost("a 1 2 3"), "input_damaged 1: lines with something behind the value, at line 2");
  EXPECT_EQ(lost("a 1 -5"), "input_damaged 1: lines with a time that cannot be, at line 2");
  EXPECT_EQ(lost("a NaN"), "input_ignored 1: values that are NaN or infinite, at line 2");
  EXPECT_EQ(lost("a +Inf"), "input_ignored 1: values that are NaN or infinite, at line 2");
  EXPECT_EQ(lost("good 2"), "input_damaged 1: lines that repeat a series, at line 2");
  EXPECT_EQ(lost("a{b=\"" + std::string(5000, 'x') + "\"} 1"),
            "input_damaged 1: lines with a label longer than 4 KiB, at line 2");
  EXPECT_EQ(lost("a{b=\"" + std::string(1 << 20, 'x') + "\"} 1").substr(0, 24), "input_damaged 1: lines l");
  std::string many = "a{";
  for (int i = 0; i < 65; ++i) many += "l" + std::to_string(i) + "=\"x\",";
  EXPECT_EQ(lost(many + "} 1"), "input_damaged 1: lines with more than 64 labels, at line 2");
  EXPECT_EQ(lost("x 1 1000\nx 2 500"), "input_repaired 1: times that go backwards, at line 3");
}

TEST_F(Prometheus, whatIsAllowedIsUnderstood) {
  ASSERT_TRUE(
      read_text("  # TYPE a_bytes  gauge\r\na_bytes { x = \"1,}\\\"\" , } +2.5e3 1794770650678\r\nb:c -Inf\nd 7"));
  const auto rows = sink_.rows<MetricRow>();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].value, 2500);
  EXPECT_EQ(sink_.text(rows[0].kind), "gauge");
  EXPECT_EQ(sink_.text(rows[0].unit), "bytes");
  EXPECT_EQ(rows[0].ts_ns, 1794770650678000000);  // milliseconds
  EXPECT_EQ(base::label_value(sink_.text(rows[0].labels), "x"), "1,}\"");
  EXPECT_EQ(rows[1].value, 7);  // no newline at the end
  EXPECT_EQ(sink_.clock.wall_of_zero_ns, 0);
}

TEST_F(Prometheus, openMetricsHasSecondsExemplarsAndUnits) {
  ASSERT_TRUE(
      read_text("# TYPE lat histogram\n# UNIT lat seconds\n"
                "lat_bucket{le=\"0.1\"} 8 1794770650.678 # {trace_id=\"x\"} 0.067 1794770650.1\n"
                "lat_sum 0.5 1794770650.678\n# EOF\n"));
  const auto rows = sink_.rows<MetricRow>();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].ts_ns, 1794770650678000000);
  EXPECT_EQ(sink_.text(rows[0].kind), "histogram");
  EXPECT_EQ(sink_.text(rows[1].unit), "seconds");
  EXPECT_EQ(sink_.lost(Loss::kInputIgnored), 1);  // the exemplar
}

TEST_F(Prometheus, htmlAndOtherTextsAreRefused) {
  auto result = read_text("<html>\n<head><title>404 Not Found</title></head></html>");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "line 1: an HTML page, no metrics (\"404 Not Found\")");
  result = read_text("nothing here\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "line 1: no metric can be read from it");
  EXPECT_EQ(sniff("some words of prose, nothing else\nand more of it\n"), nullptr);
}

TEST_F(Prometheus, seriesAreLimited) {
  Scrapes scrapes(sink_, 100);
  for (int i = 0; i < 110; ++i) scrapes.line("a{i=\"" + std::to_string(i) + "\"} 1", "line");
  scrapes.finish();
  sink_.flush();
  EXPECT_EQ(sink_.rows<MetricRow>().size(), 100u);
  EXPECT_EQ(sink_.details.front(), "input_limit 10: series beyond 100, at line, line, line, …");
}

TEST_F(Prometheus, readingsOfGpusGoToTheirDevice) {
  const std::string labels = "{gpu=\"3\",UUID=\"GPU-1\",device=\"nvidia3\",modelName=\"NVIDIA H100\"} ";
  ASSERT_TRUE(read_text("# TYPE DCGM_FI_DEV_POWER_USAGE gauge\nDCGM_FI_DEV_POWER_USAGE" + labels +
                        "412.5 1794770650678\nDCGM_FI_PROF_SM_ACTIVE" + labels + "0.25 1794770650678\n" +
                        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + "2000 1794770650678\n" +
                        "nv_gpu_utilization{gpu_uuid=\"GPU-1\"} 0.5\n"));
  ASSERT_EQ(sink_.rows<DeviceRow>().size(), 1u);
  EXPECT_EQ(sink_.text(sink_.rows<DeviceRow>()[0].name), "NVIDIA H100");
  EXPECT_EQ(sink_.rows<DeviceRow>()[0].ordinal, 3);
  std::map<std::string, double> readings;
  for (const TelemetryRow& row : sink_.rows<TelemetryRow>()) readings[std::string(sink_.text(row.metric))] = row.value;
  EXPECT_EQ(readings, (std::map<std::string, double>{{"power_w", 412.5}, {"sm_active", 25}, {"energy_j", 2}}));
  EXPECT_EQ(sink_.rows<MetricRow>().size(), 4u);
  EXPECT_EQ(sink_.lost(Loss::kInputIgnored), 1);  // Triton's without a time
  EXPECT_EQ(sink_.rows<MetricRow>()[3].device_id, sink_.rows<DeviceRow>()[0].id);
}

}  // namespace
}  // namespace llmprof::importers
