// PyTorch profiler, printed table
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kKeyAverages;
const Importer kKeyAverages{"key-averages", "PyTorch profiler, printed table", Role::kSummary, sniff, parse};

}  // namespace llmprof::importers
