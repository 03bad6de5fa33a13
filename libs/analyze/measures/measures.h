#pragma once
// The numbers of a run by name: "decode.tpot_p50", "prefill.mfu", "run.wall". What gates compare, --explain explains
// and rules cite. The catalogue below is the only place that defines them.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/summary.h"

namespace llmprof::analyze {

enum class Better : std::uint8_t { kLower, kHigher, kNeither };
inline const char* json_name(Better better) {
  return better == Better::kLower ? "lower" : better == Better::kHigher ? "higher" : "neither";
}

// One row of the catalogue.
struct MeasureKind {
  std::string_view name;    // "tpot_p50"; its full name is "<scope>.<name>", the scope a stage, "requests" or "run"
  std::string_view unit;    // of the value: "s", "B", "B/s", "FLOP", "FLOP/s", "J", "W", "1" for fractions, "" numbers
  std::string_view source;  // "measured", "counted", "analytic", "inferred"
  Better better = Better::kNeither;
  std::string_view meaning;  // one sentence
  std::string_view formula;  // how it is computed, with its denominator
};

struct Measure {
  const MeasureKind* kind = nullptr;
  std::string scope;            // "decode", "run"
  std::optional<double> value;  // in base units
  std::string of;               // of a fraction: the denominator with its value, "989 TFLOP/s bfloat16, spec"
  std::string why;              // why it is unknown

  std::string full_name() const { return scope + "." + std::string(kind->name); }
};

std::span<const MeasureKind> measure_kinds();
const MeasureKind* find_measure_kind(std::string_view name);

// Every measure that makes sense for the run's stages, unknown ones with their why.
std::vector<Measure> measures(const Summary& summary);
const Measure* find_measure(const std::vector<Measure>& all, std::string_view full_name);

}  // namespace llmprof::analyze
