#pragma once
// Steps of a distributed job, rank by rank.

#include <cstdint>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct RankTime {
  std::int64_t rank = 0;
  double own_ns = 0, collective_ns = 0;  // all steps: without collectives, and in them
  std::int64_t slowest_in = 0;           // steps in which it took longest for its own work
};

struct StageRanks {
  std::string stage;
  std::int64_t steps = 0;              // that all ranks made, the first left out
  std::vector<RankTime> ranks;         // by rank
  double slowest_ns = 0, mean_ns = 0;  // own work of the slowest rank of each step, and of a mean one; added up
};

struct RankStep {
  std::string stage;
  std::int64_t number = 0, rank = 0;
  double own_ns = 0, collective_ns = 0;
};
std::vector<StageRanks> ranks_of(const std::vector<RankStep>& steps);
// A step begins where the one before it on its thread has ended, if that is later.
Result<std::vector<StageRanks>> rank_facts(const trace::Run& run);

}  // namespace llmprof::analyze
