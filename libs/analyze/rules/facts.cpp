#include "analyze/rules/facts.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

// By the names of its kernels, operators, ranges and sampled functions.
Result<std::optional<bool>> uses_torch(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable seen, ask(run, "sql/program"));
  const RowView row{seen, 0};
  if (row.integer("torch") != 0) return std::optional(true);
  return row.integer("known") != 0 ? std::optional(false) : std::nullopt;
}

}  // namespace

Result<Facts> gather_facts(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary) {
  Facts facts;
  LLMPROF_LET(facts.torch, uses_torch(run));
  facts.model = model_shape(analysis);
  facts.peaks = arithmetic_peaks(analysis);
  LLMPROF_LET(facts.bytes, stage_bytes(run));
  LLMPROF_LET(facts.waits, host_waits(run));
  LLMPROF_LET(facts.launches, stage_launches(run));
  LLMPROF_LET(facts.copies, host_copies(run));
  LLMPROF_LET(facts.products, product_kernels(run));
  LLMPROF_LET(facts.totals, totals_facts(run, analysis, summary));
  LLMPROF_LET(const StepKernels step_kernels, read_step_kernels(run));
  facts.chains = chains_of(step_kernels);
  facts.logits = logits_of(step_kernels);
  LLMPROF_TRY(fill_logit_rows(run, facts.logits));
  LLMPROF_LET(facts.overlaps, overlaps(run, summary));
  LLMPROF_LET(facts.load, load_facts(run));
  LLMPROF_LET(facts.allocations, allocation_facts(run));
  LLMPROF_LET(facts.launch_shapes, launch_shapes(run));
  LLMPROF_LET(facts.needed_bytes, needed_bytes(run));
  LLMPROF_LET(facts.experts, expert_facts(run));
  LLMPROF_LET(facts.interference, interference(run));
  LLMPROF_LET(facts.graph_buckets, graph_buckets(run));
  LLMPROF_LET(facts.ranks, rank_facts(run));
  return facts;
}

}  // namespace llmprof::analyze
