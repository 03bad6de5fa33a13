#pragma once
// How wrong predictions of single steps have been: steps of recorded runs, predicted from the kernels of a program or
// from the operator tables of a model. A folder of files (docs/format/step-backtests.md) that is kept, run again and
// built in.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/deployment.h"
#include "predict/implementation/measured_steps.h"

namespace llmprof::predict {

struct StepCheck {
  MeasuredSteps measured;
  double predicted_ns = 0, low_ns = 0, high_ns = 0;  // low, high: the stated interval
  double error() const { return predicted_ns / measured.ns - 1; }
  bool inside() const { return measured.ns >= low_ns && measured.ns <= high_ns; }
};

struct StepBacktest {
  std::string name;    // "llama 16x2048, NVIDIA H200"
  std::string device;  // as its runs name it
  std::string basis;   // "kernels of a recorded program", "operator tables", "the roof alone"
  bool program = false;
  double parameters = 0;  // of the model
  std::vector<StepCheck> checks;
  std::vector<std::string> notes;  // what could not be predicted, and why
  std::int64_t covered() const;    // checks inside their intervals
};

// Steps of other runs as this program would make them. An error where none of them can be predicted.
Result<StepBacktest> backtest_program(const ProgramCost& cost, const model::Config& config, const std::string& device,
                                      const std::vector<MeasuredSteps>& measured);

// The files of a step back-test, names to texts, to be written compressed (all but meta.json).
struct StepBacktestAbout {
  std::string model, config_text, device, driver;
};
std::map<std::string, std::string> files_of(const ProgramCost& cost, const StepBacktestAbout& about,
                                            const std::vector<MeasuredSteps>& measured);

// Whether a folder holds measured steps rather than a serving.
bool is_step_backtest(const std::string& folder);
Result<StepBacktest> step_backtest_folder(const std::string& folder);
// Those that are part of the program.
Result<std::vector<StepBacktest>> built_in_step_backtests();

// What a prediction is of, for finding the back-test that is most like it.
struct PredictedStage {
  std::string stage, device;
  bool program = false, graph = false;
  double parameters = 0;
  StepSize size;
};
struct NearestStep {
  const StepBacktest* backtest = nullptr;  // nullptr: there is none of this stage
  const StepCheck* check = nullptr;
};
// By device first, then by what the times come from, launch, size of the model, and size of the step.
NearestStep nearest(const std::vector<StepBacktest>& known, const PredictedStage& of);

}  // namespace llmprof::predict
