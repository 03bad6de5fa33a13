#pragma once
// The catalogue of measures with the functions that take each value from a summary. Used by measures.cpp alone.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/measures/measures.h"

namespace llmprof::analyze {

struct MeasureValue {
  std::optional<double> value;
  std::string of;   // Measure::of
  std::string why;  // Measure::why

  static MeasureValue count(std::int64_t number) { return {static_cast<double>(number), "", ""}; }
  static MeasureValue seconds(std::int64_t ns) { return {static_cast<double>(ns) * 1e-9, "", ""}; }
};

// What a value is taken from. Of the run: `stage` is null.
struct MeasureFrom {
  const Summary& summary;
  const Stage* stage = nullptr;
  const StageTelemetry* telemetry = nullptr;  // of the stage; null without readings
  const Waterfall* waterfall = nullptr;       // of the stage; null if it has none
  const CountedStage* counted = nullptr;      // of the stage; null without hardware counters
};

struct MeasureRow {
  MeasureKind kind;
  MeasureValue (*value)(const MeasureFrom&);
  std::string_view only_stage = "";  // "" every stage
};

std::span<const MeasureRow> stage_measure_rows();
std::span<const MeasureRow> run_measure_rows();
std::span<const MeasureRow> request_measure_rows();  // of runs with requests
std::span<const MeasureRow> counted_measure_rows();  // of stages with hardware counters

template <class T>
MeasureValue known(const std::optional<T>& value, double scale, std::string why) {
  if (!value) return {std::nullopt, "", std::move(why)};
  return {static_cast<double>(*value) * scale, "", ""};
}

}  // namespace llmprof::analyze
