#pragma once
// What comes after the last layer: logits, and the choice of the next token.

#include <string>
#include <vector>

#include "analyze/rules/facts/step_kernels.h"

namespace llmprof::analyze {

struct StageLogits {
  std::string stage;
  double steps = 0;        // all of the stage
  double head_ns = 0;      // products that make the logits, all steps
  double after_ns = 0;     // kernels behind them in the same step
  double kernels_ns = 0;   // all kernels of the stage's steps
  double shortest_ns = 0;  // kernel of the stage: what launching one takes at least
  double after_kernels = 0;
  std::vector<std::string> names;  // of the kernels behind them, most time first, three at most
  // Rows of logits that a step made, and what it needed; 0 unknown.
  double rows_per_step = 0, batch = 0, tokens = 0;
};

std::vector<StageLogits> logits_of(const StepKernels& kernels);

// Sizes of the steps and of the products of lm_head.
Result<void> fill_logit_rows(const trace::Run& run, std::vector<StageLogits>& stages);

}  // namespace llmprof::analyze
