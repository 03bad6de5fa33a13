#pragma once
// Divides the time of steps among the requests that they worked for. Every nanosecond of a step goes to one of its
// members or to the engine, by one rule for each kind of work:
//
//   products, norms, …   by tokens; rows of padding are the engine's
//   weights              of products, the least time of reading them from memory: equal parts, since each member
//                        needs them once, whatever it computes with them
//   attention            by pairs of a new token and one that it attends to
//   logits, sampling     equal parts for those that get a token
//   copies               by tokens
//   idle                 launches, waits, host: equal parts
//   other kernels        the engine's
//
// Whole nanoseconds: parts are differences of rounded running sums, so they add up exactly.

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyze/context.h"
#include "analyze/requests/members.h"
#include "model/model.h"
#include "trace/rows.h"

namespace llmprof::analyze {

// `total` in proportion to `weights`, which are not negative; their sum is `whole` or less, and what is left of it
// belongs to nobody.
std::vector<std::int64_t> divided(std::int64_t total, std::span<const double> weights, double whole);

enum class DividedBy : std::uint8_t { kTokens, kPairs, kSampled };

// What the operators of a model are, by name.
class DivisionOfOps {
 public:
  DivisionOfOps(const model::Graph* graph, const trace::Strings& strings) : graph_(graph), strings_(strings) {}
  DividedBy of(trace::Name op);

 private:
  const model::Graph* graph_;
  const trace::Strings& strings_;
  std::unordered_map<std::uint32_t, DividedBy> known_;
};

// What the weights of operators cost at least, of one layer after the other: by the operator's name.
using WeightTimes = std::unordered_map<std::uint32_t, double>;

// The parts of one step. `rows`: what owned its time (step_time). The engine's own row comes last.
std::vector<trace::StepMemberRow> shares_of(std::int64_t step_id, const StepMembers& members,
                                            std::span<const trace::StepTimeRow> rows, DivisionOfOps& ops,
                                            const WeightTimes& weights, const trace::Strings& strings);

// FLOPs and bytes of every member alone; weights in equal parts.
void cost_members(const model::Graph& graph, std::int64_t on_chip_bytes, std::span<trace::StepMemberRow> members);

// How much longer decoding requests had to wait because prompts were in the same step: than steps without any, of as
// many requests, or as near as there are. `duration_ns` by step; rows of a step stand together.
void add_stalls(const std::vector<std::int64_t>& duration_ns, const std::vector<bool>& warm_up,
                std::vector<trace::StepMemberRow>& rows);

// All of that for the steps of a run, as their times come (rows of a step one after the other).
class StepShares {
 public:
  // The references must outlive it. `members`: read_members(); empty: it does nothing.
  StepShares(const AnalysisContext& analysis, const std::vector<Step>& steps, const std::vector<StepMembers>& members,
             trace::Strings& strings)
      : analysis_(analysis), steps_(steps), members_(members), strings_(strings) {}

  void add(const trace::StepTimeRow& row);
  std::vector<trace::StepMemberRow> finish(const std::vector<bool>& warm_up);

 private:
  struct OfProcess {  // what its steps are passes over
    const model::Graph* graph = nullptr;
    DivisionOfOps ops;
    WeightTimes weights;
  };
  OfProcess& of_process(std::int64_t process_id);
  void close();

  const AnalysisContext& analysis_;
  const std::vector<Step>& steps_;
  const std::vector<StepMembers>& members_;
  trace::Strings& strings_;
  std::unordered_map<std::int64_t, OfProcess> processes_;
  std::vector<trace::StepTimeRow> open_;  // of one step
  std::vector<trace::StepMemberRow> rows_;
};

}  // namespace llmprof::analyze
