// What a plan costs: every server GPU of the catalogue, four degrees of tensor parallelism, the limits of a step, 300
// requests each. One thread. Usage: plan_rate [MODEL…]. Budget: 30 s of CPU for 500 configurations.
#include <ctime>

#include <cstdio>
#include <string>
#include <vector>

#include "predict/plan/plan.h"

namespace {

using namespace llmprof;
namespace plan = predict::plan;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Loads that take some replicas of the usual GPUs.
plan::Asked asked_of(const std::string& model, double rate, double ttft_ms, double tpot_ms) {
  plan::Asked asked;
  asked.deployment.model = model;
  if (auto opened = predict::open_named(model)) asked.model = std::move(*opened);
  for (const hw::DeviceSpec& spec : hw::catalog()) {
    if (spec.server && spec.peak("bfloat16") != nullptr && spec.figure("bandwidth") != nullptr)
      asked.devices.push_back({hw::device_of(spec), hw::spec_peaks(spec), &spec, false});
  }
  serving::WorkloadSpec spec;
  spec.rate = rate;
  spec.lengths = serving::Lengths::kUniform;
  spec.prompt = 256, spec.prompt_most = 1024, spec.output = 64, spec.output_most = 192;
  asked.workload = *serving::make_workload(spec);
  asked.rate = rate;
  asked.limits.slo = {.ttft_ns = ttft_ms * 1e6, .tpot_ns = tpot_ms * 1e6, .e2e_ns = {}};
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models(argv + 1, argv + argc);
  if (models.empty()) models = {"llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3"};
  std::printf("%-20s %8s %8s %8s %8s %8s %12s %14s\n", "model", "rate", "tried", "simul.", "meet", "runs", "CPU s",
              "ms per config");
  for (const std::string& model : models) {
    for (const double rate : {4.0, 40.0}) {
      const plan::Asked asked = asked_of(model, rate, 1000, 50);
      const double begin = cpu_seconds();
      const auto found = plan::make_plan(asked, base::no_progress);
      const double seconds = cpu_seconds() - begin;
      if (!found) return std::fprintf(stderr, "%s: %s\n", model.c_str(), found.error().message.c_str()), 1;
      long meet = 0;
      for (const plan::Configuration& each : found->configurations) meet += each.meets ? 1 : 0;
      std::printf("%-20s %8.0f %8zu %8lld %8ld %8lld %12.1f %14.1f\n", model.c_str(), rate,
                  found->configurations.size(), static_cast<long long>(found->simulated), meet,
                  static_cast<long long>(found->simulations), seconds,
                  1e3 * seconds / static_cast<double>(found->simulated > 0 ? found->simulated : 1));
    }
  }
  return 0;
}
