#pragma once
// Which requests a step worked for, as the engine marked it (request_event): what is divided among them.

#include <cstdint>
#include <vector>

#include "analyze/passes/classify.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Member {
  std::int64_t request_id = 0;
  std::int64_t tokens = 0, context = 0;  // new ones; its length afterwards
  bool prefill = false;                  // of its prompt, or such as it had lost with its KV cache
  bool sampled = false;                  // it gets an output token
  // Pairs of a new token and one that it attends to, itself included.
  double pairs() const {
    const auto n = static_cast<double>(tokens), c = static_cast<double>(context);
    return n * c - n * (n - 1) / 2;
  }
};

struct StepMembers {
  std::vector<Member> members;  // in the order of their marks; empty: the step did not say
  std::int64_t padded = 0;      // rows of its products; 0: it did not say
  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Member& member : members) sum += member.tokens;
    return sum;
  }
};

// By place of the step in `steps`, which are sorted by begin; empty where no step says its members. A mark belongs to
// the step that is open on its thread.
Result<std::vector<StepMembers>> read_members(const trace::Run& run, const std::vector<Step>& steps);

// Steps that do not say their size have that of their members.
void size_by_members(const std::vector<StepMembers>& members, std::vector<Step>& steps);

}  // namespace llmprof::analyze
