#include "analyze/match_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "analyze/model_passes.h"
#include "analyze/passes/match.h"
#include "analyze/passes/match_stages.h"
#include "analyze/questions.h"

namespace llmprof::analyze {
namespace {

constexpr std::size_t kBlockCalls = 1'000'000;  // read at once

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

// In the order of `gemms`.
Result<Calls> read_calls(const trace::Run& run, const GemmOfKernel& gemms) {
  Calls calls;
  ShapeTable shapes(calls.shapes);
  const Question* question = find_question("sql/pass_calls");
  for (std::size_t begin = 0; begin < gemms.kernel_id.size(); begin += kBlockCalls) {
    const std::size_t last = std::min(begin + kBlockCalls, gemms.kernel_id.size()) - 1;
    LLMPROF_LET(const trace::Columns block,
                run.columns(fmt::format("{}WHERE kernel_id BETWEEN {} AND {} ORDER BY kernel_id", question->sql,
                                        gemms.kernel_id[begin], gemms.kernel_id[last])));
    for (std::size_t i = 0; i < block.rows(); ++i) {
      calls.thread_id.push_back(block.values[0][i]);
      calls.begin_ns.push_back(block.values[1][i]);
      calls.end_ns.push_back(block.values[2][i]);
      calls.shape.push_back(shapes.id({.m = block.values[3][i],
                                       .n = block.values[4][i],
                                       .k = block.values[5][i],
                                       .batch = block.values[6][i],
                                       .order = order_of(block.names[block.values[7][i]])}));
    }
  }
  if (calls.size() != gemms.kernel_id.size()) {
    return Error{ErrorCode::kCorruptInput, "two BLAS calls of the run have the same kernel", "see `llmprof check`"};
  }
  return calls;
}

std::vector<std::uint32_t> by_thread_and_time(const Calls& calls) {
  std::vector<std::uint32_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::tie(calls.thread_id[a], calls.begin_ns[a], a) < std::tie(calls.thread_id[b], calls.begin_ns[b], b);
  });
  return order;
}

template <class T>
void permute(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
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

// Back into the order of `gemms`.
void fill(const Products& products, const Matches& matches, const std::vector<std::int32_t>& step_of_pass,
          const std::vector<std::uint32_t>& order, trace::Strings& strings, ShapeMatches& out) {
  std::vector<trace::Name> slots, cores;
  for (const Slot& slot : products.slots) slots.push_back(strings.intern(slot.module));
  for (const Core& core : products.cores) cores.push_back(strings.intern(core.module));
  out.module.resize(order.size());
  out.step.assign(order.size(), kNone);
  out.confidence.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const CallMatch& match = matches.calls[i];
    if (match.pass == kNone || step_of_pass[match.pass] == kNone) continue;
    out.module[order[i]] = match.slot != kNone ? slots[match.slot] : cores[match.core];
    out.step[order[i]] = step_of_pass[match.pass];
    out.confidence[order[i]] = static_cast<float>(confidence_of(matches.passes[match.pass]));
  }
}

}  // namespace

Result<RunMatch> match_run(const trace::Run& run, const model::Graph& graph, const GemmOfKernel& gemms,
                           const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
                           Classified& classified, trace::Strings& strings) {
  LLMPROF_LET(Calls calls, read_calls(run, gemms));
  const std::vector<std::uint32_t> order = by_thread_and_time(calls);
  for (auto* column : {&calls.thread_id, &calls.begin_ns, &calls.end_ns}) permute(*column, order);
  permute(calls.shape, order);
  for (const std::int64_t thread : calls.thread_id) {
    const auto process = process_of_thread.find(thread);
    calls.process_id.push_back(process == process_of_thread.end() ? 0 : process->second);
  }
  const bool declared = std::any_of(classified.steps.begin(), classified.steps.end(),
                                    [&](const Step& step) { return is_pass(step, strings); });
  calls.segment.assign(calls.size(), declared ? kNone : 0);
  if (declared) set_segments(classified, strings, calls);
  RunMatch out;
  const Products products = products_of(graph, count_sizes(calls));
  out.fused = products.fused;
  const Matches matches =
      match_calls(products, calls, declared ? expectations(classified, strings) : std::vector<Expect>{Expect::kAny});
  std::vector<std::int32_t> step_of_pass;
  if (declared) {
    for (const MatchedPass& pass : matches.passes) step_of_pass.push_back(pass.segment);
  } else {
    InferredSteps inferred = infer_steps(matches, process_of_thread, strings);
    step_of_pass = std::move(inferred.step_of_pass);
    const std::vector<std::int32_t> place_of = add_steps(std::move(inferred.steps), classified);
    for (std::int32_t& step : step_of_pass) {
      if (step != kNone) step = place_of[step];
    }
  }
  fill(products, matches, step_of_pass, order, strings, out.calls);
  return out;
}

}  // namespace llmprof::analyze
