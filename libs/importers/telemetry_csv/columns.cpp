#include "importers/telemetry_csv/columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/strings.h"
#include "importers/text.h"

namespace llmprof::importers {
namespace {

using hw::MetricId;

constexpr double kMiB = 1 << 20;

constexpr Column kOwn[] = {
    {"ts", ColumnRole::kTime},
    {"device", ColumnRole::kIndex},
    {"gpu_util_pct", ColumnRole::kMetric, MetricId::kGpuUtilization},
    {"mem_util_pct", ColumnRole::kMetric, MetricId::kMemoryUtilization},
    {"sm_clock_MHz", ColumnRole::kMetric, MetricId::kSmClock},
    {"mem_clock_MHz", ColumnRole::kMetric, MetricId::kMemoryClock},
    {"power_W", ColumnRole::kMetric, MetricId::kPower},
    {"temp_C", ColumnRole::kMetric, MetricId::kTemperature},
    {"mem_used_MiB", ColumnRole::kMetric, MetricId::kMemoryUsed, kMiB},
    {"mem_total_MiB", ColumnRole::kMetric, MetricId::kMemoryTotal, kMiB},
    {"cpu_util_pct", ColumnRole::kMetric, MetricId::kCpuUtilization, 1, true},
    {"cpu_clock_MHz", ColumnRole::kMetric, MetricId::kCpuClock, 1, true},
};

// nvidia-smi --help-query-gpu; several names of the same come with their preferred one first.
constexpr Column kQuery[] = {
    {"timestamp", ColumnRole::kLocalTime},
    {"index", ColumnRole::kIndex},
    {"uuid", ColumnRole::kUuid},
    {"gpu_uuid", ColumnRole::kUuid},
    {"name", ColumnRole::kName},
    {"gpu_name", ColumnRole::kName},
    {"driver_version", ColumnRole::kDriver},
    {"utilization.gpu", ColumnRole::kMetric, MetricId::kGpuUtilization},
    {"utilization.memory", ColumnRole::kMetric, MetricId::kMemoryUtilization},
    {"clocks.current.sm", ColumnRole::kMetric, MetricId::kSmClock},
    {"clocks.sm", ColumnRole::kMetric, MetricId::kSmClock},
    {"clocks.current.memory", ColumnRole::kMetric, MetricId::kMemoryClock},
    {"clocks.mem", ColumnRole::kMetric, MetricId::kMemoryClock},
    {"power.draw", ColumnRole::kMetric, MetricId::kPower},
    {"power.draw.instant", ColumnRole::kMetric, MetricId::kPower},
    {"power.draw.average", ColumnRole::kMetric, MetricId::kPower},
    {"power.limit", ColumnRole::kMetric, MetricId::kPowerLimit},
    {"enforced.power.limit", ColumnRole::kMetric, MetricId::kPowerLimit},
    {"temperature.gpu", ColumnRole::kMetric, MetricId::kTemperature},
    {"temperature.memory", ColumnRole::kMetric, MetricId::kMemoryTemperature},
    {"memory.used", ColumnRole::kMetric, MetricId::kMemoryUsed, kMiB},
    {"memory.total", ColumnRole::kMetric, MetricId::kMemoryTotal, kMiB},
    {"pstate", ColumnRole::kMetric, MetricId::kPerformanceState},
    {"clocks_event_reasons.active", ColumnRole::kMetric, MetricId::kClockLimits},
    {"clocks_throttle_reasons.active", ColumnRole::kMetric, MetricId::kClockLimits},
    {"pcie.link.gen.current", ColumnRole::kMetric, MetricId::kPcieGeneration},
    {"pcie.link.gen.gpucurrent", ColumnRole::kMetric, MetricId::kPcieGeneration},
    {"pcie.link.width.current", ColumnRole::kMetric, MetricId::kPcieWidth},
};

// fb is in MiB, whatever its header says: it shows the number that --query-gpu gives with MiB.
constexpr Column kDmon[] = {
    {"Date", ColumnRole::kDate},
    {"Time", ColumnRole::kTimeOfDay},
    {"gpu", ColumnRole::kIndex},
    {"pwr", ColumnRole::kMetric, MetricId::kPower},
    {"gtemp", ColumnRole::kMetric, MetricId::kTemperature},
    {"mtemp", ColumnRole::kMetric, MetricId::kMemoryTemperature},
    {"sm", ColumnRole::kMetric, MetricId::kGpuUtilization},
    {"mem", ColumnRole::kMetric, MetricId::kMemoryUtilization},
    {"mclk", ColumnRole::kMetric, MetricId::kMemoryClock},
    {"pclk", ColumnRole::kMetric, MetricId::kSmClock},
    {"fb", ColumnRole::kMetric, MetricId::kMemoryUsed, kMiB},
};

const Column* find(std::span<const Column> table, std::string_view name) {
  for (const Column& column : table) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

}  // namespace

std::span<const Column> own_columns() { return kOwn; }
std::span<const Column> query_columns() { return kQuery; }
std::span<const Column> dmon_columns() { return kDmon; }

std::vector<Column> match_columns(const std::vector<std::string_view>& header, std::span<const Column> table) {
  std::vector<Column> columns;
  for (std::string_view name : header) {
    name = base::trimmed(name.substr(0, name.find('[')));
    const Column* known = find(table, name);
    Column column = known != nullptr ? *known : Column{name, ColumnRole::kIgnored};
    for (const Column& before : columns) {
      const bool same = before.role == column.role && before.metric == column.metric;
      if (same && column.role != ColumnRole::kIgnored) column.role = ColumnRole::kIgnored;
    }
    columns.push_back(column);
  }
  return columns;
}

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells = base::split(line, separator);
  for (std::string_view& cell : cells) cell = base::trimmed(cell);
  if (separator == ' ') std::erase(cells, "");
  return cells;
}

bool is_missing(std::string_view cell) {
  return cell.empty() || cell == "-" || cell == "N/A" || (cell.front() == '[' && cell.back() == ']');
}

std::optional<double> cell_number(std::string_view cell) {
  if (is_missing(cell)) return std::nullopt;
  if (cell.starts_with("0x")) {
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(cell.data() + 2, cell.data() + cell.size(), bits, 16);
    if (error != std::errc{} || end != cell.data() + cell.size()) return std::nullopt;
    return static_cast<double>(bits);
  }
  if (cell.starts_with('P')) cell.remove_prefix(1);  // performance state
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  const std::string_view unit = base::trimmed(cell.substr(static_cast<std::size_t>(end - cell.data())));
  for (const std::string_view known : {"", "%", "W", "MHz", "MiB", "C"}) {
    if (unit == known) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> local_time_ns(std::string_view date, std::string_view time_of_day) {
  const bool plain = date.size() == 8;  // 20261115, else 2026/11/15
  if (!plain && (date.size() != 10 || date[4] != '/' || date[7] != '/')) return std::nullopt;
  const auto day = date_of(date.substr(0, 4), date.substr(plain ? 4 : 5, 2), date.substr(plain ? 6 : 8, 2));
  const auto second = second_of_day(time_of_day.substr(0, 8));
  if (!day || !second) return std::nullopt;
  std::int64_t fraction_ns = 0;
  if (time_of_day.size() > 8) {
    if (time_of_day[8] != '.' || time_of_day.size() > 18) return std::nullopt;
    std::int64_t unit = 100'000'000;
    for (const char digit : time_of_day.substr(9)) {
      if (!base::is_digit(digit)) return std::nullopt;
      fraction_ns += (digit - '0') * unit;
      unit /= 10;
    }
  }
  std::tm parts{};
  parts.tm_year = static_cast<int>(day->year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(day->month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(day->day()));
  parts.tm_hour = static_cast<int>(*second / 3600), parts.tm_min = static_cast<int>(*second / 60 % 60);
  parts.tm_sec = static_cast<int>(*second % 60);
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  if (seconds == -1) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * 1'000'000'000 + fraction_ns;
}

std::optional<trace::Id> DeviceReadings::device(const Known& known) {
  const auto same = std::ranges::find_if(devices_, [&](const Device& device) {
    if (!known.uuid.empty() || !device.uuid.empty()) return device.uuid == known.uuid;
    if (known.ordinal || device.ordinal) return device.ordinal == known.ordinal;
    return device.name == known.name;
  });
  if (same != devices_.end()) return same->id;
  if (devices_.size() >= kMaxDevices) {
    sink_.lose(trace::Loss::kInputLimit, 1, "readings of further devices");
    return std::nullopt;
  }
  trace::DeviceRow row{.id = sink_.new_id(), .kind = sink_.name(known.cpu ? "cpu" : "gpu")};
  if (!known.uuid.empty()) row.uuid = sink_.name(known.uuid);
  if (!known.name.empty()) row.name = sink_.name(known.name);
  if (!known.driver.empty()) row.driver = sink_.name(known.driver);
  row.memory_bytes = known.memory_bytes;
  row.ordinal = known.ordinal;
  sink_.add(row);
  devices_.push_back({row.id, std::string(known.uuid), std::string(known.name), known.ordinal});
  return row.id;
}

void DeviceReadings::add(trace::Id device, std::int64_t ts_ns, hw::MetricId metric, double value) {
  if (!std::isfinite(value)) return sink_.lose(trace::Loss::kInputRepaired, 1, "readings that are no finite number");
  const hw::Metric& info = hw::info_of(metric);
  trace::TelemetryRow row{.ts_ns = ts_ns, .device_id = device, .metric = sink_.name(info.name), .value = value};
  if (!info.unit.empty()) row.unit = sink_.name(info.unit);
  sink_.add(row);
  ++readings_;
  if (!first_ns_ || ts_ns < *first_ns_) first_ns_ = ts_ns;
}

using trace::Loss;

TableReader::TableReader(Sink& sink, std::vector<Column> columns, char separator)
    : sink_(sink), columns_(std::move(columns)), separator_(separator), readings_(sink) {}

bool TableReader::has(ColumnRole role) const {
  return std::ranges::any_of(columns_, [&](const Column& column) { return column.role == role; });
}

std::optional<std::int64_t> TableReader::time_of(const std::vector<std::string_view>& cells) const {
  std::string_view date, time_of_day;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    switch (columns_[i].role) {
      case ColumnRole::kTime: {
        const auto seconds = cell_number(cells[i]);
        if (!seconds || *seconds < 0 || *seconds > 7e9) return std::nullopt;
        return std::llround(*seconds * 1e6) * 1000;  // written in milliseconds; a double holds microseconds
      }
      case ColumnRole::kLocalTime: {
        const std::size_t blank = cells[i].find(' ');
        if (blank == std::string_view::npos) return std::nullopt;
        return local_time_ns(cells[i].substr(0, blank), base::trimmed(cells[i].substr(blank)));
      }
      case ColumnRole::kDate:
        date = cells[i];
        break;
      case ColumnRole::kTimeOfDay:
        time_of_day = cells[i];
        break;
      default:
        break;
    }
  }
  return local_time_ns(date, time_of_day);
}

std::optional<trace::Id> TableReader::device_of(const std::vector<std::string_view>& cells) {
  DeviceReadings::Known known;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (is_missing(cells[i])) continue;
    if (columns_[i].role == ColumnRole::kUuid) known.uuid = cells[i];
    if (columns_[i].role == ColumnRole::kName) known.name = cells[i];
    if (columns_[i].role == ColumnRole::kDriver) known.driver = cells[i];
    if (columns_[i].cpu) known.cpu = true;
    if (columns_[i].role == ColumnRole::kMetric && columns_[i].metric == hw::MetricId::kMemoryTotal) {
      const double bytes = cell_number(cells[i]).value_or(0) * columns_[i].factor;
      if (bytes > 0 && bytes < 1e18) known.memory_bytes = static_cast<std::int64_t>(bytes);
    }
    if (columns_[i].role != ColumnRole::kIndex) continue;
    if (const auto index = cell_number(cells[i]); index && *index >= 0 && *index < 1e6) {
      known.ordinal = static_cast<std::int64_t>(*index);
    }
  }
  // Only one device was read, and nothing tells which: the first.
  if (!known.cpu && known.uuid.empty() && known.name.empty() && !known.ordinal) known.ordinal = 0;
  return readings_.device(known);
}

void TableReader::line(std::string_view text, const std::string& where) {
  const std::vector<std::string_view> cells = cells_of(text, separator_);
  if (cells.size() != columns_.size()) {
    return sink_.lose(Loss::kInputDamaged, 1, "lines with another number of cells than the header", where);
  }
  const auto ts_ns = time_of(cells);
  if (!ts_ns) return sink_.lose(Loss::kInputDamaged, 1, "lines without a time that can be read", where);
  const auto device = device_of(cells);
  if (!device) return;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (columns_[i].role != ColumnRole::kMetric || is_missing(cells[i])) continue;
    const auto value = cell_number(cells[i]);
    if (value) {
      readings_.add(*device, *ts_ns, columns_[i].metric, *value * columns_[i].factor);
    } else {
      sink_.lose(Loss::kInputDamaged, 1, "cells that are no number", where);
    }
  }
}

}  // namespace llmprof::importers
