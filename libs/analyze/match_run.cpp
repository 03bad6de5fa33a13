#include "analyze/match_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "analyze/model_passes.h"
#include "analyze/passes/match.h"
#include "analyze/passes/match_stages.h"
#include "analyze/questions.h"

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kBlockCalls = 1'000'000;  // read at once

class ShapeTable {
 public:
  explicit ShapeTable(std::vector<CallShape>& shapes) : shapes_(shapes) {}
  std::uint32_t id(const CallShape& shape) {
    if (!shapes_.empty() && shapes_[last_] == shape) return last_;
    const auto key = std::tuple(shape.m, shape.n, shape.k, shape.batch, shape.order);
    const auto [entry, fresh] = ids_.try_emplace(key, static_cast<std::uint32_t>(shapes_.size()));
    if (fresh) shapes_.push_back(shape);
    return last_ = entry->second;
  }

 private:
  std::vector<CallShape>& shapes_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, CallShape::Order>, std::uint32_t> ids_;
  std::uint32_t last_ = 0;
};

CallShape::Order order_of(std::string_view layout) {
  if (layout == "row") return CallShape::Order::kRowMajor;
  return layout == "column" ? CallShape::Order::kColumnMajor : CallShape::Order::kUnknown;
}

struct RunCalls {
  Calls calls;                        // by thread, then by time
  std::vector<std::int64_t> gemm_id;  // of each
};

void append(const trace::Columns& block, ShapeTable& shapes, RunCalls& out) {
  for (std::size_t i = 0; i < block.rows(); ++i) {
    out.gemm_id.push_back(block.values[0][i]);
    out.calls.thread_id.push_back(block.values[1][i]);
    out.calls.begin_ns.push_back(block.values[2][i]);
    out.calls.end_ns.push_back(block.values[3][i]);
    out.calls.shape.push_back(shapes.id({.m = block.values[4][i],
                                         .n = block.values[5][i],
                                         .k = block.values[6][i],
                                         .batch = block.values[7][i],
                                         .order = order_of(block.names[block.values[8][i]])}));
  }
}

template <class T>
void permute(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
}

void sort_by_thread_and_time(RunCalls& run) {
  const Calls& calls = run.calls;
  std::vector<std::uint32_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::tie(calls.thread_id[a], calls.begin_ns[a], a) < std::tie(calls.thread_id[b], calls.begin_ns[b], b);
  });
  for (auto* column : {&run.calls.thread_id, &run.calls.begin_ns, &run.calls.end_ns, &run.gemm_id})
    permute(*column, order);
  permute(run.calls.shape, order);
}

Result<RunCalls> read_calls(const trace::Run& run,
                            const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread) {
  RunCalls out;
  ShapeTable shapes(out.calls.shapes);
  std::int64_t after_id = INT64_MIN;
  for (std::size_t read = 1; read > 0;) {
    LLMPROF_LET(const trace::Columns block,
                run.columns(fmt::format("{}WHERE id > {} ORDER BY id LIMIT {}", find_question("sql/pass_calls")->sql,
                                        after_id, kBlockCalls)));
    append(block, shapes, out);
    read = block.rows();
    if (read > 0) after_id = block.values[0].back();
  }
  sort_by_thread_and_time(out);
  for (const std::int64_t thread : out.calls.thread_id) {
    const auto process = process_of_thread.find(thread);
    out.calls.process_id.push_back(process == process_of_thread.end() ? 0 : process->second);
  }
  return out;
}

// Of each graph that was launched; the graph stands in place of the thread.
Result<RunCalls> read_captured_calls(const trace::Run& run) {
  RunCalls out;
  ShapeTable shapes(out.calls.shapes);
  LLMPROF_LET(const trace::Columns block, ask_columns(run, "sql/pass_captured_calls"));
  append(block, shapes, out);
  out.calls.process_id = out.calls.thread_id;
  out.calls.segment.assign(out.calls.size(), 0);
  return out;
}

bool is_pass(const Step& step, const trace::Strings& strings) {
  const std::string_view stage = strings.text(step.stage);
  return has_formula(stage) && stage != "optimizer";
}

// Calls of a declared step are matched within it; what lies in none is left alone.
void set_segments(const Classified& classified, const trace::Strings& strings, Calls& calls) {
  const StepWindows of_process(classified.steps), of_thread(classified.steps, StepWindows::Of::kThread);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::int32_t step = of_process.declares_steps(calls.thread_id[i])
                                  ? of_thread.containing(calls.thread_id[i], calls.begin_ns[i])
                                  : of_process.containing(calls.process_id[i], calls.begin_ns[i]);
    if (step != kNone && is_pass(classified.steps[step], strings)) calls.segment[i] = step;
  }
}

std::vector<Expect> expectations(const Classified& classified, const trace::Strings& strings) {
  std::vector<Expect> expect;
  for (const Step& step : classified.steps) {
    expect.push_back(strings.text(step.stage) == "backward" ? Expect::kBackward : Expect::kForward);
  }
  return expect;
}

// A graph that holds one pass over the model makes one with every launch. Returns for each pass that was matched where
// it is now: passes come by thread, then by time.
Result<std::vector<std::int32_t>> add_launched_passes(const trace::Run& run, const Matches& captured,
                                                      Matches& matches) {
  std::map<std::int64_t, std::vector<const MatchedPass*>> of_graph;
  for (const MatchedPass& pass : captured.passes) of_graph[pass.thread_id].push_back(&pass);
  std::vector<std::pair<MatchedPass, std::int32_t>> all;
  for (std::size_t i = 0; i < matches.passes.size(); ++i) all.emplace_back(matches.passes[i], i);
  LLMPROF_LET(const trace::Columns launches, ask_columns(run, "sql/pass_launch_times"));
  for (std::size_t i = 0; i < launches.rows(); ++i) {
    const auto passes = of_graph.find(launches.values[0][i]);
    if (passes == of_graph.end() || passes->second.size() != 1) continue;
    MatchedPass pass = *passes->second.front();
    pass.thread_id = launches.values[1][i];
    pass.begin_ns = launches.values[2][i];
    pass.end_ns = launches.values[3][i];
    all.emplace_back(pass, kNone);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.thread_id, a.first.begin_ns) < std::tie(b.first.thread_id, b.first.begin_ns);
  });
  std::vector<std::int32_t> place_of(matches.passes.size());
  matches.passes.clear();
  for (const auto& [pass, old] : all) {
    if (old != kNone) place_of[old] = static_cast<std::int32_t>(matches.passes.size());
    matches.passes.push_back(pass);
  }
  return place_of;
}

// The step of each matched pass: the declared one it lies in, or one of its own, which is added.
Result<std::vector<std::int32_t>> steps_of(const trace::Run& run, bool declared, const Matches& captured,
                                           Matches matches,
                                           const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
                                           Classified& classified, trace::Strings& strings) {
  std::vector<std::int32_t> step_of_pass;
  for (const MatchedPass& pass : matches.passes) step_of_pass.push_back(pass.segment);
  if (declared) return step_of_pass;
  LLMPROF_LET(const std::vector<std::int32_t> place_of, add_launched_passes(run, captured, matches));
  InferredSteps inferred = infer_steps(matches, process_of_thread, strings);
  const std::vector<std::int32_t> step_at = add_steps(std::move(inferred.steps), classified);
  for (std::size_t i = 0; i < step_of_pass.size(); ++i) {
    const std::int32_t step = inferred.step_of_pass[place_of[i]];
    step_of_pass[i] = step == kNone ? kNone : step_at[step];
  }
  return step_of_pass;
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

ShapeMatches sorted_by_call(std::vector<Named> named) {
  std::stable_sort(named.begin(), named.end(), [](const Named& a, const Named& b) { return a.gemm_id < b.gemm_id; });
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

}  // namespace

Result<RunMatch> match_run(const trace::Run& run, const model::Graph& graph,
                           const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
                           Classified& classified, trace::Strings& strings) {
  LLMPROF_LET(RunCalls direct, read_calls(run, process_of_thread));
  LLMPROF_LET(const RunCalls captured, read_captured_calls(run));
  const bool declared = std::any_of(classified.steps.begin(), classified.steps.end(),
                                    [&](const Step& step) { return is_pass(step, strings); });
  direct.calls.segment.assign(direct.calls.size(), declared ? kNone : 0);
  if (declared) set_segments(classified, strings, direct.calls);
  RunMatch out;
  SizeCounts counts = count_sizes(direct.calls);
  for (const auto& [size, calls] : count_sizes(captured.calls)) counts[size] += calls;
  const Products products = products_of(graph, counts);
  out.fused = products.fused;
  const std::vector<Expect> any{Expect::kAny};
  const Matches matches = match_calls(products, direct.calls, declared ? expectations(classified, strings) : any);
  const Matches in_graphs = match_calls(products, captured.calls, any);
  LLMPROF_LET(const std::vector<std::int32_t> step_of_pass,
              steps_of(run, declared, in_graphs, matches, process_of_thread, classified, strings));
  std::vector<Named> named;
  name_calls(direct, products, matches, step_of_pass, strings, named);
  name_calls(captured, products, in_graphs, {}, strings, named);
  out.calls = sorted_by_call(std::move(named));
  return out;
}

}  // namespace llmprof::analyze
