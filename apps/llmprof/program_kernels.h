#pragma once
// The kernels of a recorded program: measured by `llmprof bench --for RUN`, used by `llmprof predict --from RUN`.

#include <string>

#include "hw/resolve.h"
#include "model/config.h"
#include "predict/implementation/kernel_rows.h"
#include "predict/implementation/program.h"
#include "report_verb.h"

namespace llmprof::app {

struct RecordedProgram {
  OpenedRun opened;
  model::Config config;
  hw::DeviceAndPeaks device;
  predict::Implementation implementation;
  predict::TablesKey key() const;  // of what was measured for it; it must not outlive this
};
// llmprof-workload, which is measured by running it.
bool is_workload(const predict::Implementation& implementation);
// A run with a model, one GPU and steps whose kernels are recorded; anything else is an error that says what is
// missing.
Result<RecordedProgram> open_program(const Arguments& arguments, const std::string& name);

// The kernels of such a program with their times: of the runs that --kernels names, else those that bench --for kept.
// As the program runs by itself, where what recording adds is known, or as it runs under record.
enum class ProgramTimes : std::uint8_t { kAlone, kRecorded };
Result<predict::ProgramCost> program_cost(const Arguments& arguments, const RecordedProgram& program,
                                          ProgramTimes times);

// bench --for RUN: runs the prober of the program's framework and keeps what it prints.
Result<int> measure_kernels(const Arguments& arguments);

}  // namespace llmprof::app
