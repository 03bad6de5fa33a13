// llmprof monitor --csv: seconds since 1970 and the columns of docs/manual/monitor.md.

#include <fmt/format.h>

#include <ctime>
#include <optional>

#include "base/strings.h"
#include "importers/importer.h"
#include "importers/telemetry_csv/columns.h"
#include "importers/text.h"

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
  TableReader table(sink, match_columns(cells_of(names, ','), own_columns()), ',');
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
  return line.starts_with('#') && (line.find(" gpu") != std::string_view::npos || line.starts_with("#gpu"));
}

int sniff(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  if (line.find("timestamp") != std::string_view::npos && line.find(',') != std::string_view::npos) {
    for (const std::string_view word : {"utilization.gpu", "power.draw", "clocks.", "temperature.gpu", "memory.used"}) {
      if (line.find(word) != std::string_view::npos) return 97;
    }
  }
  if (is_table_of_dmon(line) && head.find("Idx") != std::string_view::npos) return 95;
  const bool banner =
      head.find("| NVIDIA-SMI ") != std::string_view::npos || head.find("<nvidia_smi_log>") != std::string_view::npos;
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
    if (line.find(" pid") != std::string_view::npos)
      return refuse("a table of nvidia-smi pmon: it has no sums of a device");
    const char separator = line.find(',') == std::string_view::npos ? ' ' : ',';
    Form form{match_columns(cells_of(line.substr(1), separator), dmon_columns()), separator};
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
  if (line.find("<?xml") != std::string_view::npos) return refuse("nvidia-smi -q -x: one moment, as XML");
  Form form{match_columns(cells_of(line, ','), query_columns()), ','};
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
