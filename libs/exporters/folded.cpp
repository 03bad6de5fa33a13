// folded stacks for flame graphs
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kFolded;
const Exporter kFolded{"folded", "folded stacks for flame graphs", ".folded", write};

}  // namespace llmprof::exporters
