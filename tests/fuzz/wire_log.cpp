// A capture log as it lies on the disk: damage of every kind. The checksums keep almost everything out, which is what
// this target tests; wire_payload tests what stands behind them.

#include "fuzz.h"
#include "log_through_ingest.h"

namespace llmprof::fuzz {

const Target kTarget{log_through_ingest, sample_logs, log_words};

}  // namespace llmprof::fuzz
