// Kernels or code are compiled, or tuned, in steps that should only execute them.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::compile_in_loop {
namespace {

constexpr double kLeastShare = 0.03;  // of the stage
constexpr std::int64_t kLeastSamples = 5;

void advise(Finding& out, const std::string& what) {
  out.lever = "compiling once";
  if (base::contains(what, "cuDNN"))
    out.advice.emplace_back(
        "cuDNN builds a plan for each new shape: use attention of another library<torch> "
        "(torch.nn.attention.sdpa_kernel)</torch>, or pad lengths to a few sizes and keep the plans.");
  if (what == "Dynamo" || what == "Inductor" || what == "Triton")
    out.advice.emplace_back(
        "See why it compiles again (TORCH_LOGS=recompiles), mark sizes that change as dynamic "
        "(torch._dynamo.mark_dynamic), and keep the caches of Inductor and Triton between runs.");
  if (what == "XLA" || what.starts_with("JAX"))
    out.advice.emplace_back(
        "See what is compiled (jax.config jax_log_compiles), pad shapes to a few sizes, and keep the persistent "
        "compilation cache.");
  if (base::contains(what, "PTX") || base::contains(what, "linker"))
    out.advice.emplace_back("Ship code for this chip, not PTX only, or let the driver cache what it compiled.");
  out.advice.emplace_back("Compile every shape that will come before the first request: fewer shapes, fewer kernels.");
}

Finding finding_of(const StageView& view, const StageIdle& idle, const IdleWork& work, double ns,
                   std::int64_t samples) {
  const std::string& stage = view.stage->name;
  const std::string who = work.what.empty() ? "a compiler" : work.what;
  Finding out{.stage = stage, .part = work.what};
  out.title = fmt::format("{} of {} is spent compiling ({})", human_percent(ns / view.total_ns), stage, who);
  out.text = fmt::format("Steps after the warm-up still compile{}: {}, while the device has nothing to do.",
                         work.where.empty() ? "" : " (in " + work.where + ")", view.per_step(ns));
  out.set_gain(ns, view.total_ns,
               fmt::format("{} of CPU time in compilers, by {} of the thread that makes the steps",
                           human_ns(idle.cpu_ns(Work::kCompiling) + idle.cpu_ns(Work::kTuning)),
                           count_of(samples, "stack samples")));
  out.add_fraction("compiling", fmt::format("CPU time in {}, by {}", who, count_of(samples, "stack samples")),
                   ns / view.total_ns, human_ns(view.total_ns) + " of " + stage, "sampled", idle_sample_rows(stage));
  advise(out, work.what);
  out.next = "llmprof record --stacks python -o again -- PROGRAM";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  RuleResult out;
  bool any = false;
  for (const Stage& stage : run.summary.stages) {
    const StageIdle* idle = find_idle(run.summary.idle, stage.name);
    if (idle == nullptr || idle->samples == 0 || stage.name == "compile" || stage.name == "load") continue;
    any = true;
    const StageView view = view_of(run.summary, stage);
    const std::int64_t steady = stage.steps - stage.warm_up_steps;
    std::int64_t cpu_ns = 0, samples = 0;
    const IdleWork* main = nullptr;  // the one that takes most: works are sorted
    for (const IdleWork& work : idle->works) {
      if (work.work != Work::kCompiling && work.work != Work::kTuning) continue;
      cpu_ns += work.cpu_ns, samples += work.samples;
      if (main == nullptr) main = &work;
    }
    const double ns = std::min(view.total_ns, steady <= 0 ? 0 : cpu_ns * view.steps / steady);
    if (main != nullptr && samples >= kLeastSamples && ns >= kLeastShare * view.total_ns) {
      out.findings.push_back(finding_of(view, *idle, *main, ns, samples));
    } else {
      out.add_why(stage.name, fmt::format("{} of {} in compilers", samples, count_of(idle->samples, "stack samples")));
    }
  }
  if (!any) return not_applicable("no stack was sampled in steps");
  return out;
}

}  // namespace llmprof::analyze::compile_in_loop
