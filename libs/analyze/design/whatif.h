#pragma once
// A change to a model or to how it is run, against what was measured or against the model as it is: floors of both,
// what a measured stage would become, and what one more of everything costs.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/design/design.h"

namespace llmprof::analyze::design {

struct ModelSetup {
  Subject subject;
  Options options;
  Roof roof;
};

// "kv_heads=4", "dtype=float8", "tp=2", "batch=16". `device` is not among them: a Roof is looked up elsewhere. Errors:
// an unknown key (with what was perhaps meant), a value that is none, a model that cannot have it.
Result<void> set(ModelSetup& setup, std::string_view setting);

// A stage as it was measured, of one step.
struct MeasuredStage {
  std::string stage;           // "prefill", "decode"
  double ns = 0;               // TTFT, TPOT
  std::optional<double> busy;  // of this, the device's part
};

// What it would become. The floor of the stage changes; how the rest follows is not known, so both ends are told: only
// what the floor saves is saved, or all that the device does shrinks as its floor does. Time in which the device is
// idle stays.
struct ExpectedStage {
  std::string stage;
  double measured_ns = 0;
  double floor_before_ns = 0, floor_after_ns = 0;
  double least_ns = 0, most_ns = 0;
  double least_ratio() const { return least_ns / measured_ns; }
  double most_ratio() const { return most_ns / measured_ns; }
};
std::vector<ExpectedStage> expected(const Design& before, const Design& after,
                                    const std::vector<MeasuredStage>& measured);

// What one more costs at the floor: differences to the design.
struct Gradient {
  std::string what;  // "1 layer more"
  std::optional<double> ttft_ns, tpot_ns, tokens_per_s;
  double memory_bytes = 0;
};
Result<std::vector<Gradient>> gradients(const ModelSetup& setup);

// Where a little more costs a lot, or nothing.
struct Cliff {
  std::string what;   // "KV cache"
  std::string where;  // "batch 110: 111 does not fit at context 4096"
};
std::vector<Cliff> cliffs(const Design& design);

}  // namespace llmprof::analyze::design
