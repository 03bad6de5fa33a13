// PyTorch memory snapshot, pickle
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kMemorySnapshot;
const Importer kMemorySnapshot{"memory-snapshot", "PyTorch memory snapshot, pickle", Role::kReadings, sniff, parse};

}  // namespace llmprof::importers
