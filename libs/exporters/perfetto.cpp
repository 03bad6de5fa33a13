// Perfetto trace, protobuf
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kPerfetto;
const Exporter kPerfetto{"perfetto", "Perfetto trace, protobuf", ".pftrace", write};

}  // namespace llmprof::exporters
