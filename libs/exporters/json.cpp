// all tables in one JSON document
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kJson;
const Exporter kJson{"json", "all tables in one JSON document", ".json", write};

}  // namespace llmprof::exporters
