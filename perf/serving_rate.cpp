// What the simulation of a server costs, with a step cost that costs nothing: 300 requests that overflow the KV cache,
// and 100,000 requests. One thread. Budget: 50 ms for 6,000 steps of the first, 20 s for the second.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "serving/metrics.h"
#include "serving/simulate.h"

namespace {

using namespace llmprof::predict;
using namespace llmprof::predict::serving;
using Clock = std::chrono::steady_clock;

struct LinearCost : StepCost {
  StepTime of(const Batch& batch) override { return {15e6 + 2e3 * static_cast<double>(batch.padded_tokens), 1e6}; }
};

struct Case {
  const char* name;
  std::int64_t requests, blocks, prefixes;
  std::int32_t prompt, output;  // half to one and a half of them
  double rate;
  int repeats;
};

// Milliseconds of the fastest run; negative: it failed.
double measure(const Case& each, Simulation& out) {
  WorkloadSpec spec;
  spec.requests = each.requests;
  spec.rate = each.rate;
  spec.lengths = Lengths::kUniform;
  spec.prompt = each.prompt / 2, spec.prompt_most = each.prompt * 3 / 2;
  spec.output = each.output / 2, spec.output_most = each.output * 3 / 2;
  spec.prefixes = each.prefixes, spec.prefix_tokens = 1024;
  const auto workload = make_workload(spec);
  auto rules = engine_rules("vllm@0.19", 24e9);
  if (!workload || !rules) return -1;
  rules->num_gpu_blocks = each.blocks;
  double best_ms = 1e300;
  for (int i = 0; i < each.repeats; ++i) {
    LinearCost cost;
    const auto begin = Clock::now();
    auto run = simulate(*rules, *workload, cost);
    best_ms = std::min(best_ms, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    if (!run) return -1;
    out = std::move(*run);
  }
  return best_ms;
}

}  // namespace

int main() {
  const Case cases[] = {{"300 requests, full cache", 300, 2588, 0, 860, 650, 10, 9},
                        {"100,000 requests", 100'000, 30'000, 0, 500, 200, 20, 1},
                        {"100,000 requests, full cache", 100'000, 3'000, 0, 500, 200, 20, 1},
                        {"100,000 requests, 20 prefixes", 100'000, 30'000, 20, 500, 200, 20, 1}};
  std::printf("%-32s %10s %10s %12s %14s\n", "workload", "ms", "steps", "preemptions", "us per step");
  for (const Case& each : cases) {
    Simulation run;
    const double ms = measure(each, run);
    if (ms < 0) return std::fprintf(stderr, "%s cannot be simulated\n", each.name), 1;
    const auto steps = static_cast<double>(run.step_count);
    std::printf("%-32s %10.1f %10.0f %12lld %14.2f\n", each.name, ms, steps, static_cast<long long>(run.preemptions),
                1e3 * ms / steps);
  }
  return 0;
}
