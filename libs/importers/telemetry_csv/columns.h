#pragma once
// What the columns of telemetry files mean, by the names that llmprof, nvidia-smi --query-gpu and nvidia-smi dmon use.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hw/telemetry_metrics.h"

namespace llmprof::importers {

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

}  // namespace llmprof::importers
