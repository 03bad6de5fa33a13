// nvidia-smi, CSV
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kNvidiaSmi;
const Importer kNvidiaSmi{"nvidia-smi", "nvidia-smi, CSV", Role::kReadings, sniff, parse};

}  // namespace llmprof::importers
