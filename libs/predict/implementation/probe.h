#pragma once
// What to measure before a program can be predicted at other sizes: the kernels of its framework around the sizes that
// engines run, the products and the attention that the program was seen to use. python/llmprof/_probe.py measures it.

#include <cstdint>
#include <string>

#include "model/config.h"
#include "predict/implementation/implementation.h"
#include "predict/implementation/kernel_rows.h"

namespace llmprof::predict {

struct ProbeLimits {
  std::int64_t max_tokens = 16384;  // of a prefill, of all prompts
  std::int64_t max_batch = 64;      // sequences that decode together
  std::int64_t max_context = 8192;  // tokens of one sequence
  double seconds = 240;
};

// The specification that the prober reads, as JSON text.
std::string probe_spec(const Implementation& implementation, const model::Config& config, const ProbeLimits& limits);

// The kernels of a recorded run as measured rows: the program itself, at other sizes, is the best prober there is.
// The run's derived tables must be in use.
Result<ProbedRows> rows_of_run(const trace::Run& run);

}  // namespace llmprof::predict
