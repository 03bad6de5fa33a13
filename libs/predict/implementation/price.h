#pragma once
// The steps of a program as predict_steps() wants them.

#include <memory>

#include "predict/forecast.h"
#include "predict/implementation/program.h"
#include "predict/run/predict_steps.h"

namespace llmprof::predict {

// `cost` must outlive it. `best`: the same model in its best implementation, for comparison; nullptr: not measured.
std::unique_ptr<StepPricer> price_program(const ProgramCost& cost, const TableStepCost* best);

// How much shorter and longer a step may be than predicted: by what its kernels' times stand on, and by the spread of
// the host's terms.
StepError program_error(const ProgramCost& cost, const StepsInput& input);
// Of one step; without `why`.
StepError stage_error(const ProgramCost& cost, const StageSteps& stage, const StepSize& size);

}  // namespace llmprof::predict
