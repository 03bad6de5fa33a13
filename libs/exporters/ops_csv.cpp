// Operators with their times, a line per name and shapes. The first columns are those that scripts around PyTorch's
// key_averages() write; times are microseconds.
#include <fmt/format.h>

#include "base/strings.h"
#include "exporters/op_totals.h"
#include "exporters/output_file.h"

namespace llmprof::exporters {
namespace ops_csv {
namespace {

constexpr const char* kHeader =
    "key,cuda_time_total_us,cpu_time_total_us,self_cuda_time_total_us,calls,input_shapes,self_cpu_time_total_us,flops,"
    "kind\n";

std::string us(const std::optional<double>& ns) { return ns ? fmt::format("{:.3f}", *ns / 1000) : ""; }

std::string line_of(const OpTotal& row) {
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", base::csv_text(row.name), us(row.device_ns), us(row.cpu_ns),
                     us(row.self_device_ns), row.calls, base::csv_text(row.shapes), us(row.self_cpu_ns),
                     row.flops ? fmt::format("{:.0f}", *row.flops) : "", base::csv_text(row.kind));
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const OpTotals totals, op_totals(request, true));
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  file.write(kHeader);
  for (const OpTotal& row : totals.rows) file.write(line_of(row));
  LLMPROF_TRY(file.finish());
  Written written{{request.output}, static_cast<std::int64_t>(totals.rows.size()), {}};
  if (std::string note = note_on(totals); !note.empty()) written.notes.push_back(std::move(note));
  return written;
}

}  // namespace
}  // namespace ops_csv

extern const Exporter kOpsCsv;
const Exporter kOpsCsv{"ops-csv", "operators with their times, CSV", ".csv", ops_csv::write};

}  // namespace llmprof::exporters
