// Real tables of nvidia-smi (tests/imports) against numbers that Python's csv module gives, and tables by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/telemetry_csv/device_readings.h"
#include "importers/testing_sink.h"

namespace llmprof::importers {
namespace {

using namespace trace;

// The recorded tables are from a machine whose zone was UTC.
class TelemetryCsv : public testing::Test {
 protected:
  void SetUp() override { set_zone("UTC"); }
  static void set_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }

  Result<void> read(Input input, std::string_view format = "") {
    const auto head = input.head();
    const Importer* importer = format.empty() ? sniff(*head) : find_importer(format);
    if (importer == nullptr) return Error{ErrorCode::kUnsupported, "nobody knows it", ""};
    format_ = importer->name;
    auto result = importer->parse(input, sink_);
    sink_.flush();
    return result;
  }
  Result<void> read_file(const std::string& name) {
    auto input = Input::open(std::string(LLMPROF_SOURCE_DIR) + "/tests/imports/" + name);
    if (!input) return std::move(input.error());
    return read(std::move(*input));
  }
  Result<void> read_text(const std::string& text, std::string_view format = "") {
    return read(Input::of_text("input", text), format);
  }
  std::vector<double> values(std::string_view metric) const {
    std::vector<double> values;
    for (const TelemetryRow& row : sink_.rows<TelemetryRow>()) {
      if (sink_.text(row.metric) == metric) values.push_back(row.value);
    }
    return values;
  }

  MemorySink sink_;
  std::string format_;
};

TEST_F(TelemetryCsv, nvidiaSmiWithUnits) {
  const auto result = read_file("nvidia_smi_query.csv.gz");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(format_, "nvidia-smi");
  EXPECT_TRUE(sink_.losses.empty());
  // Python: 20 lines, their power adds up to 2969.77 W; 951 MiB at most; the first is at 1794770650.678.
  const auto power = values("power_w");
  ASSERT_EQ(power.size(), 20u);
  double sum = 0;
  for (const double watts : power) sum += watts;
  EXPECT_NEAR(sum, 2969.77, 1e-6);
  EXPECT_EQ(std::ranges::max(values("memory_used_bytes")), 951.0 * 1024 * 1024);
  EXPECT_EQ(sink_.rows<TelemetryRow>().front().ts_ns, 1794770650678000000);
  EXPECT_EQ(values("gpu_utilization").size(), 20u);
  EXPECT_EQ(values("sm_clock_mhz").front(), 1980);
  const auto devices = sink_.rows<DeviceRow>();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(sink_.text(devices[0].name), "NVIDIA H200");
  EXPECT_TRUE(sink_.text(devices[0].uuid).starts_with("GPU-"));
  EXPECT_EQ(devices[0].ordinal, 0);
  EXPECT_EQ(devices[0].memory_bytes, std::int64_t{143771} << 20);
  ASSERT_EQ(sink_.rows<NoteRow>().size(), 1u);
  EXPECT_EQ(sink_.text(sink_.rows<NoteRow>()[0].text),
            "nvidia-smi writes local times without their zone: they were taken as this machine's, UTC+00:00");
}

TEST_F(TelemetryCsv, localTimesAreOfThisMachinesZone) {
  set_zone("XYZ-2");  // two hours ahead of UTC
  ASSERT_TRUE(read_file("nvidia_smi_query.csv.gz"));
  EXPECT_EQ(sink_.rows<TelemetryRow>().front().ts_ns, 1794770650678000000 - 7200'000'000'000);
  EXPECT_TRUE(sink_.text(sink_.rows<NoteRow>()[0].text).ends_with("UTC+02:00"));
}

TEST_F(TelemetryCsv, dmonWithTimes) {
  const auto result = read_file("nvidia_smi_dmon_times.txt.gz");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(values("power_w"), (std::vector<double>{118, 119, 168, 168, 168}));  // as the file shows
  EXPECT_EQ(values("gpu_utilization"), (std::vector<double>{0, 7, 99, 99, 99}));
  // 20261115 19:24:10 = 1794770650 (Python)
  EXPECT_EQ(sink_.rows<TelemetryRow>().front().ts_ns, 1794770650000000000);
}

TEST_F(TelemetryCsv, whatCannotBePlacedIsRefusedWithAHint) {
  auto result = read_file("nvidia_smi_noheader.csv.gz");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "line 1: nvidia-smi with noheader: what its columns are cannot be told");
  result = read_file("nvidia_smi_dmon.txt.gz");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "line 1: a table of nvidia-smi dmon without times");
  EXPECT_NE(result.error().hint.find("-o DT"), std::string::npos);
  result = read_text("# gpu         pid   type     sm\n# Idx           #    C/G      %\n    0   448     C      0\n");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("pmon"), std::string::npos);
  result = read_text("power.draw [W], temperature.gpu\n1 W, 30\n", "nvidia-smi");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("without the column timestamp"), std::string::npos);
}

TEST_F(TelemetryCsv, missingAndDamagedCells) {
  const std::string text =
      "timestamp, index, power.draw [W], temperature.memory, clocks_event_reasons.active, pstate\n"
      "2026/11/15 02:00:52.123, 1, [N/A], [Not Supported], 0x0000000000000024, P8\n"
      "2026/11/15 02:00:53.123, 1, 1.5 W, N/A, 0x0, P0\n"
      "2026/11/15 02:00:54.123, 1, twelve, N/A, 0x0, P0\n"
      "2026/13/15 02:00:55.123, 1, 2 W, N/A, 0x0, P0\n"
      "2026/11/15 02:00:56.123, 1, 3 W\n";
  ASSERT_TRUE(read_text(text));
  EXPECT_EQ(values("power_w"), (std::vector<double>{1.5}));
  EXPECT_TRUE(values("memory_temperature_c").empty());
  EXPECT_EQ(values("clock_limits"), (std::vector<double>{0x24, 0, 0}));
  EXPECT_EQ(values("performance_state"), (std::vector<double>{8, 0, 0}));
  EXPECT_EQ(sink_.lost(Loss::kInputDamaged), 3);  // a word, a 13th month, a line that ends early
}

TEST_F(TelemetryCsv, ownTableOfSeveralDevices) {
  const std::string text =
      "ts,gpu_util_pct,mem_util_pct,sm_clock_MHz,mem_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB,device\n"
      "1794770650.678,99,9,1980,3201,168.04,31,951,143771,0\r\n"
      "1794770650.678,0,,345,,,28,4,143771,1\n";
  const auto result = read_text(text);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(format_, "telemetry");
  EXPECT_EQ(sink_.clock.wall_of_zero_ns, 0);
  ASSERT_EQ(sink_.rows<DeviceRow>().size(), 2u);
  EXPECT_EQ(sink_.rows<DeviceRow>()[1].ordinal, 1);
  EXPECT_EQ(values("power_w"), (std::vector<double>{168.04}));
  EXPECT_EQ(values("temperature_c"), (std::vector<double>{31, 28}));
  EXPECT_EQ(sink_.rows<TelemetryRow>().front().ts_ns, 1794770650678000000);
}

TEST_F(TelemetryCsv, ownTableOfACpu) {
  ASSERT_TRUE(
      read_text("ts,cpu_util_pct,cpu_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB\n"
                "1794770650.5,12.5,2900,,,100,8000\n"));
  EXPECT_EQ(sink_.text(sink_.rows<DeviceRow>().front().kind), "cpu");
  EXPECT_EQ(values("cpu_utilization"), (std::vector<double>{12.5}));
}

TEST_F(TelemetryCsv, aTableWithoutItsHeaderIsRefused) {
  const auto result = read_text("1,2,3\n", "telemetry");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "line 1: no header of llmprof monitor --csv (ts,gpu_util_pct,…)");
  EXPECT_FALSE(read_text("", "telemetry"));
  EXPECT_FALSE(read_text("", "nvidia-smi"));
}

TEST(TelemetryCells, numbersWithTheirUnits) {
  EXPECT_EQ(cell_number("118.64 W"), 118.64);
  EXPECT_EQ(cell_number("-"), std::nullopt);
  EXPECT_EQ(cell_number("1e400"), std::nullopt);
  EXPECT_EQ(cell_number("3 GiB"), std::nullopt);  // a unit that is not expected is no number
  EXPECT_EQ(local_time_ns("2026/02/30", "00:00"), std::nullopt);
  EXPECT_EQ(utc_time_ns("2023-11-14T22:13:20.250Z"), 1'700'000'000'250'000'000);
  EXPECT_EQ(utc_time_ns("1970-01-01T00:00:01Z"), 1'000'000'000);
  for (const char* wrong : {"", "T", "2023-02-30T00:00:00Z", "2023-11-14T22:13:20", "2023-11-14T22:13:20.xZ"})
    EXPECT_EQ(utc_time_ns(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace llmprof::importers
