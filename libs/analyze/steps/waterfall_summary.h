#pragma once
// From the measured time of a stage down to the least it could take, every loss named. docs/format/analysis.md,
// "Waterfall", says how each nanosecond finds its term.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct WaterfallTerm {
  std::string name;      // a key that does not change: "gaps", "above_floor", …
  std::string op_class;  // above_floor, faster_than_floor: of the operators; else ""
  std::optional<std::int64_t>
      ns;           // over all samples; negative where something took less than its floor; nullopt unknown
  std::string why;  // why it is unknown
  // Of the operators of a class: what was measured, how much of that in kernels, and what they need at least.
  std::optional<std::int64_t> measured_ns, kernel_ns, floor_ns;
};

struct Waterfall {
  std::string stage;
  std::string quantity;  // "TTFT", "TPOT", "step time"
  std::int64_t samples = 0;
  bool on_cpu = true;            // the busiest device is a CPU: gaps are host code outside the model's operators
  std::int64_t measured_ns = 0;  // of all samples; the terms and the floor add up to exactly this
  std::optional<std::int64_t> floor_ns;  // of all samples
  std::string why;                       // why the floor is unknown
  std::vector<WaterfallTerm> terms;      // in the order in which they are taken off

  double mean_ns(std::int64_t ns) const { return static_cast<double>(ns) / static_cast<double>(samples); }
  double share(std::int64_t ns) const { return static_cast<double>(ns) / static_cast<double>(measured_ns); }
};

}  // namespace llmprof::analyze
