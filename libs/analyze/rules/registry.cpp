// Every rule, in the order of docs/format/diagnosis.md. Adding one: a file, two lines here, a test with a run that
// triggers it and one that must not (docs/how-to-add/rule.md).

#include <vector>

#include "analyze/rules/rule.h"

namespace llmprof::analyze {

extern const Rule kBandwidthFloor;
extern const Rule kWideWeights;
extern const Rule kKvCacheTraffic;
extern const Rule kIdleTensorCores;
extern const Rule kTileWaves;
extern const Rule kSmallBatch;
extern const Rule kLaunchBound;
extern const Rule kCompileInLoop;
extern const Rule kHostSync;
extern const Rule kPageableCopies;
extern const Rule kIdleGaps;
extern const Rule kUnfusedChains;
extern const Rule kMissingOverlap;
extern const Rule kLogitsSampling;
extern const Rule kLoadTime;
extern const Rule kThrottledClocks;
extern const Rule kAllocatorChurn;
extern const Rule kRedundantTraffic;
extern const Rule kLowL2Hits;
extern const Rule kUncoalescedAccess;
extern const Rule kBankConflicts;
extern const Rule kLocalMemory;
extern const Rule kOccupancyLimit;
extern const Rule kStallReasons;
extern const Rule kMoeImbalance;
extern const Rule kPrefillInterference;
extern const Rule kGraphPadding;
extern const Rule kStragglingRank;

std::span<const Rule* const> rules() {
  static const std::vector<const Rule*> all = {
      &kBandwidthFloor, &kWideWeights,         &kKvCacheTraffic, &kIdleTensorCores,
      &kTileWaves,      &kSmallBatch,          &kLaunchBound,    &kCompileInLoop,
      &kHostSync,       &kPageableCopies,      &kIdleGaps,       &kUnfusedChains,
      &kMissingOverlap, &kLogitsSampling,      &kLoadTime,       &kThrottledClocks,
      &kAllocatorChurn, &kRedundantTraffic,    &kLowL2Hits,      &kUncoalescedAccess,
      &kBankConflicts,  &kLocalMemory,         &kOccupancyLimit, &kStallReasons,
      &kMoeImbalance,   &kPrefillInterference, &kGraphPadding,   &kStragglingRank,
  };
  return all;
}

const Rule* find_rule(std::string_view name) {
  for (const Rule* rule : rules()) {
    if (rule->name == name) return rule;
  }
  return nullptr;
}

}  // namespace llmprof::analyze
