// the table that PyTorch's profiler prints
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kKeyAverages;
const Exporter kKeyAverages{"key-averages", "the table that PyTorch's profiler prints", ".txt", write};

}  // namespace llmprof::exporters
