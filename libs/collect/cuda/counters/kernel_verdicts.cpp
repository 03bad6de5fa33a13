#include "collect/cuda/counters/kernel_verdicts.h"

#include <stdio.h>

#include "collect/cuda/facts.h"

namespace llmprof::collect::counters {

void KernelVerdicts::was_launched(const List& patterns, const char* symbol) {
  List one{};
  one.count = 1;
  for (std::size_t i = 0; i < patterns.count; ++i) {
    one.words[0] = patterns.words[i];
    seen_[i] = seen_[i] || matches(one, symbol);
  }
}

// Spellings of one name stand one after the other.
KernelVerdicts::Unseen KernelVerdicts::unseen(const List& patterns) const {
  Unseen found{nullptr, 0};
  for (std::size_t i = 0; i < patterns.count;) {
    const char* const name = patterns.names[i] != nullptr ? patterns.names[i] : patterns.words[i];
    bool seen = false;
    do seen = seen || seen_[i];
    while (++i < patterns.count && patterns.names[i] == name);
    if (!seen && found.count++ == 0) found.first = name;
  }
  return found;
}

void KernelVerdicts::say_unseen(const List& patterns) const {
  const Unseen names = unseen(patterns);
  if (names.count == 0) return;
  char others[48] = "";
  if (names.count > 1) snprintf(others, sizeof(others), " (and %zu more)", names.count - 1);
  char text[512];
  snprintf(text, sizeof(text),
           "no kernel %.256s%s was launched by itself. Kernels of CUDA graphs are counted with "
           "--counters-method sampled.",
           names.first, others);
  note("counters", text);
}

}  // namespace llmprof::collect::counters
