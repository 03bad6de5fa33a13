// What static analysis costs: from the text of a config to every operator of a prefill and a decode pass, and a sweep
// of 10,000 points. Usage: model_analysis [NAME…]; without names all built-in models.
// Budget: 10 ms for the analysis of a model, 1 s for the sweep.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "model/memory.h"
#include "model/zoo/zoo.h"

namespace {

using namespace llmprof::model;
using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 15;
constexpr std::int64_t kBatches = 100, kContexts = 100;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Times {
  double analysis_ms = 0, sweep_ms = 0;
  double flops = 0;  // a use for what was computed
};

double analyse_once(const ZooEntry& entry) {
  const llmprof::Result<Config> config = config_of(entry);
  if (!config) return -1;
  const Graph graph(*config);
  double flops = 0;
  for (const Pass& pass : {prefill(1, 2048), decode(8, 4096)}) {
    for (const OpCost& cost : analyze(graph, pass, {.on_chip_bytes = 50 << 20})) flops += cost.flops;
  }
  return flops + kv_cache_bytes(graph, 8, 4096) + activation_bytes(graph, prefill(1, 2048));
}

double sweep_once(const Graph& graph) {
  double flops = 0;
  for (std::int64_t batch = 1; batch <= kBatches; ++batch) {
    for (std::int64_t step = 1; step <= kContexts; ++step) {
      flops += total(graph, decode(batch, 512 * step), {.on_chip_bytes = 50 << 20}).flops;
    }
  }
  return flops;
}

Times measure(const ZooEntry& entry) {
  std::vector<double> analysis_ms;
  Times times;
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = Clock::now();
    times.flops += analyse_once(entry);
    analysis_ms.push_back(ms_since(begin));
  }
  std::sort(analysis_ms.begin(), analysis_ms.end());
  times.analysis_ms = analysis_ms[kRepeats / 2];
  const llmprof::Result<Config> config = config_of(entry);
  if (!config) return times;
  const auto begin = Clock::now();
  times.flops += sweep_once(Graph(*config));
  times.sweep_ms = ms_since(begin);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  Times worst;
  std::printf("%-24s %14s %22s\n", "model", "analysis, ms", "10,000 points, ms");
  for (const ZooEntry& entry : zoo()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), entry.name) == wanted.end()) continue;
    const Times times = measure(entry);
    if (times.flops <= 0) return std::fprintf(stderr, "%s cannot be analysed\n", entry.name.c_str()), 1;
    std::printf("%-24s %14.3f %22.1f\n", entry.name.c_str(), times.analysis_ms, times.sweep_ms);
    worst.analysis_ms = std::max(worst.analysis_ms, times.analysis_ms);
    worst.sweep_ms = std::max(worst.sweep_ms, times.sweep_ms);
  }
  std::printf("worst: %.3f ms (budget 10), %.1f ms (budget 1000)\n", worst.analysis_ms, worst.sweep_ms);
  return 0;
}
