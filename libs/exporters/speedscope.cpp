// speedscope profile, JSON
#include "exporters/exporter.h"

namespace llmprof::exporters {
namespace {

Result<Written> write(const Request&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Exporter kSpeedscope;
const Exporter kSpeedscope{"speedscope", "speedscope profile, JSON", ".speedscope.json", write};

}  // namespace llmprof::exporters
