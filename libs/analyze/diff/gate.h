#pragma once
// Limits that a comparison has to keep: "decode.tpot_p50 < +3%" (against before), "decode.mbu > 0.70" (of after).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/diff/diff.h"

namespace llmprof::analyze {

struct Gate {
  std::string text;     // as given, spaces tidied
  std::string measure;  // "decode.tpot_p50"
  std::string_view op;  // "<", "<=", ">", ">="; a literal
  double limit = 0;     // fraction of before, or in the measure's base unit
  bool relative = false;
};

// One or more expressions, separated by ';'. Unknown measures and units are usage errors that name near ones.
Result<std::vector<Gate>> parse_gates(std::string_view text);

struct GateResult {
  Gate gate;
  bool passed = false;
  std::string unit;
  std::optional<double> before, after;
  Change change;             // of relative gates
  bool significant = false;  // the change
  std::string why;           // why it failed, or what was compared
};

// `before` may have no runs where no gate is relative.
std::vector<GateResult> check_gates(const std::vector<Gate>& gates, const Side& before, const Side& after,
                                    const Diff& diff);

}  // namespace llmprof::analyze
