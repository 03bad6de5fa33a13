#pragma once
// A table of readings, line by line, with the columns that its header named.

#include <string>
#include <string_view>
#include <vector>

#include "importers/telemetry_csv/columns.h"
#include "importers/telemetry_csv/device_readings.h"

namespace llmprof::importers {

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
