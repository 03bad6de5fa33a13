#pragma once
// The loop of inference: one prefill pass over the prompts, then one decode pass per new token. Announces its stages
// and steps (llmprof/annotate.h) and measures itself, so that a profiler's figures can be checked against it.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "workload/model.h"

namespace llmprof::workload {

// Picks the next token from logits. A pure function of its arguments: the same seed gives the same text.

struct Sampler {
  enum class Kind : std::uint8_t { kGreedy, kTopK };
  Kind kind = Kind::kGreedy;
  std::int64_t k = 40;  // kTopK: how many of the likeliest tokens may be drawn
  std::uint64_t seed = 0;
  double temperature = 1;  // kTopK: logits are divided by it, above 0
};

// `sequence` and `position` say which draw this is. logits (V).
Token sample(const Sampler& sampler, std::span<const float> logits, std::int64_t sequence, std::int64_t position);

struct GenerateOptions {
  std::int64_t batch = 1;
  std::int64_t prompt_tokens = 128;
  std::int64_t new_tokens = 32;  // per sequence, the one that prefill samples included
  Sampler sampler;
  std::uint64_t prompt_seed = 0;
};

// Begin and end of one pass with its sampling, CLOCK_MONOTONIC_RAW.
struct StepTime {
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

struct Generated {
  std::vector<std::vector<Token>> tokens;  // per sequence
  StepTime prefill;
  std::vector<StepTime> decode;  // new_tokens - 1
};

// A profiler's definitions: from the begin of prefill to the end of its sampling; from the begin of one decode step to
// the begin of the next, so that gaps count.
std::int64_t ttft_ns(const Generated& generated);
std::vector<std::int64_t> tpot_samples_ns(const Generated& generated);

std::int64_t now_ns();

// Random prompts by seed. (B, T)
std::vector<Token> random_prompts(const ModelConfig& config, const GenerateOptions& options);

// Whether the model can do this run: positions, ranges.
Result<void> check_run(const ModelConfig& config, const GenerateOptions& options);

// A model that runs passes and samples from them, on a CPU or a GPU. It remembers the tokens it was given.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual const ModelConfig& config() const = 0;
  // What costs time once only; announces itself as the stage "warm-up". No token is remembered.
  virtual Result<void> prepare(std::span<const Token> /*prompts*/) { return {}; }
  // Runs tokens (B, T), the first of which stand at `position`, and samples what follows each sequence: next (B).
  virtual Result<void> run(std::int64_t position, std::span<const Token> tokens, std::span<Token> next) = 0;
};

// The options must pass check_run.
Result<Generated> generate(Runner& runner, const GenerateOptions& options);
Generated generate(Model& model, const GenerateOptions& options);  // on the CPU

}  // namespace llmprof::workload
