// Every rule, in the order of docs/format/diagnosis.md. Adding one: a file, a line here, a test with a run that
// triggers it and one that must not (docs/how-to-add/rule.md).

#include <vector>

#include "analyze/rules/rule.h"

namespace llmprof::analyze {

// clang-format off
#define LLMPROF_RULES(X) \
  X(kBandwidthFloor) X(kWideWeights) X(kKvCacheTraffic) X(kIdleTensorCores) X(kTileWaves) X(kSmallBatch) \
  X(kLaunchBound) X(kCompileInLoop) X(kHostSync) X(kPageableCopies) X(kIdleGaps) X(kUnfusedChains) \
  X(kMissingOverlap) X(kLogitsSampling) X(kLoadTime) X(kThrottledClocks) X(kAllocatorChurn) \
  X(kRedundantTraffic) X(kLowL2Hits) X(kUncoalescedAccess) X(kBankConflicts) X(kLocalMemory) \
  X(kOccupancyLimit) X(kStallReasons) X(kMoeImbalance) X(kPrefillInterference) X(kGraphPadding) \
  X(kStragglingRank)
// clang-format on

#define LLMPROF_DECLARE(rule) extern const Rule rule;
LLMPROF_RULES(LLMPROF_DECLARE)

#define LLMPROF_ADDRESS(rule) &rule,

std::span<const Rule* const> rules() {
  static const std::vector<const Rule*> all = {LLMPROF_RULES(LLMPROF_ADDRESS)};
  return all;
}

const Rule* find_rule(std::string_view name) {
  for (const Rule* rule : rules()) {
    if (rule->name == name) return rule;
  }
  return nullptr;
}

}  // namespace llmprof::analyze
