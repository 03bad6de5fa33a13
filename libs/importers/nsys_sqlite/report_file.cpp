// Nsight Systems report
#include "importers/importer.h"

namespace llmprof::importers {
namespace {

int sniff(std::string_view) { return 0; }

Result<void> parse(Input&, Sink&) { return Error{ErrorCode::kUnsupported, "not yet", ""}; }

}  // namespace

extern const Importer kNsysReport;
const Importer kNsysReport{"nsys-rep", "Nsight Systems report", Role::kTrace, sniff, parse};

}  // namespace llmprof::importers
