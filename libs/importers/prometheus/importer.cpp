// Prometheus text
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kPrometheus;
const Importer kPrometheus{"prometheus", "Prometheus text", Role::kReadings, sniff, parse};

}  // namespace llmprof::importers
