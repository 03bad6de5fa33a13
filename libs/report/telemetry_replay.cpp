#include "report/telemetry_replay.h"

namespace llmprof::report {
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
