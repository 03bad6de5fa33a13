#include "analyze/rules/facts.h"

namespace llmprof::analyze {

Result<Facts> gather_facts(const trace::Run& run, const Basis&, const Summary& summary) {
  Facts facts;
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
