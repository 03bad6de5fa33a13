// a SQLite database with a table per table
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kSqlite;
const Exporter kSqlite{"sqlite", "a SQLite database with a table per table", ".sqlite", write};

}  // namespace llmprof::exporters
