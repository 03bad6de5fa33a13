#include "workload/serve/step_runner.h"

namespace llmprof::workload {

// The draw depends on the length of the sequence and on its seed, not on who else is in the batch.
void sample_all(const StepInput& input, std::span<const float> logits, std::span<Token> next) {
  const std::size_t vocab = next.empty() ? 0 : logits.size() / next.size();
  std::size_t at = 0;
  for (const NewTokens& sequence : input.sequences) {
    if (!sequence.sampled) continue;
    next[at] = sample(*input.samplers[at], logits.subspan(at * vocab, vocab), 0, sequence.context());
    ++at;
  }
}

Result<void> CpuStepRunner::run(const StepInput& input, std::span<Token> next) {
  const std::span<const float> logits = model_.forward(input.tokens, input.sequences, cache_);
  const llmprof::Module range("sampling");
  sample_all(input, logits, next);
  return {};
}

}  // namespace llmprof::workload
