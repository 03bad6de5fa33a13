// cuBLAS or cuBLASLt log
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kCublasLog;
const Importer kCublasLog{"cublas", "cuBLAS or cuBLASLt log", Role::kLog, sniff, parse};

}  // namespace llmprof::importers
