// annotate_cost: what one push and pop of llmprof/annotate.h costs when nobody listens (at most 5 ns), and compiled
// out. Best of several rounds: the cost itself, without what else the machine does.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "llmprof/annotate.h"

void annotate_compiled_out(long count);  // annotate_cost_off.cpp

namespace {

constexpr long kCount = 20'000'000;
constexpr int kRounds = 7;

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The barrier keeps the compiler from joining iterations; it costs no instruction.
void barrier() { asm volatile("" ::: "memory"); }

void empty_loop(long count) {
  for (long i = 0; i < count; ++i) barrier();
}

void push_pop(long count) {
  for (long i = 0; i < count; ++i) {
    llmprof_module_push("layers.0.mlp.up_proj");
    barrier();
    llmprof_pop();
    barrier();
  }
}

void push_pop_step(long count) {
  for (long i = 0; i < count; ++i) {
    const llmprof::Step step("decode", 1, 1, static_cast<uint32_t>(i));
    barrier();
  }
}

double best_ns(void (*loop)(long)) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_ns();
    loop(kCount);
    best = std::min(best, (now_ns() - begin) / kCount);
  }
  return best;
}

}  // namespace

int main() {
  unsetenv("NVTX_INJECTION64_PATH");
  if (llmprof_listening()) return 1;
  std::printf("push+pop of a module, nobody listening  %.2f ns  (at most 5)\n", best_ns(push_pop));
  std::printf("push+pop of a step, nobody listening    %.2f ns  (at most 5)\n", best_ns(push_pop_step));
  std::printf("push+pop, compiled out                  %.2f ns\n", best_ns(annotate_compiled_out));
  std::printf("the empty loop around them              %.2f ns\n", best_ns(empty_loop));
}
