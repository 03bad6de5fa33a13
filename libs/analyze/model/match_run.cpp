#include "analyze/model/work_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "analyze/model/model_passes.h"
#include "analyze/passes/match.h"
#include "analyze/passes/match_stages.h"
#include "analyze/passes/repeated_products.h"

namespace llmprof::analyze {

namespace {

bool is_pass(const Step& step, const trace::Strings& strings) {
  const std::string_view stage = strings.text(step.stage);
  return has_formula(stage) && stage != "optimizer";
}

// Passes over the model that have no formula of their own are matched, too, where others are declared.
bool may_hold_pass(const Step& step, const trace::Strings& strings) {
  const std::string_view stage = strings.text(step.stage);
  return is_pass(step, strings) || stage == "forward only" || stage == "validation" || stage == "generation";
}

// Calls of a declared step are matched within it; what lies in none is left alone.
void set_segments(const Classified& classified, const trace::Strings& strings, Calls& calls) {
  const StepWindows of_process(classified.steps), of_thread(classified.steps, StepWindows::Of::kThread);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::int32_t step = of_process.declares_steps(calls.thread_id[i])
                                  ? of_thread.containing(calls.thread_id[i], calls.begin_ns[i])
                                  : of_process.containing(calls.process_id[i], calls.begin_ns[i]);
    if (step != kNone && may_hold_pass(classified.steps[step], strings)) calls.segment[i] = step;
  }
}

std::vector<Expect> expectations(const Classified& classified, const trace::Strings& strings) {
  std::vector<Expect> expect;
  for (const Step& step : classified.steps) {
    expect.push_back(strings.text(step.stage) == "backward" ? Expect::kBackward : Expect::kForward);
  }
  return expect;
}

// Declared steps that do not say their size take that of the pass they hold, if they hold one. Attention on the way
// back may be made otherwise than forward: then the forward pass before it tells the length.
void size_steps(const Matches& matches, Classified& classified, std::map<std::int32_t, std::int64_t>& logits_rows) {
  std::map<std::int32_t, const MatchedPass*> held;  // by step; nullptr: several
  for (const MatchedPass& pass : matches.passes) {
    if (pass.segment == kNone || pass.share < kLeastShareOfPass) continue;
    const auto [entry, first] = held.try_emplace(pass.segment, &pass);
    if (!first) entry->second = nullptr;
  }
  std::map<std::int64_t, std::int64_t> square_of_thread;
  for (const auto& [segment, pass] : held) {
    Step& step = classified.steps[segment];
    if (pass == nullptr || step.size.batch || step.size.tokens) continue;
    std::int64_t& square = square_of_thread[pass->thread_id];
    if (pass->square > 0) square = pass->square;
    const std::int64_t tokens = pass->backward || pass->square > 0 ? square : 0;
    if (pass->rows > 0) step.size.rows = pass->rows;
    if (pass->logits_rows > 0 && pass->logits_rows <= pass->rows) logits_rows[segment] = pass->logits_rows;
    if (tokens > 0 && pass->rows % tokens == 0)
      step.size = {.batch = pass->rows / tokens, .tokens = tokens, .context = tokens};
  }
}

// Kernels that look up rows of a table, by thread, then by time of launch.
Result<std::map<std::int64_t, std::vector<std::int64_t>>> read_lookups(const trace::Run& run) {
  std::map<std::int64_t, std::vector<std::int64_t>> of_thread;
  LLMPROF_LET(const std::string list, kernel_names(run, [](KernelClass is) { return is == KernelClass::kEmbedding; }));
  if (list.empty()) return of_thread;
  LLMPROF_LET(
      const trace::Columns columns,
      run.columns(fmt::format("SELECT thread_id, launch_begin_ns FROM kernel WHERE name IN ({}) AND thread_id IS "
                              "NOT NULL AND launch_begin_ns IS NOT NULL",
                              list)));
  for (std::size_t i = 0; i < columns.rows(); ++i) of_thread[columns.values[0][i]].push_back(columns.values[1][i]);
  for (auto& [thread, times] : of_thread) std::ranges::sort(times);
  return of_thread;
}

// A pass begins with the embedding of its tokens, not with its first product: the last lookups before that, as many as
// the model makes, if they are nearer than the pass is long.
Result<void> begin_with_embedding(const trace::Run& run, const model::Graph& graph, Matches& matches) {
  std::size_t lookups = 0;
  for (const model::Op& op : graph.first().ops) lookups += op.lookups.size();
  if (lookups == 0 || matches.passes.empty()) return {};
  LLMPROF_LET(const auto of_thread, read_lookups(run));
  for (std::size_t i = 0; i < matches.passes.size(); ++i) {
    MatchedPass& pass = matches.passes[i];
    const auto found = of_thread.find(pass.thread_id);
    if (pass.backward || found == of_thread.end()) continue;
    const bool follows = i > 0 && matches.passes[i - 1].thread_id == pass.thread_id;
    const std::int64_t earliest =
        std::max(follows ? matches.passes[i - 1].end_ns : INT64_MIN, pass.begin_ns - (pass.end_ns - pass.begin_ns));
    const auto& times = found->second;
    const auto behind = std::ranges::lower_bound(times, pass.begin_ns);
    const auto first = std::ranges::lower_bound(times.begin(), behind, earliest);
    const auto known = std::min(static_cast<std::size_t>(behind - first), lookups);
    if (known > 0) pass.begin_ns = *(behind - static_cast<std::ptrdiff_t>(known));
  }
  return {};
}

// A smaller model that drafts for this one is not described, but its products repeat.
std::vector<MatchedPass> passes_of_drafts(const Calls& calls, const Calls& captured) {
  const std::optional<MatrixSize> separator = separating_matrix(calls, captured);
  if (!separator) return {};
  std::vector<MatchedPass> passes = repeated_passes(calls, *separator).passes;
  std::erase_if(passes, [](const MatchedPass& pass) { return pass.of != MatchedPass::Of::kDraft; });
  return passes;
}

// Passes over a part of the model, and what they would be as steps of their own.
struct PartSteps {
  std::vector<std::int32_t> step_of_pass;  // of the passes of calls
  std::vector<std::int32_t> place_of;      // of these passes among all
  InferredSteps inferred;
};

// The step of each matched pass: the declared one it lies in, or one of its own, which is added by merge_parts().
Result<PartSteps> steps_of(const trace::Run& run, bool declared, const Matches& captured,
                           const std::vector<MatchedPass>& drafts, Matches matches,
                           const ProcessOfThread& process_of_thread, Classified& classified, trace::Strings& strings,
                           std::map<std::int32_t, std::int64_t>& logits_rows) {
  PartSteps steps;
  for (const MatchedPass& pass : matches.passes) steps.step_of_pass.push_back(pass.segment);
  if (declared) {
    size_steps(matches, classified, logits_rows);
    return steps;
  }
  LLMPROF_LET(steps.place_of, add_launched_passes(run, captured, drafts, matches));
  steps.inferred = infer_steps(matches, process_of_thread, strings);
  return steps;
}

// Adds the steps of all parts at once: where a step stands changes with each that is added before it.
void merge_parts(std::vector<PartSteps>& parts, Classified& classified) {
  struct PartStep {
    std::size_t part, step;
  };
  std::vector<PartStep> order;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t step = 0; step < parts[part].inferred.steps.size(); ++step) order.push_back({part, step});
  }
  const auto begin_of = [&](const PartStep& from) { return parts[from.part].inferred.steps[from.step].begin_ns; };
  std::ranges::stable_sort(order, {}, begin_of);
  std::vector<Step> all;
  std::vector<std::vector<std::int32_t>> at(parts.size());
  for (std::size_t part = 0; part < parts.size(); ++part) at[part].resize(parts[part].inferred.steps.size());
  for (const PartStep& from : order) {
    at[from.part][from.step] = static_cast<std::int32_t>(all.size());
    all.push_back(parts[from.part].inferred.steps[from.step]);
  }
  const std::vector<std::int32_t> step_at = add_steps(std::move(all), classified);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    PartSteps& steps = parts[part];
    for (std::size_t i = 0; i < steps.step_of_pass.size(); ++i) {
      const std::int32_t step = steps.inferred.step_of_pass[steps.place_of[i]];
      steps.step_of_pass[i] = step == kNone ? kNone : step_at[at[part][step]];
    }
  }
}

// Rows may be as many as a fused product is wide: how operands are laid out tells them apart, unless that explains
// nothing.
Products called_products(const model::Graph& graph, const Calls& direct, const std::vector<Expect>& expect,
                         const Calls& captured) {
  Products products;
  for (const Reading reading : {Reading::kUsual, Reading::kEither}) {
    SizeCounts counts = count_sizes(direct, reading, expect);
    for (const auto& [size, calls] : count_sizes(captured, reading)) counts[size] += calls;
    products = products_of(graph, counts);
    if (possible_passes(products, counts) > 0) break;
  }
  return products;
}

struct Named {  // a call and what it was found to be
  std::int64_t gemm_id = 0;
  trace::Name module;
  std::int32_t step = kNone;
  float confidence = 0;
};

// `step_of_pass` is empty for captured calls: they belong to no step, their launches do.
void name_calls(const RunCalls& run, const Products& products, const Matches& matches,
                const std::vector<std::int32_t>& step_of_pass, trace::Strings& strings, std::vector<Named>& out) {
  std::vector<trace::Name> slots, cores;
  for (const Slot& slot : products.slots) slots.push_back(strings.intern(slot.module));
  for (const Core& core : products.cores) cores.push_back(strings.intern(core.module));
  for (std::size_t i = 0; i < run.gemm_id.size(); ++i) {
    const CallMatch& match = matches.calls[i];
    if (match.pass == kNone || (!step_of_pass.empty() && step_of_pass[match.pass] == kNone)) continue;
    out.push_back({.gemm_id = run.gemm_id[i],
                   .module = match.slot != kNone ? slots[match.slot] : cores[match.core],
                   .step = step_of_pass.empty() ? kNone : step_of_pass[match.pass],
                   .confidence = static_cast<float>(confidence_of(matches.passes[match.pass]))});
  }
}

// A product behind attention needs attention, too.
std::map<std::string, double> recomputed_share(const Products& products, const Matches& matches) {
  std::map<std::string, double> share, layers;
  for (const CallMatch& match : matches.calls) {
    if (!match.recomputed) continue;
    const auto slot = static_cast<std::size_t>(match.slot);
    share[products.slots[slot].op] += 1;
    const std::int32_t core = slot > 0 ? products.slots[slot - 1].core : kNone;
    if (core != kNone) share[products.cores[core].op] += 1;
  }
  const double passes = std::ranges::count(matches.passes, true, &MatchedPass::backward);
  for (const Slot& slot : products.slots) layers[slot.op] += 1;
  for (const Core& core : products.cores) layers[core.op] += 1;
  for (auto& [op, part] : share) part = std::min(1.0, part / std::max(1.0, passes * layers[op]));
  return share;
}

ShapeMatches sorted_by_call(std::vector<Named> named) {
  std::ranges::stable_sort(named, {}, &Named::gemm_id);
  ShapeMatches out;
  for (const Named& call : named) {
    if (!out.gemm_id.empty() && out.gemm_id.back() == call.gemm_id) continue;  // in several graphs
    out.gemm_id.push_back(call.gemm_id);
    out.module.push_back(call.module);
    out.step.push_back(call.step);
    out.confidence.push_back(call.confidence);
  }
  return out;
}

RunCalls of_processes(const RunCalls& all, const std::set<std::int64_t>& processes) {
  RunCalls out;
  out.calls.shapes = all.calls.shapes;
  for (std::size_t i = 0; i < all.gemm_id.size(); ++i) {
    if (!processes.contains(all.calls.process_id[i])) continue;
    out.gemm_id.push_back(all.gemm_id[i]);
    out.calls.shape.push_back(all.calls.shape[i]);
    out.calls.process_id.push_back(all.calls.process_id[i]);
    out.calls.thread_id.push_back(all.calls.thread_id[i]);
    out.calls.begin_ns.push_back(all.calls.begin_ns[i]);
    out.calls.end_ns.push_back(all.calls.end_ns[i]);
    out.calls.segment.push_back(all.calls.segment[i]);
  }
  return out;
}

// Captured calls stand under their graph: whose graph it is tells who captured it.
Result<void> find_processes_of_graphs(const trace::Run& run, Calls& captured) {
  LLMPROF_LET(const trace::Columns rows,
              run.columns("SELECT DISTINCT n.graph, t.process_id FROM graph_node AS n JOIN thread AS t ON t.id = "
                          "n.thread_id"));
  std::map<std::int64_t, std::int64_t> process_of;
  for (std::size_t i = 0; i < rows.rows(); ++i) process_of[rows.values[0][i]] = rows.values[1][i];
  for (std::int64_t& process : captured.process_id) {
    const auto found = process_of.find(process);
    process = found == process_of.end() ? 0 : found->second;
  }
  return {};
}

struct MatchedPart {
  RunCalls direct, captured;
  Products products;
  Matches matches, in_graphs;
};

}  // namespace

Result<RunMatch> match_run(const trace::Run& run, const std::vector<ModelPart>& model,
                           const ProcessOfThread& process_of_thread, Classified& classified, trace::Strings& strings) {
  LLMPROF_LET(RunCalls direct, read_calls(run, process_of_thread));
  LLMPROF_LET(RunCalls captured, read_captured_calls(run));
  if (model.size() > 1) LLMPROF_TRY(find_processes_of_graphs(run, captured.calls));
  const bool declared = std::any_of(classified.steps.begin(), classified.steps.end(),
                                    [&](const Step& step) { return is_pass(step, strings); });
  direct.calls.segment.assign(direct.calls.size(), declared ? kNone : 0);
  if (declared) set_segments(classified, strings, direct.calls);
  RunMatch out;
  const std::vector<Expect> any{Expect::kAny};
  const std::vector<Expect> expect = declared ? expectations(classified, strings) : any;
  std::vector<MatchedPart> parts;
  std::vector<PartSteps> steps;
  for (const ModelPart& of : model) {
    MatchedPart& part = parts.emplace_back();
    part.direct = of.processes.empty() ? std::move(direct) : of_processes(direct, of.processes);
    part.captured = of.processes.empty() ? std::move(captured) : of_processes(captured, of.processes);
    part.products = called_products(*of.graph, part.direct.calls, expect, part.captured.calls);
    out.fused.insert(part.products.fused.begin(), part.products.fused.end());
    part.matches = match_calls(part.products, part.direct.calls, expect);
    part.in_graphs = match_calls(part.products, part.captured.calls, any);
    if (!declared) LLMPROF_TRY(begin_with_embedding(run, *of.graph, part.matches));
    std::vector<MatchedPass> drafts;
    if (!declared) drafts = passes_of_drafts(part.direct.calls, part.captured.calls);
    LLMPROF_LET(PartSteps found, steps_of(run, declared, part.in_graphs, drafts, part.matches, process_of_thread,
                                          classified, strings, out.logits_rows));
    steps.push_back(std::move(found));
    out.recomputed.merge(recomputed_share(part.products, part.matches));
  }
  if (!declared) merge_parts(steps, classified);
  std::vector<Named> named;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MatchedPart& part = parts[i];
    name_calls(part.direct, part.products, part.matches, steps[i].step_of_pass, strings, named);
    name_calls(part.captured, part.products, part.in_graphs, {}, strings, named);
  }
  out.calls = sorted_by_call(std::move(named));
  // Kernels between products are placed where all ranks have the same ones.
  if (parts.size() == 1) {
    out.calls.launched = Positions(parts[0].products, parts[0].direct.calls, parts[0].matches, strings);
    out.calls.captured = Positions(parts[0].products, parts[0].captured.calls, parts[0].in_graphs, strings);
  }
  return out;
}

}  // namespace llmprof::analyze
