#pragma once
// A change to a model or to how it is run, against what was measured or against the model as it is: what a measured
// stage would become, and what one more of everything costs.
//
// Times come from a Pricer. Here is only the one that knows floors: operator tables and the kernels of programs belong
// to libs/predict, of the same layer, so the application hands their prices in.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
std::vector<std::string> setting_keys();

// What a time was computed from, the least trusted first.
enum class Source : std::uint8_t {
  kFloor,    // the least time at the device's peaks
  kTables,   // measured operators
  kProgram,  // the measured kernels of the recorded program
};
std::string_view source_name(Source source);  // "floor", "operator tables", "program's kernels"

struct PricedStage {
  std::string stage;           // "prefill", "decode"
  double ns = 0;               // of one step
  double least = 1, most = 1;  // factors: how much shorter and longer it may be
};

struct Priced {
  Source source = Source::kFloor;
  std::vector<PricedStage> stages;
  bool scaled = false;     // some operators were not measured in this shape or type: their times follow their floors
  bool with_host = false;  // the host's part of a step is in the times, else they are the device's alone
  std::optional<double> tokens_per_s;
  double memory_bytes = 0;  // needed on the device that needs most
  std::optional<double> device_bytes;
  double prefill_flops = 0, decode_flops = 0;             // of a step, on one device
  std::string stands_on;                                  // in words; "" for floors
  std::vector<std::string> notes;                         // what was scaled
  const PricedStage* stage(std::string_view name) const;  // nullptr: there is none
  std::string by() const;                                 // "operator tables, scaled"
};
// By the best source up to this one.
using Pricer = std::function<Result<Priced>(const ModelSetup&, Source at_most)>;
Result<Priced> price_at_floor(const ModelSetup& setup, Source at_most = Source::kFloor);
// Both by the same source, the best that knows both: ratios and differences of different sources mean nothing.
Result<std::pair<Priced, Priced>> price_both(const Pricer& pricer, const ModelSetup& a, const ModelSetup& b);

// A stage as it was measured, of one step.
struct MeasuredStage {
  std::string stage;           // "prefill", "decode"
  double ns = 0;               // TTFT, TPOT
  std::optional<double> busy;  // of this, the device's part
};

// What it would become.
struct ExpectedStage {
  std::string stage;
  double measured_ns = 0;
  // Floors. How the rest of a step follows its floor is not known, so both ends are told: only what the floor saves is
  // saved, or all that the device does shrinks as its floor does. Time in which the device is idle stays.
  double floor_before_ns = 0, floor_after_ns = 0;
  // Predictions; none: there are none for both sides.
  std::optional<double> predicted_before_ns, predicted_after_ns;
  std::optional<double> ratio;        // of the predictions
  std::optional<double> error;        // predicted_before_ns / what was measured of the same, less 1
  std::optional<double> expected_ns;  // measured x ratio; none: the prediction is too far from what was measured
  double least_ns = 0, most_ns = 0;
  std::string by;  // "operator tables", "operator tables, scaled", "floor": what the ends stand on
  double least_ratio() const { return least_ns / measured_ns; }
  double most_ratio() const { return most_ns / measured_ns; }
};

// A prediction farther from what was measured than this factor says nothing of it: its ratio is not applied.
inline constexpr double kFarthest = 1.5;

// `predicted`: both sides by one source. Their ratio is applied to the measured time, or, where they are of the device
// alone, to the part of it in which the device was busy. The ends: with the change the prediction may be as far off
// once more as it is without, either way, and by what its own times stand on.
std::vector<ExpectedStage> expected(const Design& before, const Design& after,
                                    const std::vector<MeasuredStage>& measured,
                                    const std::optional<std::pair<Priced, Priced>>& predicted = std::nullopt);

// What one more costs: differences to the design as it is.
struct Gradient {
  std::string what;  // "1 layer more"
  std::optional<double> ttft_ns, tpot_ns, tokens_per_s;
  double memory_bytes = 0;
  double decode_flops = 0;  // of a decode step, on one device
  std::string by;           // "operator tables", "floor"
  std::string setting;      // what was computed: "heads=40"
  std::int64_t parts = 1;   // the differences of `setting` divided by this
};
Result<std::vector<Gradient>> gradients(const ModelSetup& setup, const Pricer& pricer = price_at_floor);

}  // namespace llmprof::analyze::design
