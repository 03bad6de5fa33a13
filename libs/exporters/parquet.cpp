// a Parquet file per table
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kParquet;
const Exporter kParquet{"parquet", "a Parquet file per table", "", write};

}  // namespace llmprof::exporters
