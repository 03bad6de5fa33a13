#pragma once
// Operators with their totals, as PyTorch's profiler adds them up: time on the host and on devices, with and without
// what an operator called, kernels as rows of their own.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exporters/exporter.h"

namespace llmprof::exporters {

// Times are over all calls; nullopt: not known, as in other tools' totals.
struct OpTotal {
  std::string name;
  std::string shapes;  // of its inputs; "" unknown, or not asked for
  std::string kind;    // "operator", "kernel" (copies too), or what another tool's totals are of
  std::int64_t calls = 0;
  std::optional<double> self_cpu_ns, cpu_ns;        // without, and with, the operators it called
  std::optional<double> self_device_ns, device_ns;  // of kernels and copies it launched itself; and of what it called
  std::optional<double> flops;                      // 2MNK of the products it did itself
};

struct OpTotals {
  std::vector<OpTotal> rows;  // most device time first, then most host time
  // "operators": of the framework; "ranges": annotations of the program, as it has none; "summary": another tool's
  // totals
  std::string source;
  double self_cpu_ns = 0, self_device_ns = 0;  // of all, also of what a tool did not print
};

std::string note_on(const OpTotals& totals);  // what a reader should know of them; "" nothing

// By name, and by shapes too if asked.
Result<OpTotals> op_totals(const Request& request, bool by_shape);

}  // namespace llmprof::exporters
