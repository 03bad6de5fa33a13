// PyTorch profiler (Kineto) or Chrome trace, JSON
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kKineto;
const Importer kKineto{"kineto", "PyTorch profiler (Kineto) or Chrome trace, JSON", Role::kTrace, sniff, parse};

}  // namespace llmprof::importers
