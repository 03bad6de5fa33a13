#pragma once
// A setup at many values of one or two of its settings, whatever they are: "batch=1..256", "kv_heads=1,2,4,8".

#include <optional>
#include <string>
#include <vector>

#include "analyze/design/whatif.h"
#include "base/axis.h"

namespace llmprof::analyze::design {

inline constexpr std::size_t kMostChangePoints = 20'000;

struct ChangePoint {
  std::int64_t value = 0;  // of the last axis
  std::optional<double> ttft_ns, ttft_least_ns, ttft_most_ns;
  std::optional<double> tpot_ns, tpot_least_ns, tpot_most_ns;
  std::optional<double> tokens_per_s;
  double memory_bytes = 0;
  std::optional<bool> fits;
};

struct ChangeLine {
  std::string name;  // "as it is", "kv_heads=4"
  std::vector<ChangePoint> points;
};

struct ChangeSweep {
  std::vector<base::Axis> axes;  // one, or two: a line for each value of the first
  std::vector<ChangeLine> lines;
  bool scaled = false;                // see Priced::scaled; of any point
  Source source = Source::kFloor;     // of all times: lines of different sources could not be compared
  std::vector<std::string> left_out;  // "kv_heads=5: …", of values that cannot be
};

// One axis: a line of the setup as it is, and with `changes` another with them. Two: with the changes, a line for each
// value of the first. Errors: an axis that no setting is called by, too many points, no value that can be.
Result<ChangeSweep> sweep_changes(const ModelSetup& setup, const ModelSetup* changed, std::string_view changes,
                                  std::vector<base::Axis> axes, const Pricer& pricer = price_at_floor);

}  // namespace llmprof::analyze::design
