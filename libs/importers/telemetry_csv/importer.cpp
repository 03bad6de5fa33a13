// Tables of readings of devices: llmprof monitor --csv, nvidia-smi --query-gpu and nvidia-smi dmon.
#include "importers/telemetry_csv/device_readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <span>

#include "base/strings.h"
#include "importers/importer.h"
#include "importers/text.h"

namespace llmprof::importers {
namespace {

// What the columns of telemetry files mean, by the names that llmprof, nvidia-smi --query-gpu and nvidia-smi dmon use.
enum class ColumnRole : std::uint8_t {
  kIgnored,
  kMetric,
  kTime,       // 2026-11-15T02:00:52.123Z, or seconds since 1970, as older versions wrote
  kLocalTime,  // 2026/11/15 02:00:52.123
  kDate,       // 20261115
  kTimeOfDay,  // 02:00:52
  kIndex,
  kUuid,
  kName,
  kDriver,
};

struct Column {
  std::string_view name;  // without its unit
  ColumnRole role = ColumnRole::kMetric;
  hw::MetricId metric = hw::MetricId::kCount;
  double factor = 1;  // to the unit of the metric
  bool cpu = false;   // of a CPU, not a GPU
};

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

// Column by column; a name that is not in the table is kIgnored, a metric that was there already, too. Units in
// brackets are taken off.
std::vector<Column> match_columns(const std::vector<std::string_view>& header, std::span<const Column> table) {
  std::vector<Column> columns;
  for (std::string_view name : header) {
    name = base::trimmed(name.substr(0, name.find('[')));
    const auto known = std::ranges::find(table, name, &Column::name);
    Column column = known != table.end() ? *known : Column{name, ColumnRole::kIgnored};
    for (const Column& before : columns) {
      const bool same = before.role == column.role && before.metric == column.metric;
      if (same && column.role != ColumnRole::kIgnored) column.role = ColumnRole::kIgnored;
    }
    columns.push_back(column);
  }
  return columns;
}

// Trimmed; ' ': any run of blanks.
std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells = base::split(line, separator);
  for (std::string_view& cell : cells) cell = base::trimmed(cell);
  if (separator == ' ') std::erase(cells, "");
  return cells;
}

// Says that there is no value.
bool is_missing(std::string_view cell) {
  return cell.empty() || cell == "-" || cell == "N/A" || (cell.front() == '[' && cell.back() == ']');
}

// A table of readings, line by line, with the columns that its header named.
class TableReader {
 public:
  TableReader(Sink& sink, std::vector<Column> columns, char separator)
      : sink_(sink), columns_(std::move(columns)), separator_(separator), readings_(sink) {}

  bool has(ColumnRole role) const {
    return std::ranges::any_of(columns_, [&](const Column& column) { return column.role == role; });
  }

  // `where`: "line 3", for what cannot be understood.
  void line(std::string_view text, const std::string& where) {
    const std::vector<std::string_view> cells = cells_of(text, separator_);
    if (cells.size() != columns_.size()) {
      return sink_.lose(trace::Loss::kInputDamaged, 1, "lines with another number of cells than the header", where);
    }
    const auto ts_ns = time_of(cells);
    if (!ts_ns) return sink_.lose(trace::Loss::kInputDamaged, 1, "lines without a time that can be read", where);
    const auto device = device_of(cells);
    if (!device) return;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i].role != ColumnRole::kMetric || is_missing(cells[i])) continue;
      const auto value = cell_number(cells[i]);
      if (value) {
        readings_.add(*device, *ts_ns, columns_[i].metric, *value * columns_[i].factor);
      } else {
        sink_.lose(trace::Loss::kInputDamaged, 1, "cells that are no number", where);
      }
    }
  }

  std::optional<std::int64_t> first_ns() const { return readings_.first_ns(); }

 private:
  std::optional<std::int64_t> time_of(const std::vector<std::string_view>& cells) const {
    std::string_view date, time_of_day;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const ColumnRole role = columns_[i].role;
      if (role == ColumnRole::kTime) {
        if (cells[i].find('T') != std::string_view::npos) return utc_time_ns(cells[i]);
        const auto seconds = cell_number(cells[i]);
        if (!seconds || *seconds < 0 || *seconds > 7e9) return std::nullopt;
        return std::llround(*seconds * 1e6) * 1000;  // written in milliseconds; a double holds microseconds
      }
      const std::size_t blank = role == ColumnRole::kLocalTime ? cells[i].find(' ') : std::string_view::npos;
      if (blank != std::string_view::npos)
        return local_time_ns(cells[i].substr(0, blank), base::trimmed(cells[i].substr(blank)));
      if (role == ColumnRole::kDate) date = cells[i];
      if (role == ColumnRole::kTimeOfDay) time_of_day = cells[i];
    }
    return local_time_ns(date, time_of_day);
  }

  std::optional<trace::Id> device_of(const std::vector<std::string_view>& cells) {
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

  Sink& sink_;
  std::vector<Column> columns_;
  char separator_;
  DeviceReadings readings_;
};

}  // namespace

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

namespace {

// ".123" in ns; "" is 0.
std::optional<std::int64_t> fraction_in_ns(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] != '.' || text.size() > 10) return std::nullopt;
  std::int64_t ns = 0, unit = 100'000'000;
  for (const char digit : text.substr(1)) {
    if (!base::is_digit(digit)) return std::nullopt;
    ns += (digit - '0') * unit;
    unit /= 10;
  }
  return ns;
}

}  // namespace

std::optional<std::int64_t> utc_time_ns(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || !text.ends_with('Z'))
    return std::nullopt;
  const auto day = date_of(text.substr(0, 4), text.substr(5, 2), text.substr(8, 2));
  const auto second = second_of_day(text.substr(11, 8));
  const auto fraction = fraction_in_ns(text.substr(19, text.size() - 20));
  if (!day || !day->ok() || !second || !fraction) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(*day).time_since_epoch().count();
  return (days * 86'400 + *second) * 1'000'000'000 + *fraction;
}

std::optional<std::int64_t> local_time_ns(std::string_view date, std::string_view time_of_day) {
  const bool plain = date.size() == 8;  // 20261115, else 2026/11/15
  if (!plain && (date.size() != 10 || date[4] != '/' || date[7] != '/')) return std::nullopt;
  const auto day = date_of(date.substr(0, 4), date.substr(plain ? 4 : 5, 2), date.substr(plain ? 6 : 8, 2));
  const auto second = second_of_day(time_of_day.substr(0, 8));
  const auto fraction_ns = fraction_in_ns(time_of_day.substr(std::min<std::size_t>(time_of_day.size(), 8)));
  if (!day || !second || !fraction_ns) return std::nullopt;
  std::tm parts{};
  parts.tm_year = static_cast<int>(day->year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(day->month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(day->day()));
  parts.tm_hour = static_cast<int>(*second / 3600), parts.tm_min = static_cast<int>(*second / 60 % 60);
  parts.tm_sec = static_cast<int>(*second % 60);
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  if (seconds == -1) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * 1'000'000'000 + *fraction_ns;
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
  if (!first_ns_ || ts_ns < *first_ns_) first_ns_ = ts_ns;
}

// llmprof monitor --csv: seconds since 1970 and the columns of docs/manual/monitor.md.
namespace telemetry_csv {
namespace {

int sniff(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  if (!line.starts_with("ts,")) return 0;
  return base::contains(line, "gpu_util_pct") || base::contains(line, "cpu_util_pct") || base::contains(line, "power_W")
             ? 97
             : 0;
}

Result<void> parse(Input& input, Sink& sink) {
  Lines lines(input, sink);
  std::string_view line;
  LLMPROF_LET(const bool any, lines.next(line));
  const std::string names(any ? line : "");  // column names are views of it
  TableReader table(sink, match_columns(cells_of(names, ','), kOwn), ',');
  if (!table.has(ColumnRole::kTime) || !table.has(ColumnRole::kMetric)) {
    return Error{ErrorCode::kCorruptInput, "line 1: no header of llmprof monitor --csv (ts,gpu_util_pct,…)",
                 "llmprof monitor --csv -o FILE writes one"};
  }
  sink.set_clock({.wall_of_zero_ns = 0, .name = "llmprof monitor: seconds since 1970"});
  sink.set_facts({.tool = "llmprof monitor"});
  return lines.each([&](std::string_view text) {
    if (!base::trimmed(text).empty()) table.line(text, lines.where());
  });
}

}  // namespace
}  // namespace telemetry_csv

extern const Importer kTelemetryCsv;
const Importer kTelemetryCsv{"telemetry", "llmprof monitor, CSV", Role::kReadings, telemetry_csv::sniff,
                             telemetry_csv::parse};

// nvidia-smi --query-gpu=… --format=csv, and the tables of nvidia-smi dmon. Their times are local and without a zone.
namespace nvidia_smi {
namespace {

constexpr std::string_view kHint =
    "nvidia-smi --query-gpu=timestamp,uuid,index,name,power.draw,clocks.sm,clocks.mem,utilization.gpu,"
    "utilization.memory,temperature.gpu,memory.used,memory.total --format=csv -lms 200 writes what can be read";

bool begins_with_time(std::string_view line) {
  return line.size() > 23 && line[4] == '/' && line[7] == '/' && line[10] == ' ' && line[13] == ':' &&
         local_time_ns(line.substr(0, 10), line.substr(11, 8)).has_value();
}

bool is_table_of_dmon(std::string_view line) {
  return line.starts_with('#') && (base::contains(line, " gpu") || line.starts_with("#gpu"));
}

int sniff(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  if (base::contains(line, "timestamp") && line.find(',') != std::string_view::npos) {
    for (const std::string_view word : {"utilization.gpu", "power.draw", "clocks.", "temperature.gpu", "memory.used"}) {
      if (base::contains(line, word)) return 97;
    }
  }
  if (is_table_of_dmon(line) && base::contains(head, "Idx")) return 95;
  const bool banner = base::contains(head, "| NVIDIA-SMI ") || base::contains(head, "<nvidia_smi_log>");
  return banner ? 60 : begins_with_time(line) && line.find(',') != std::string_view::npos ? 60 : 0;
}

Error refuse(std::string_view what, std::string_view hint = kHint) {
  return {ErrorCode::kUnsupported, fmt::format("line 1: {}", what), std::string(hint)};
}

void note_zone(Sink& sink, std::int64_t first_ns) {
  const std::time_t seconds = first_ns / 1'000'000'000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  const long minutes = parts.tm_gmtoff / 60;
  sink.note("telemetry",
            fmt::format("nvidia-smi writes local times without their zone: they were taken as this machine's, "
                        "UTC{:+03d}:{:02d}",
                        minutes / 60, std::abs(minutes % 60)),
            first_ns);
}

// Header, cells and separator of either form.
struct Form {
  std::vector<Column> columns;
  char separator = ',';
};

Result<Form> form_of(std::string_view line) {
  if (line.starts_with('#')) {
    if (base::contains(line, " pid")) return refuse("a table of nvidia-smi pmon: it has no sums of a device");
    const char separator = line.find(',') == std::string_view::npos ? ' ' : ',';
    Form form{match_columns(cells_of(line.substr(1), separator), kDmon), separator};
    for (const Column& column : form.columns) {
      if (column.role == ColumnRole::kDate) return form;
    }
    return refuse("a table of nvidia-smi dmon without times",
                  "nvidia-smi dmon -o DT writes date and time in front of each line");
  }
  if (begins_with_time(line)) {
    return refuse("nvidia-smi with noheader: what its columns are cannot be told",
                  "record without noheader, or put the line of the names behind --query-gpu= in front of the file");
  }
  if (base::contains(line, "<?xml")) return refuse("nvidia-smi -q -x: one moment, as XML");
  Form form{match_columns(cells_of(line, ','), kQuery), ','};
  bool time = false, metric = false;
  for (const Column& column : form.columns) {
    time = time || column.role == ColumnRole::kLocalTime;
    metric = metric || column.role == ColumnRole::kMetric;
  }
  if (!time && metric) return refuse("a table of nvidia-smi without the column timestamp");
  if (!metric) return refuse("no table of nvidia-smi --query-gpu or dmon");
  return form;
}

Result<void> parse(Input& input, Sink& sink) {
  Lines lines(input, sink);
  std::string_view line;
  LLMPROF_LET(const bool any, lines.next(line));
  if (!any) return refuse("the file is empty");
  const std::string header(line);  // column names are views of it
  LLMPROF_LET(Form form, form_of(base::trimmed(header)));
  TableReader table(sink, std::move(form.columns), form.separator);
  sink.set_clock({.wall_of_zero_ns = 0, .name = "nvidia-smi: local time, taken as this machine's zone"});
  sink.set_facts({.tool = header.starts_with('#') ? "nvidia-smi dmon" : "nvidia-smi --query-gpu"});
  LLMPROF_TRY(lines.each([&](std::string_view row) {
    const std::string_view text = base::trimmed(row);
    if (text.empty() || text.starts_with('#') || text == header) return;  // dmon repeats its head
    table.line(text, lines.where());
  }));
  if (const auto first = table.first_ns()) note_zone(sink, *first);
  return {};
}

}  // namespace
}  // namespace nvidia_smi

extern const Importer kNvidiaSmi;
const Importer kNvidiaSmi{"nvidia-smi", "nvidia-smi, CSV", Role::kReadings, nvidia_smi::sniff, nvidia_smi::parse};

}  // namespace llmprof::importers
