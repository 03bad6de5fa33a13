#include "report/telemetry_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace llmprof::report {
namespace {

using hw::MetricId;
using testing::HasSubstr;
using testing::Not;

constexpr double kMib = 1024.0 * 1024.0;

TelemetryNow gpus(std::uint32_t count) {
  TelemetryNow now;
  for (std::uint32_t i = 0; i < count; ++i) now.add({i, "gpu", "Toy GPU", 0, 0});
  return now;
}

void take(TelemetryNow& now, MetricId metric, double value, std::uint32_t device = 0, std::uint32_t pid = 0,
          std::uint64_t ts_ns = 1) {
  now.take({metric, device, pid, ts_ns, value});
}

TEST(TelemetryCsv, HasTheColumnsThatOtherToolsRead) {
  TelemetryNow now = gpus(1);
  EXPECT_FALSE(now.any());
  take(now, MetricId::kGpuUtilization, 97);
  take(now, MetricId::kMemoryUtilization, 38);
  take(now, MetricId::kSmClock, 1755);
  take(now, MetricId::kMemoryClock, 3201);
  take(now, MetricId::kPower, 412.5);
  take(now, MetricId::kTemperature, 54);
  take(now, MetricId::kMemoryUsed, 1536 * kMib);
  take(now, MetricId::kMemoryTotal, 143771 * kMib);
  EXPECT_TRUE(now.any());
  EXPECT_EQ(telemetry_csv_header(now),
            "ts,gpu_util_pct,mem_util_pct,sm_clock_MHz,mem_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB\n");
  EXPECT_EQ(telemetry_csv(now, 1700000000.25), "2023-11-14T22:13:20.250Z,97,38,1755,3201,412.500,54,1536.0,143771.0\n");
}

TEST(TelemetryCsv, UnknownIsEmptyAndSeveralDevicesAreNumbered) {
  TelemetryNow now = gpus(2);
  take(now, MetricId::kPower, 100, 1);
  take(now, MetricId::kPower, 100, 7);  // nobody knows it
  EXPECT_THAT(telemetry_csv_header(now), HasSubstr("mem_total_MiB,device\n"));
  EXPECT_EQ(telemetry_csv(now, 1), "1970-01-01T00:00:01.000Z,,,,,,,,,0\n1970-01-01T00:00:01.000Z,,,,,100.000,,,,1\n");
}

// Power at 1 s, energy at 1, 2 and 3 s: from 2 s to 3 s it grew by 30 J. A power that is read counts again.
TEST(TelemetryCsv, PowerFromEnergyWhereThatIsReadMoreOften) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  TelemetryNow now = gpus(1);
  take(now, MetricId::kPower, 100, 0, 0, kSecond);
  take(now, MetricId::kEnergy, 5000, 0, 0, kSecond);
  take(now, MetricId::kEnergy, 5010, 0, 0, 2 * kSecond);
  EXPECT_EQ(now.devices()[0].value(MetricId::kPower), 100);
  take(now, MetricId::kEnergy, 5040, 0, 0, 3 * kSecond);
  EXPECT_EQ(now.devices()[0].value(MetricId::kPower), 30);
  take(now, MetricId::kPower, 90, 0, 0, 4 * kSecond);
  take(now, MetricId::kEnergy, 5000, 0, 0, 5 * kSecond);
  take(now, MetricId::kEnergy, 4000, 0, 0, 6 * kSecond);  // it started again
  EXPECT_EQ(now.devices()[0].value(MetricId::kPower), 90);
}

TEST(TelemetryCsv, ACpuHasColumnsOfItsOwn) {
  TelemetryNow now;
  now.add({0, "cpu", "Toy CPU", 0, 0});
  take(now, MetricId::kCpuUtilization, 12.34);
  EXPECT_EQ(telemetry_csv_header(now), "ts,cpu_util_pct,cpu_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB\n");
  EXPECT_EQ(telemetry_csv(now, 1), "1970-01-01T00:00:01.000Z,12.3,,,,,\n");
  EXPECT_THAT(telemetry_table(now), HasSubstr("Toy CPU"));
}

TEST(TelemetryJson, NamesAndProcesses) {
  TelemetryNow now = gpus(1);
  take(now, MetricId::kPower, 99.5);
  take(now, MetricId::kProcessMemory, 10, 0, 41, 1);
  take(now, MetricId::kProcessMemory, 20, 0, 42, 1);
  take(now, MetricId::kProcessMemory, 25, 0, 42, 2);  // at the next reading 41 is gone
  const base::Json line = base::parse_json(telemetry_json(now, 2.5), "line").value();
  EXPECT_EQ(line["ts"], 2.5);
  EXPECT_EQ(line["metrics"], base::Json({{"power_w", 99.5}}));
  ASSERT_EQ(line["processes"].size(), 1u);
  EXPECT_EQ(line["processes"][0]["pid"], 42);
  EXPECT_EQ(line["processes"][0]["memory_bytes"], 25);
}

TEST(TelemetryTable, SaysWhatHoldsTheClock) {
  TelemetryNow now = gpus(1);
  take(now, MetricId::kPower, 699.7);
  take(now, MetricId::kPowerLimit, 700);
  take(now, MetricId::kClockLimits, 0x1 | 0x4 | 0x20);
  EXPECT_THAT(telemetry_table(now), HasSubstr("700/700"));
  EXPECT_THAT(telemetry_table(now), HasSubstr("power limit, too hot"));
  EXPECT_EQ(clock_limit_words(0x1), "");  // idle is no limit
  EXPECT_EQ(clock_limit_words(-1), "");
  EXPECT_EQ(clock_limit_words(1e300), "");
}

}  // namespace
}  // namespace llmprof::report
