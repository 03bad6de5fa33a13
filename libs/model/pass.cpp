#include "model/pass.h"

namespace llmprof::model {

Pass prefill(std::int64_t batch, std::int64_t tokens, std::int64_t context) {
  return {.sequences = {{.count = batch, .tokens = tokens, .context = context > 0 ? context : tokens, .sampled = 1}}};
}

Pass decode(std::int64_t batch, std::int64_t context) {
  return {.sequences = {{.count = batch, .tokens = 1, .context = context, .sampled = 1}}};
}

Pass mixed(std::vector<Sequences> sequences) { return {.sequences = std::move(sequences)}; }

Pass train(PassKind kind, std::int64_t batch, std::int64_t tokens) {
  return {.kind = kind, .sequences = {{.count = batch, .tokens = tokens, .context = tokens, .sampled = tokens}}};
}

}  // namespace llmprof::model
