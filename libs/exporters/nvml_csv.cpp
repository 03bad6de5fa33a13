// power, clocks and memory over time, CSV
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kNvmlCsv;
const Exporter kNvmlCsv{"nvml-csv", "power, clocks and memory over time, CSV", ".csv", write};

}  // namespace llmprof::exporters
