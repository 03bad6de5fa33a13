// Steps in which the device waits for the host to launch the next kernel.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::launch_bound {
namespace {

constexpr double kLeastShare = 0.1;     // of the stage
constexpr double kSlowLaunchNs = 15e3;  // host time per launch beyond which it is not the launching call that takes it
constexpr double kGraphedShare = 0.9;   // of a stage's kernels

std::string idle_rows(const std::string& stage) {
  return fmt::format(
      "SELECT s.id, s.begin_ns, t.owner, t.time_ns FROM step_time t JOIN step s ON s.id = t.step_id WHERE s.stage = {} "
      "AND t.owner IN ('gap', 'queued') ORDER BY t.time_ns DESC",
      sql_literal(stage));
}

void advise(Finding& out, double single, double per_launch_ns, double call_ns, bool graphs) {
  if (graphs) {
    out.lever = "launching the graph earlier";
    out.advice = {
        "Most kernels already run in graphs: prepare the inputs of the next step while the device works on this one, "
        "and put what is still launched by itself into the graph.",
        "Do not fetch a result before the next step is launched."};
    return;
  }
  out.lever = "a CUDA graph";
  out.advice = {
      "Capture the step as a CUDA graph<torch> (torch.compile(mode=\"reduce-overhead\"), torch.cuda.graphs, or the "
      "engine's graph option)</torch> and replay it.",
      "Fuse small kernels<torch> (torch.compile, fused norms and rotary embeddings)</torch>: fewer launches do the "
      "same work."};
  if (per_launch_ns > kSlowLaunchNs && per_launch_ns > 2 * call_ns)
    out.advice.insert(
        out.advice.begin() + 1,
        "Most of the time between launches is the program's own code, not the launching calls: <torch>take Python out "
        "of the loop (torch.compile, C++ runtime), or </torch>batch more work per launch.");
  if (single < 1) out.advice.pop_back();
}

// Idle time that launching explains: what the host did instead, as far as stacks tell it, is left to other rules.
double launching_ns(const Summary& summary, const StageView& view) {
  return view.idle_launching_ns() - other_work_share(summary, view.stage->name) * view.term("gaps").value_or(0);
}

Finding finding_of(const Summary& summary, const StageView& view, const StageLaunches* launched, bool waits_recorded) {
  const std::string& stage = view.stage->name;
  const double idle = launching_ns(summary, view), others = view.idle_launching_ns() - idle;
  const double single = launched == nullptr ? 0 : static_cast<double>(launched->launches);
  const double all = std::max(single, static_cast<double>(view.stage->kernels));
  const bool graphs = view.stage->graph_launches > 0 && single < (1 - kGraphedShare) * all;
  const double per_launch = single > 0 ? idle / single : 0;
  const double call = launched != nullptr && launched->timed > 0 ? ratio(launched->call_ns, launched->timed) : 0;
  Finding out{.stage = stage};
  out.title = fmt::format("The GPU is idle {} of {}, waiting for the CPU to launch kernels",
                          human_percent(idle / view.total_ns), stage);
  out.text = fmt::format(
      "A step launches {} one by one; the device is done with each before the next one comes, and idles {}.",
      count_of(single / view.steps, "kernels"), view.per_step(idle));
  if (graphs)
    out.text =
        fmt::format("Steps are graphs already, but they are launched late: the device idles {}.", view.per_step(idle));
  if (others >= 0.01 * view.total_ns)
    out.text += fmt::format(" It idles another {} while the host does something else, which graphs would not change.",
                            view.per_step(others));
  if (!waits_recorded) out.text += " Calls that wait for the device were not recorded: some of it may be waiting.";
  out.set_gain(idle, view.total_ns,
               fmt::format("idle with nothing launched {} and between launch and begin {}{}, of {}",
                           view.per_step(view.term("gaps").value_or(0)), view.per_step(view.term("queued").value_or(0)),
                           others > 0 ? ", less other work of the host " + view.per_step(others) : "",
                           view.per_step(view.total_ns)));
  out.add_fraction("idle_launching", "GPU idle, waiting for the CPU to launch kernels", idle / view.total_ns,
                   human_ns(view.total_ns) + " of " + stage, "measured", idle_rows(stage));
  out.add_number("launches_per_step", "kernels launched one by one", single / view.steps, "", "counted");
  out.add_number("graph_launches_per_step", "graph launches",
                 static_cast<double>(view.stage->graph_launches) / view.steps, "", "counted");
  if (single > 0) out.add_time("idle_per_launch", "idle time for each of these launches", per_launch, "measured");
  if (call > 0) out.add_time("launch_call", "host time inside one launching call", call, "measured");
  add_idle_causes(summary, out);
  advise(out, single, per_launch, call, graphs);
  out.next = graphs ? "llmprof plot RUN timeline -o timeline.svg" : "llmprof diff RUN RUN_WITH_GRAPHS";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (!run.summary.on_gpu) return not_applicable("no GPU kernels: nothing was launched");
  RuleResult out{.why = ""};
  bool any = false;
  for (const StageView& view : steady_stages(run.summary)) {
    if (view.waterfall == nullptr) continue;
    any = true;
    const double share = launching_ns(run.summary, view) / view.total_ns;
    if (share >= kLeastShare) {
      out.findings.push_back(finding_of(run.summary, view,
                                        find_by(run.facts.launches, view.stage->name, &StageLaunches::stage),
                                        run.facts.waits.recorded));
    } else {
      out.add_why(view.stage->name, fmt::format("the GPU waits for launches {} of it", human_percent(share)));
    }
  }
  if (!any) return not_applicable("no stage with a breakdown of its time");
  return out;
}

}  // namespace llmprof::analyze::launch_bound
