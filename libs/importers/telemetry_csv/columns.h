#pragma once
// Tables of readings of devices: their columns, their cells, and their rows.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/telemetry/metrics.h"
#include "importers/sink.h"

namespace llmprof::importers {

// What the columns of telemetry files mean, by the names that llmprof, nvidia-smi --query-gpu and nvidia-smi dmon use.
enum class ColumnRole : std::uint8_t {
  kIgnored,
  kMetric,
  kTime,       // seconds since 1970
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

std::span<const Column> own_columns();
std::span<const Column> query_columns();
std::span<const Column> dmon_columns();

// Column by column; a name that is not in the table is kIgnored, a metric that was there already, too. Units in
// brackets are taken off.
std::vector<Column> match_columns(const std::vector<std::string_view>& header, std::span<const Column> table);

std::vector<std::string_view> split(std::string_view line, char separator);  // trimmed; ' ': any run of blanks
std::string_view trimmed(std::string_view text);
// "118.64 W", "99 %", "P0", "0x4"; nullopt: [N/A], [Not Supported], -, empty, or no number.
std::optional<double> cell_number(std::string_view cell);
bool is_missing(std::string_view cell);  // says that there is no value

// Times without a zone are taken as those of this machine's zone (tzset was called before). ns since 1970.
std::optional<std::int64_t> local_time_ns(std::string_view date, std::string_view time_of_day);

// Readings of devices that a file names by UUID, number or product name, as rows of `telemetry` and `device`.
class DeviceReadings {
 public:
  static constexpr std::size_t kMaxDevices = 4096;

  struct Known {
    std::string_view uuid, name, driver;  // "" unknown
    std::optional<std::int64_t> ordinal;
    std::int64_t memory_bytes = 0;  // 0 unknown
    bool cpu = false;
  };

  explicit DeviceReadings(Sink& sink) : sink_(sink) {}

  // The same UUID is the same device; without one, the same number; without that, the same name. Its row is written
  // when it is first seen. nullopt: too many.
  std::optional<trace::Id> device(const Known& known);
  void add(trace::Id device, std::int64_t ts_ns, hw::MetricId metric, double value);

  std::int64_t readings() const { return readings_; }
  std::optional<std::int64_t> first_ns() const { return first_ns_; }

 private:
  struct Device {
    trace::Id id = 0;
    std::string uuid, name;
    std::optional<std::int64_t> ordinal;
  };
  Sink& sink_;
  std::vector<Device> devices_;
  std::int64_t readings_ = 0;
  std::optional<std::int64_t> first_ns_;
};

// A table of readings, line by line, with the columns that its header named.
class TableReader {
 public:
  TableReader(Sink& sink, std::vector<Column> columns, char separator);

  bool has(ColumnRole role) const;
  // `where`: "line 3", for what cannot be understood.
  void line(std::string_view text, const std::string& where);
  std::int64_t readings() const { return readings_.readings(); }
  std::optional<std::int64_t> first_ns() const { return readings_.first_ns(); }

 private:
  std::optional<std::int64_t> time_of(const std::vector<std::string_view>& cells) const;
  std::optional<trace::Id> device_of(const std::vector<std::string_view>& cells);

  Sink& sink_;
  std::vector<Column> columns_;
  char separator_;
  DeviceReadings readings_;
};

}  // namespace llmprof::importers
