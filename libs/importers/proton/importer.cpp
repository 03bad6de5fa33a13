// Triton Proton, hatchet JSON
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kProton;
const Importer kProton{"proton", "Triton Proton, hatchet JSON", Role::kSummary, sniff, parse};

}  // namespace llmprof::importers
