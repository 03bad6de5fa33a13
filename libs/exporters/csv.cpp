// a CSV file per table
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kCsv;
const Exporter kCsv{"csv", "a CSV file per table", "", write};

}  // namespace llmprof::exporters
