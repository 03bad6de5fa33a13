// Chrome trace, JSON as PyTorch's profiler writes it
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kChromeJson;
const Exporter kChromeJson{"chrome", "Chrome trace, JSON as PyTorch's profiler writes it", ".json", write};

}  // namespace llmprof::exporters
