// pprof profile, gzipped protobuf
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kPprof;
const Exporter kPprof{"pprof", "pprof profile, gzipped protobuf", ".pb.gz", write};

}  // namespace llmprof::exporters
