#pragma once
// A step of the server on the model: rows of new tokens of several requests, over a paged KV cache. CPU here; the GPU's
// is in cuda/paged_model.h.

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "workload/generate.h"
#include "workload/model.h"

namespace llmprof::workload {

struct StepInput {
  std::span<const Token> tokens;             // (rows), of one request after the other
  std::span<const NewTokens> sequences;      // with the blocks of each
  std::span<const Sampler* const> samplers;  // of those that are sampled, in their order
  std::int64_t padded_rows = 0;              // of the products; the rows there are where nothing pads
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual const ModelConfig& config() const = 0;
  // What costs time once only; announces itself as the stage "warm-up".
  virtual Result<void> prepare() { return {}; }
  // Computes the step, and waits for what follows each sampled sequence: next (sampled).
  virtual Result<void> run(const StepInput& input, std::span<Token> next) = 0;
};

// On the CPU, whose threads the model has.
class CpuStepRunner final : public StepRunner {
 public:
  CpuStepRunner(Model& model, std::int64_t blocks, std::int64_t block_tokens)
      : model_(model), cache_(model.config(), blocks, block_tokens) {}
  const ModelConfig& config() const override { return model_.config(); }
  Result<void> run(const StepInput& input, std::span<Token> next) override;

 private:
  Model& model_;
  KvBlocks cache_;
};

// Chooses the next token of each sampled sequence from its logits (sampled, V).
void sample_all(const StepInput& input, std::span<const float> logits, std::span<Token> next);

}  // namespace llmprof::workload
