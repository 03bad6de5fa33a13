#include "report/telemetry_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::report {

namespace {

using hw::MetricId;
using Device = TelemetryNow::Device;

constexpr double kMib = 1024.0 * 1024.0;

struct CsvColumn {
  std::string_view title;
  MetricId metric;
  double divisor;
  int decimals;
};
constexpr CsvColumn kGpuColumns[] = {{"gpu_util_pct", MetricId::kGpuUtilization, 1, 0},
                                     {"mem_util_pct", MetricId::kMemoryUtilization, 1, 0},
                                     {"sm_clock_MHz", MetricId::kSmClock, 1, 0},
                                     {"mem_clock_MHz", MetricId::kMemoryClock, 1, 0},
                                     {"power_W", MetricId::kPower, 1, 3},
                                     {"temp_C", MetricId::kTemperature, 1, 0},
                                     {"mem_used_MiB", MetricId::kMemoryUsed, kMib, 1},
                                     {"mem_total_MiB", MetricId::kMemoryTotal, kMib, 1}};
constexpr CsvColumn kCpuColumns[] = {{"cpu_util_pct", MetricId::kCpuUtilization, 1, 1},
                                     {"cpu_clock_MHz", MetricId::kCpuClock, 1, 0},
                                     {"power_W", MetricId::kPower, 1, 3},
                                     {"temp_C", MetricId::kTemperature, 1, 0},
                                     {"mem_used_MiB", MetricId::kMemoryUsed, kMib, 1},
                                     {"mem_total_MiB", MetricId::kMemoryTotal, kMib, 1}};

std::span<const CsvColumn> columns_of(const TelemetryNow& now) {
  const bool cpu = !now.devices().empty() && now.devices().front().device.kind == "cpu";
  return cpu ? std::span<const CsvColumn>(kCpuColumns) : std::span<const CsvColumn>(kGpuColumns);
}

std::string cell(const Device& device, MetricId metric, int decimals = 0) {
  const auto value = device.value(metric);
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

std::string bytes_cell(const Device& device, MetricId metric) {
  const auto value = device.value(metric);
  return value ? base::human_bytes(*value) : "-";
}

std::string power_cell(const Device& device) {
  const auto limit = device.value(MetricId::kPowerLimit);
  return cell(device, MetricId::kPower) + (limit ? fmt::format("/{:.0f}", *limit) : "");
}

base::TextTable gpu_table(const TelemetryNow& now) {
  base::TextTable table({{"GPU", base::Align::kLeft, true},
                         {"power W"},
                         {"SM MHz"},
                         {"mem MHz"},
                         {"°C"},
                         {"busy %"},
                         {"SM %"},
                         {"tensor %"},
                         {"DRAM %"},
                         {"used"},
                         {"of"},
                         {"clock held by", base::Align::kLeft, true}});
  for (const Device& device : now.devices()) {
    const auto limits = device.value(MetricId::kClockLimits);
    table.add({fmt::format("{} {}", device.device.device, device.device.name), power_cell(device),
               cell(device, MetricId::kSmClock), cell(device, MetricId::kMemoryClock),
               cell(device, MetricId::kTemperature), cell(device, MetricId::kGpuUtilization),
               cell(device, MetricId::kSmActive, 1), cell(device, MetricId::kTensorActive, 1),
               cell(device, MetricId::kDramActive, 1), bytes_cell(device, MetricId::kMemoryUsed),
               bytes_cell(device, MetricId::kMemoryTotal), limits ? clock_limit_words(*limits) : "-"});
  }
  return table;
}

base::TextTable cpu_table(const TelemetryNow& now) {
  base::TextTable table(
      {{"CPU", base::Align::kLeft, true}, {"busy %"}, {"MHz"}, {"power W"}, {"°C"}, {"memory used"}, {"of"}});
  for (const Device& device : now.devices()) {
    table.add({device.device.name, cell(device, MetricId::kCpuUtilization, 1), cell(device, MetricId::kCpuClock),
               cell(device, MetricId::kPower, 1), cell(device, MetricId::kTemperature),
               bytes_cell(device, MetricId::kMemoryUsed), bytes_cell(device, MetricId::kMemoryTotal)});
  }
  return table;
}

// "2026-11-17T15:50:17.123Z"
std::string iso_time(double wall_s) {
  const auto ms = static_cast<std::int64_t>(std::llround(wall_s * 1e3));
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms % 1000);
}

void take_energy(Device& device, const hw::Reading& reading) {
  const auto before = device.value(MetricId::kEnergy);
  const bool newer = device.energy_ns > device.power_ns && reading.ts_ns > device.energy_ns;
  if (before && newer && reading.value >= *before) {
    const double seconds = static_cast<double>(reading.ts_ns - device.energy_ns) * 1e-9;
    device.values[static_cast<std::size_t>(MetricId::kPower)] = (reading.value - *before) / seconds;
  }
  device.energy_ns = reading.ts_ns;
}

}  // namespace

void TelemetryNow::add(const hw::TelemetryDevice& device) {
  devices_.emplace_back();
  devices_.back().device = device;
}

void TelemetryNow::take(const hw::Reading& reading) {
  const auto device =
      std::ranges::find_if(devices_, [&](const Device& d) { return d.device.device == reading.device; });
  if (device == devices_.end() || reading.metric >= MetricId::kCount) return;
  if (reading.metric == MetricId::kPower) device->power_ns = reading.ts_ns;
  if (reading.metric == MetricId::kEnergy) take_energy(*device, reading);
  if (reading.metric != MetricId::kProcessMemory) {
    device->values[static_cast<std::size_t>(reading.metric)] = reading.value;
    return;
  }
  if (device->processes_ns != reading.ts_ns) device->process_memory.clear();  // those that ended are not listed again
  device->processes_ns = reading.ts_ns;
  device->process_memory[reading.pid] = reading.value;
}

bool TelemetryNow::any() const {
  return std::ranges::any_of(devices_, [](const Device& device) {
    return std::ranges::any_of(device.values, [](const auto& value) { return value.has_value(); });
  });
}

std::string telemetry_csv_header(const TelemetryNow& now) {
  std::string out = "ts";
  for (const CsvColumn& column : columns_of(now)) out += fmt::format(",{}", column.title);
  return out + (now.devices().size() > 1 ? ",device\n" : "\n");
}

std::string telemetry_csv(const TelemetryNow& now, double wall_s) {
  std::string out;
  for (const Device& device : now.devices()) {
    out += iso_time(wall_s);
    for (const CsvColumn& column : columns_of(now)) {
      const auto value = device.value(column.metric);
      out += value ? fmt::format(",{:.{}f}", *value / column.divisor, column.decimals) : ",";
    }
    out += now.devices().size() > 1 ? fmt::format(",{}\n", device.device.device) : "\n";
  }
  return out;
}

std::string telemetry_json(const TelemetryNow& now, double wall_s) {
  std::string out;
  for (const Device& device : now.devices()) {
    base::Json line{{"ts", wall_s}, {"device", device.device.device}};
    line["metrics"] = base::Json::object();
    for (std::size_t i = 0; i < device.values.size(); ++i) {
      if (device.values[i]) line["metrics"][std::string(hw::metrics()[i].name)] = *device.values[i];
    }
    line["processes"] = base::Json::array();
    for (const auto& [pid, bytes] : device.process_memory) {
      line["processes"].push_back({{"pid", pid}, {"memory_bytes", bytes}});
    }
    out += base::to_line(line) + "\n";
  }
  return out;
}

std::string telemetry_table(const TelemetryNow& now) {
  const bool cpu = !now.devices().empty() && now.devices().front().device.kind == "cpu";
  return (cpu ? cpu_table(now) : gpu_table(now)).render(120, 0);
}

std::string clock_limit_words(double bits) {
  if (!(bits >= 0 && bits < 1e15)) return "";
  std::string words;
  for (const hw::ClockLimit& limit : hw::clock_limits()) {
    if ((static_cast<std::uint64_t>(bits) & limit.bit) == 0) continue;
    words += (words.empty() ? "" : ", ") + std::string(limit.words);
  }
  return words;
}

namespace {

constexpr const char* kDevices =
    "SELECT row_number() OVER (ORDER BY id) - 1, kind, name FROM device WHERE id IN (SELECT device_id FROM telemetry) "
    "ORDER BY id";
constexpr const char* kReadings =
    "WITH number AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM device WHERE id IN (SELECT device_id "
    "FROM telemetry)) "
    "SELECT t.ts_ns, number.n, t.metric, t.value, coalesce((SELECT wall_ns - ts_ns FROM clock_sync ORDER BY ts_ns "
    "LIMIT "
    "1), 0), coalesce(p.pid, 0) FROM telemetry t "
    "JOIN number ON number.id = t.device_id LEFT JOIN process p ON p.id = t.process_id ORDER BY t.ts_ns";

}  // namespace

Result<void> replay_telemetry(const trace::Run& run, const ReplayPart& part, const TelemetryLine& line) {
  LLMPROF_LET(const trace::ResultTable devices, run.query(kDevices));
  TelemetryNow now;
  for (const auto& row : devices.rows) {
    const auto number = static_cast<std::uint32_t>(row[0].as_int());
    if (!part.device || *part.device == number) now.add({number, row[1].text, row[2].text, 0, 0});
  }
  if (now.devices().empty()) {
    return Error{ErrorCode::kNotFound, run.folder() + " has no telemetry",
                 "llmprof record reads GPUs where there are some"};
  }
  LLMPROF_LET(const trace::ResultTable readings, run.query(kReadings));
  for (const auto& row : readings.rows) {
    const hw::Metric* metric = hw::find_metric(row[2].text);
    if (metric == nullptr) continue;
    const std::int64_t ts_ns = row[0].as_int();
    const auto id = static_cast<hw::MetricId>(metric - hw::metrics().data());
    now.take({id, static_cast<std::uint32_t>(row[1].as_int()), static_cast<std::uint32_t>(row[5].as_int()),
              static_cast<std::uint64_t>(ts_ns), row[3].as_double()});
    if (id != hw::MetricId::kPower || row[1].as_int() != now.devices().back().device.device) continue;
    if ((part.begin_ns && ts_ns < *part.begin_ns) || (part.end_ns && ts_ns > *part.end_ns)) continue;
    if (!line(now, static_cast<double>(ts_ns + row[4].as_int()) * 1e-9)) break;
  }
  return {};
}

}  // namespace llmprof::report
