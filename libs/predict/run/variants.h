#pragma once
// The same step run in other ways. Each is the step's own operator times and one stated change; none is measured.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/tables/step_cost.h"

namespace llmprof::predict {

// What it takes to give a device one kernel.
struct LaunchPrice {
  double ns = 0;  // 0: not known
  std::string source;
};
// What the input of a cost says; else the device's measured latency of a kernel launch; else unknown.
LaunchPrice launch_price(const LaunchCosts& given, const std::vector<hw::Peak>& peaks);

struct Variant {
  std::string name;          // "eager, unfused"
  std::string meaning;       // what is assumed
  std::int64_t kernels = 0;  // of a step
  std::optional<double> ns;  // of the device; none: see why
  std::string why;
};

// eager, unfused: a kernel for each operator of the model, launched one by one.
// eager: kernels as the tables have them (q, k, v in one; gate and up in one), launched one by one.
// graph: the same without the host between them.
// compiled: a graph in which norms, rotations and activations are done by the products before or behind them.
Result<std::vector<Variant>> variants_of(const TableStepCost& cost, const Batch& batch, const LaunchPrice& launch);

}  // namespace llmprof::predict
