#pragma once
// A measurement as a list of steps, each with an estimate of its time, so that progress has a total.

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "hw/cpu_peaks.h"
#include "hw/peaks.h"

namespace llmprof::bench {

using hw::GoOn;

struct RooflineStep {
  std::string name;    // "bfloat16 products"
  double seconds = 0;  // expected
  hw::Peak wanted;     // quantity, type and unit: the row when the step fails
  // Rows of one or more peaks. An error becomes a row with its reason; kInterrupted ends everything.
  std::function<Result<std::vector<hw::PeakRow>>(const GoOn& go_on)> run;
};

Result<std::vector<hw::PeakRow>> run_steps(const std::vector<RooflineStep>& steps, const base::Progress& progress);

// What a step is for: a peak without a value.
hw::Peak wanted_peak(std::string quantity, std::string type, std::string unit);

// For steps that give one peak.
std::function<Result<std::vector<hw::PeakRow>>(const GoOn&)> one_peak(std::function<Result<hw::Peak>(const GoOn&)> run);

}  // namespace llmprof::bench
