#include "analyze/requests/members.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "analyze/questions.h"

namespace llmprof::analyze {
namespace {

// The step that is open on a thread at a moment; moments come by time.
class OpenStep {
 public:
  explicit OpenStep(const std::vector<Step>& steps) : steps_(steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) lanes_[steps[i].thread_id].steps.push_back(i);
  }
  // steps.size(): none.
  std::size_t at(std::int64_t thread_id, std::int64_t ts_ns) {
    const auto found = lanes_.find(thread_id);
    if (found == lanes_.end()) return steps_.size();
    Lane& lane = found->second;
    while (lane.next < lane.steps.size() && steps_[lane.steps[lane.next]].begin_ns <= ts_ns) ++lane.next;
    if (lane.next == 0) return steps_.size();
    const std::size_t last = lane.steps[lane.next - 1];
    return ts_ns <= steps_[last].host_end() ? last : steps_.size();
  }

 private:
  struct Lane {
    std::vector<std::size_t> steps;
    std::size_t next = 0;  // steps before it have begun
  };
  const std::vector<Step>& steps_;
  std::unordered_map<std::int64_t, Lane> lanes_;
};

// What was computed of each request so far tells what a step does for it.
class Progress {
 public:
  explicit Progress(std::int64_t prompt) : prompt_(prompt) {}
  void judge(Member& member) {
    const std::int64_t before = member.context - member.tokens;
    member.prefill = prompt_ > 0 ? before < prompt_ : member.tokens > 1;
    member.sampled = member.context >= prompt_ && member.context > longest_;
    longest_ = std::max(longest_, member.context);
  }

 private:
  std::int64_t prompt_;  // 0: unknown
  std::int64_t longest_ = 0;
};

constexpr std::int64_t kMember = 1, kPadded = 2;  // codes of the question

}  // namespace

Result<std::vector<StepMembers>> read_members(const trace::Run& run, const std::vector<Step>& steps) {
  LLMPROF_LET(const trace::Columns marks, ask_columns(run, "pass_members"));
  if (marks.rows() == 0) return std::vector<StepMembers>{};
  std::vector<StepMembers> all(steps.size());
  OpenStep open(steps);
  std::map<std::pair<std::int64_t, std::int64_t>, Progress> requests;  // by process: every rank has all of them
  bool any = false;
  for (std::size_t i = 0; i < marks.rows(); ++i) {
    const auto value = [&](std::size_t column) { return marks.values[column][i]; };
    const std::size_t step = open.at(value(1), value(0));
    if (step == steps.size()) continue;
    if (value(2) == kPadded) all[step].padded = value(4);
    if (value(2) != kMember) continue;
    Member member{.request_id = value(3), .tokens = value(4), .context = std::max(value(5), value(4))};
    const std::int64_t prompt = value(6) == trace::Columns::kNull ? 0 : value(6);
    requests.try_emplace({steps[step].process_id, member.request_id}, prompt).first->second.judge(member);
    all[step].members.push_back(member);
    any = true;
  }
  if (!any) all.clear();
  return all;
}

void size_by_members(const std::vector<StepMembers>& members, std::vector<Step>& steps) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::vector<Member>& all = members[i].members;
    StepSize& size = steps[i].size;
    if (all.empty() || size.tokens || size.rows) continue;
    const Member& first = all.front();
    const auto alike = [&](const Member& member) {
      return member.tokens == first.tokens && member.context == first.context;
    };
    size = {};
    size.batch = static_cast<std::int64_t>(all.size());
    if (std::ranges::all_of(all, alike)) {
      size.tokens = first.tokens, size.context = first.context;
      continue;
    }
    size.rows = members[i].tokens();
    size.contexts = size.generating = 0;
    double pairs = 0;
    for (const Member& member : all) {
      *size.contexts += member.context;
      *size.generating += member.tokens == 1 ? 1 : 0;
      pairs += member.pairs();
    }
    size.contexts_most = size.contexts;
    size.pairs = static_cast<std::int64_t>(pairs);
  }
}

}  // namespace llmprof::analyze
