#pragma once
// One pass over a model: what is asked of it.

#include <cstdint>
#include <vector>

namespace llmprof::model {

enum class PassKind : std::uint8_t {
  kInference,  // with a KV cache; logits for sampled positions
  kForward,    // of training: whole sequences, no cache, a loss at every position
  kBackward,   // the gradients of that, for every parameter
  kOptimizer,  // AdamW over every parameter
};

// `count` sequences alike: `tokens` new tokens each, with a context of `context` that includes them.
struct Sequences {
  std::int64_t count = 1;
  std::int64_t tokens = 1;
  std::int64_t context = 1;
  std::int64_t sampled = 1;  // positions of each whose logits are computed
  bool operator==(const Sequences&) const = default;
};

struct Pass {
  PassKind kind = PassKind::kInference;
  std::vector<Sequences> sequences;  // training takes whole sequences: context and sampled are the tokens
};

Pass prefill(std::int64_t batch, std::int64_t tokens, std::int64_t context = 0);  // context 0: the tokens
Pass decode(std::int64_t batch, std::int64_t context);
Pass mixed(std::vector<Sequences> sequences);
Pass train(PassKind kind, std::int64_t batch, std::int64_t tokens);

}  // namespace llmprof::model
