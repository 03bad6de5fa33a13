#include "importers/telemetry_csv/table_reader.h"

#include <algorithm>
#include <cmath>

namespace llmprof::importers {

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
        return local_time_ns(cells[i].substr(0, blank), trimmed(cells[i].substr(blank)));
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
  const std::vector<std::string_view> cells = split(text, separator_);
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
