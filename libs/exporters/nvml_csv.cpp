// Power, clocks, temperature, memory and utilisation over time, with the columns of `llmprof monitor --csv`.
#include "exporters/exporter.h"
#include "exporters/output_file.h"
#include "report/telemetry_lines.h"

namespace llmprof::exporters {
namespace nvml_csv {
namespace {

Result<Written> write(const Request& request) {
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  Written written{{request.output}, 0, {}};
  if (!request.selection.stage.empty())
    written.notes.emplace_back("readings are of the whole device: --stage is not applied");
  LLMPROF_TRY(report::replay_telemetry(request.run, {{}, request.selection.begin_ns, request.selection.end_ns},
                                       [&](const report::TelemetryNow& now, double wall_s) {
                                         if (written.records++ == 0) file.write(report::telemetry_csv_header(now));
                                         file.write(report::telemetry_csv(now, wall_s));
                                         return !file.failed();
                                       }));
  LLMPROF_TRY(file.finish());
  return written;
}

}  // namespace
}  // namespace nvml_csv

extern const Exporter kNvmlCsv;
const Exporter kNvmlCsv{"nvml-csv", "power, clocks and memory over time, CSV", ".csv", nvml_csv::write, false,
                        ".csv.gz"};

}  // namespace llmprof::exporters
