#pragma once
// What a step of a program takes whose implementation is known: its kernels, each with the time that the same kernel
// took for such a size when it was measured on this device; the gaps between them; and its host.
//
// How a kernel is found again at another size. A measured kernel belongs to a call ("rotary of queries") that was
// measured over numbers of tokens. Of all calls that launch a kernel of this name, the one whose number of blocks is
// that of the recorded kernel, at the recorded step's tokens, says how the time goes on. Where none fits, times of the
// same kernel by blocks do, with blocks in proportion to the tokens; then those of kernels of the same template.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/implementation/implementation.h"
#include "predict/implementation/kernel_rows.h"
#include "predict/tables/grid.h"

namespace llmprof::predict {

struct StepSize {
  std::int64_t batch = 1, rows = 1;  // sequences; new tokens of all
  std::int64_t contexts = 1;         // tokens that these attend to, of all sequences
};

struct KernelTime {
  double ns = 0;  // 0: part of the call of a kernel before it
  Basis basis = Basis::kMeasured;
  double begin_ns = 0;  // since the begin of the step
};

struct ProgramStep {
  std::vector<KernelTime> kernels;  // one for each of StageSteps::kernels
  double kernels_ns = 0;            // sum
  double gaps_ns = 0;               // between kernels that wait for nothing but the one before
  double waits_ns = 0;              // the device waits for launches
  double around_ns = 0;             // the host's, before the first launch and after the last kernel
  double total_ns() const { return kernels_ns + gaps_ns + waits_ns + around_ns; }
};

class ProgramCost {
 public:
  // Errors: nothing was measured.
  static Result<ProgramCost> make(Implementation implementation, ProbedRows rows);
  ProgramCost(ProgramCost&&) noexcept;
  ProgramCost& operator=(ProgramCost&&) noexcept;
  ~ProgramCost();

  const Implementation& implementation() const { return implementation_; }
  const ProbedRows& rows() const { return rows_; }
  // `stage` is one of the implementation's. `host`: its terms, or the ends of their intervals.
  ProgramStep step(const StageSteps& stage, const StepSize& size, const HostTerms& host) const;
  ProgramStep step(const StageSteps& stage, const StepSize& size) const { return step(stage, size, stage.host); }

  // Of rows(), those that the times of this implementation come from: they say the same of every step.
  ProbedRows used_rows() const;

  // Kernels of which no time was measured, the most time first: their names.
  std::vector<std::string> unknown() const;

 private:
  struct Known;   // all measured times, by what they are looked up by
  struct Source;  // where the time of one kernel comes from
  ProgramCost(Implementation implementation, ProbedRows rows);
  Source source_of(const StageSteps& stage, const StepKernel& kernel) const;

  Implementation implementation_;
  ProbedRows rows_;
  std::unique_ptr<Known> known_;
  std::vector<std::vector<Source>> sources_;  // by stage, by kernel
};

}  // namespace llmprof::predict
