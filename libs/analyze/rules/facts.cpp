#include "analyze/rules/facts.h"

namespace llmprof::analyze {

Result<Facts> gather_facts(const trace::Run&, const Basis&, const Summary&) { return Facts{}; }

}  // namespace llmprof::analyze
