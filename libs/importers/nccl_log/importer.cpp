// NCCL debug log
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kNcclLog;
const Importer kNcclLog{"nccl", "NCCL debug log", Role::kLog, sniff, parse};

}  // namespace llmprof::importers
