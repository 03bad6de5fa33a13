#pragma once
// What the steps of a stage must move and compute, by operator, and how large they are.

#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct OperatorBytes {
  std::string op;
  double flops = 0, weight_bytes = 0, kv_bytes = 0, activation_bytes = 0;  // over all steps of the stage

  double bytes() const { return weight_bytes + kv_bytes + activation_bytes; }
};

struct StageBytes {
  std::string stage;
  std::vector<OperatorBytes> operators;
  double batch = 0, tokens = 0, context = 0, largest_context = 0;  // means over the steps; 0 unknown

  OperatorBytes all() const;
};

Result<std::vector<StageBytes>> stage_bytes(const trace::Run& run);
const StageBytes* find_stage(const std::vector<StageBytes>& stages, std::string_view name);

}  // namespace llmprof::analyze
