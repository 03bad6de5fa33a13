// llmprof monitor, CSV
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kTelemetryCsv;
const Importer kTelemetryCsv{"telemetry", "llmprof monitor, CSV", Role::kReadings, sniff, parse};

}  // namespace llmprof::importers
