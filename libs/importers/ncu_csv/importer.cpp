// Nsight Compute, CSV
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kNcuCsv;
const Importer kNcuCsv{"ncu", "Nsight Compute, CSV", Role::kTrace, sniff, parse};

}  // namespace llmprof::importers
