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

void KernelVerdicts::say_unseen(const List& patterns) const {
  std::size_t unseen = 0;
  const char* first = nullptr;
  for (std::size_t i = 0; i < patterns.count; ++i) {
    if (seen_[i]) continue;
    if (unseen++ == 0) first = patterns.words[i];
  }
  if (unseen == 0) return;
  char others[48] = "";
  if (unseen > 1) snprintf(others, sizeof(others), " (and %zu more)", unseen - 1);
  char text[512];
  snprintf(text, sizeof(text),
           "no kernel %.256s%s was launched by itself. Kernels of CUDA graphs are counted with "
           "--counters-method sampled.",
           first, others);
  note("counters", text);
}

}  // namespace llmprof::collect::counters
