// llmprof monitor --csv: seconds since 1970 and the columns of docs/manual/monitor.md.
#include "importers/importer.h"

#include "importers/lines.h"
#include "importers/telemetry_csv/table_reader.h"

namespace llmprof::importers {
namespace telemetry_csv {
namespace {

int sniff(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  if (!line.starts_with("ts,")) return 0;
  return line.find("gpu_util_pct") != std::string_view::npos || line.find("cpu_util_pct") != std::string_view::npos ||
                 line.find("power_W") != std::string_view::npos
             ? 97
             : 0;
}

Result<void> parse(Input& input, Sink& sink) {
  Lines lines(input, sink);
  std::string_view line;
  LLMPROF_LET(const bool any, lines.next(line));
  const std::string names(any ? line : "");  // column names are views of it
  TableReader table(sink, match_columns(split(names, ','), own_columns()), ',');
  if (!table.has(ColumnRole::kTime) || !table.has(ColumnRole::kMetric)) {
    return Error{ErrorCode::kCorruptInput, "line 1: no header of llmprof monitor --csv (ts,gpu_util_pct,…)",
                 "llmprof monitor --csv -o FILE writes one"};
  }
  sink.set_clock({.wall_of_zero_ns = 0, .name = "llmprof monitor: seconds since 1970"});
  sink.set_facts({.tool = "llmprof monitor", .command = "", .host = "", .model_config = "", .rank = ""});
  for (;;) {
    LLMPROF_LET(const bool more, lines.next(line));
    if (!more) break;
    if (!trimmed(line).empty()) table.line(line, lines.where());
  }
  return {};
}

}  // namespace
}  // namespace telemetry_csv

extern const Importer kTelemetryCsv;
const Importer kTelemetryCsv{"telemetry", "llmprof monitor, CSV", Role::kReadings, telemetry_csv::sniff,
                             telemetry_csv::parse};

}  // namespace llmprof::importers
