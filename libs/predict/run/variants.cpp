#include "predict/run/variants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace llmprof::predict {
namespace {

// What compilers merge into the kernels beside it.
bool is_merged(const Part& part) {
  return !part.ops.empty() && std::ranges::all_of(part.ops, [](const model::Op& op) {
    return op.op_class == model::OpClass::kNorm || op.op_class == model::OpClass::kRope ||
           op.op_class == model::OpClass::kElementwise;
  });
}

struct Sum {
  double ns = 0;
  std::int64_t kernels = 0;
};

// Every part as it is.
Sum all_parts(const TableStepCost& cost, const std::vector<OpTime>& times, bool merged) {
  Sum sum;
  for (std::size_t i = 0; i < cost.entries().size(); ++i) {
    if ((merged && is_merged(cost.entries()[i]->part)) || times[i].ns <= 0) continue;
    sum.ns += times[i].ns;
    sum.kernels += times[i].calls;
  }
  return sum;
}

// A kernel for each operator: as much longer as the floors of single operators are than that of the part.
Sum each_operator(const TableStepCost& cost, const model::Config& shard, const Batch& batch,
                  const std::vector<OpTime>& times) {
  const model::Amounts amounts(pass_of(batch));
  const DeviceRoof& roof = cost.input().roof;
  Sum sum;
  for (std::size_t i = 0; i < cost.entries().size(); ++i) {
    if (times[i].ns <= 0) continue;
    const Part& part = cost.entries()[i]->part;
    const double together_ns = part.ops.empty() ? 0 : floor_ns(part.ops, shard, amounts, roof);
    double apart_ns = 0;
    for (const model::Op& op : part.ops) apart_ns += floor_ns({op}, shard, amounts, roof);
    const double longer = together_ns > 0 ? std::max(1.0, apart_ns / together_ns) : 1;
    sum.ns += times[i].ns * longer;
    sum.kernels += times[i].calls * std::max<std::int64_t>(1, static_cast<std::int64_t>(part.ops.size()));
  }
  return sum;
}

// A device that is fed kernel by kernel works at the pace of the slower of the two.
Variant eager(std::string name, std::string meaning, const Sum& sum, const LaunchPrice& launch) {
  Variant variant{.name = std::move(name), .meaning = std::move(meaning), .kernels = sum.kernels, .ns = {}, .why = {}};
  if (launch.ns <= 0) {
    variant.why = "what a launch takes on this machine is not known";
    return variant;
  }
  variant.ns = std::max(sum.ns, launch.ns * static_cast<double>(sum.kernels));
  variant.meaning += fmt::format(", {} each ({})", base::human_ns(launch.ns), launch.source);
  return variant;
}

}  // namespace

LaunchPrice launch_price(const LaunchCosts& given, const std::vector<hw::Peak>& peaks) {
  if (given.launch_ns > 0) return {given.launch_ns, given.source};
  const hw::Peak* peak = hw::find_peak(peaks, "latency", "kernel launch");
  if (peak == nullptr || !(peak->value > 0)) return {};
  return {peak->value * 1e9, peak->source + (peak->method.empty() ? "" : ": " + peak->method)};
}

Result<std::vector<Variant>> variants_of(const TableStepCost& cost, const Batch& batch, const LaunchPrice& launch) {
  const StepCostInput& input = cost.input();
  LLMPROF_LET(const model::Config shard, model::shard(input.config, input.parallel, {}));
  const std::vector<OpTime> times = cost.explain(batch);
  const Sum parts = all_parts(cost, times, false), merged = all_parts(cost, times, true);
  std::vector<Variant> out;
  out.push_back(eager("eager, unfused", "a kernel for each operator of the model, launched one by one",
                      each_operator(cost, shard, batch, times), launch));
  out.push_back(eager("eager", "q, k, v in one kernel, gate and up in one, launched one by one", parts, launch));
  out.push_back({.name = "graph",
                 .meaning = "the same kernels back to back; gaps between the nodes of a graph are not counted",
                 .kernels = parts.kernels,
                 .ns = parts.ns,
                 .why = {}});
  out.push_back({.name = "compiled",
                 .meaning =
                     "a graph whose products also do norms, rotations and activations, at no cost: the best that "
                     "fusing these can do",
                 .kernels = merged.kernels,
                 .ns = merged.ns,
                 .why = {}});
  return out;
}

}  // namespace llmprof::predict
