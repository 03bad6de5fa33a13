// operators with their times, CSV
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kOpsCsv;
const Exporter kOpsCsv{"ops-csv", "operators with their times, CSV", ".csv", write};

}  // namespace llmprof::exporters
