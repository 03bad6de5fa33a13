// Nsight Systems, SQLite export
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kNsysSqlite;
const Importer kNsysSqlite{"nsys", "Nsight Systems, SQLite export", Role::kTrace, sniff, parse};

}  // namespace llmprof::importers
