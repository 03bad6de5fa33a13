// What the longest times to first token are made of. While a request is queued, each step tells what kept it out: the
// step's tokens were those of other prompts, the KV cache had no blocks, all places were taken, … So a request's queue
// is a sum over the steps in it, and sums before each step make that two searches, however many steps there are.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "analyze/requests/answers.h"
#include "base/human.h"
#include "base/text_table.h"

namespace llmprof::analyze {
namespace {

enum Hold : std::uint8_t { kPrefills, kBlocks, kSequences, kBudget, kStep, kOther, kHolds };
constexpr double kFull = 0.95;  // of the blocks of the KV cache

// The steps of one process.
struct Lane {
  std::span<const ServedStep> steps;
  std::vector<Hold> held;
  std::array<std::vector<std::int64_t>, kHolds> until;  // time of the steps before each, by what held requests back
};

struct Engine {
  std::map<std::int64_t, Lane> lanes;  // by process
  const Lane* lane_of(const RequestFigures& request) const {
    const auto found = lanes.find(request.process_id);
    return found == lanes.end() ? nullptr : &found->second;
  }
};

// Why a step had no place for the first of those who wait. The order is that in which a scheduler gives up: tokens of
// the step, places, blocks.
Hold hold_of(const ServedStep& step, const RequestFigures& first, const std::optional<serving::EngineRules>& rules) {
  const bool prompts = step.prompt_tokens > 0;
  std::int64_t needed = 1;
  if (rules) {
    const std::int64_t budget = rules->max_num_batched_tokens;
    if (budget > 0 && step.tokens >= budget) return prompts ? kPrefills : kBudget;
    if (step.members >= rules->max_num_seqs) return kSequences;
    std::int64_t tokens = std::max<std::int64_t>(1, first.prompt_tokens - first.cached_tokens.value_or(0));
    if (!rules->scheduler_reserve_full_isl && budget > 0) tokens = std::min(tokens, budget - step.tokens);
    needed = (tokens + rules->block_size - 1) / rules->block_size;
  }
  const bool full = step.blocks > 0 && step.blocks - step.blocks_used < needed;
  if (full || step.preempted) return kBlocks;
  return prompts ? kPrefills : kOther;
}

std::int64_t left_queue_ns(const RequestFigures& request) {
  return request.scheduled_ns ? *request.scheduled_ns : request.end_ns.value_or(INT64_MAX);
}
std::int64_t left_ns(const RequestFigures& request) {
  return std::max({request.end_ns.value_or(0), request.last_token_ns.value_or(0),
                   request.scheduled_ns.value_or(request.arrival_ns)});
}

// Requests of a process come by arrival: the first who waits is the first who was not scheduled yet.
void judge_steps(const std::vector<const RequestFigures*>& requests, const std::optional<serving::EngineRules>& rules,
                 Lane& lane, EngineTime& time) {
  lane.held.assign(lane.steps.size(), kOther);
  for (auto& sums : lane.until) sums.assign(lane.steps.size() + 1, 0);
  std::size_t first = 0;
  for (std::size_t i = 0; i < lane.steps.size(); ++i) {
    const ServedStep& step = lane.steps[i];
    while (first < requests.size() && left_queue_ns(*requests[first]) <= step.begin_ns) ++first;
    const bool waits =
        first < requests.size() && requests[first]->arrival_seen && requests[first]->arrival_ns <= step.begin_ns;
    if (waits) {
      lane.held[i] = hold_of(step, *requests[first], rules);
      time.waiting_ns += step.time_ns();
      if (lane.held[i] == kBlocks) time.waiting_blocks_ns += step.time_ns();
      if (lane.held[i] == kSequences) time.waiting_sequences_ns += step.time_ns();
      if (lane.held[i] == kPrefills) time.waiting_prefills_ns += step.time_ns();
    }
    for (std::size_t hold = 0; hold < kHolds; ++hold)
      lane.until[hold][i + 1] = lane.until[hold][i] + (lane.held[i] == hold ? step.time_ns() : 0);
  }
}

// Time with somebody in the system, and what of it lies between steps.
void measure_gaps(const std::vector<const RequestFigures*>& requests, const Lane& lane, EngineTime& time) {
  std::size_t step = 0;
  const auto close = [&](std::int64_t begin, std::int64_t end) {
    if (end <= begin) return;
    std::int64_t in_steps = 0;
    while (step < lane.steps.size() && lane.steps[step].end_ns <= begin) ++step;
    for (; step < lane.steps.size() && lane.steps[step].begin_ns < end; ++step) {
      in_steps += std::min(end, lane.steps[step].end_ns) - std::max(begin, lane.steps[step].begin_ns);
      if (lane.steps[step].end_ns > end) break;
    }
    time.in_system_ns += end - begin;
    time.between_ns += end - begin - in_steps;
  };
  std::int64_t begin = 0, end = INT64_MIN;
  for (const RequestFigures* request : requests) {
    if (request->arrival_ns > end) {
      if (end != INT64_MIN) close(begin, end);
      begin = request->arrival_ns, end = left_ns(*request);
    }
    end = std::max(end, left_ns(*request));
  }
  if (end != INT64_MIN) close(begin, end);
}

// What the prefix cache gave where its blocks were in use, and where they were not.
void measure_cache(const RequestFigures& request, const Lane& lane, EngineTime& time) {
  if (!request.cached_tokens || !request.scheduled_ns || request.prompt_tokens <= 0) return;
  const auto next = std::ranges::upper_bound(lane.steps, *request.scheduled_ns, {}, &ServedStep::begin_ns);
  const bool full =
      next != lane.steps.begin() && std::prev(next)->blocks > 0 &&
      static_cast<double>(std::prev(next)->blocks_used) >= kFull * static_cast<double>(std::prev(next)->blocks);
  (full ? time.full_requests : time.free_requests) += 1;
  (full ? time.full_prompt : time.free_prompt) += request.prompt_tokens;
  (full ? time.full_cached : time.free_cached) += *request.cached_tokens;
}

Engine engine_of(const Served& served, Requests& all) {
  Engine out;
  for (std::size_t i = 0; i < served.steps.size();) {
    std::size_t end = i;
    while (end < served.steps.size() && served.steps[end].process_id == served.steps[i].process_id) ++end;
    out.lanes[served.steps[i].process_id].steps = std::span(served.steps).subspan(i, end - i);
    i = end;
  }
  std::map<std::int64_t, std::vector<const RequestFigures*>> requests;
  for (const RequestFigures& request : all.all) requests[request.process_id].push_back(&request);
  for (auto& [process, lane] : out.lanes) {
    judge_steps(requests[process], served.rules, lane, all.engine_time);
    measure_gaps(requests[process], lane, all.engine_time);
    for (const RequestFigures* request : requests[process]) measure_cache(*request, lane, all.engine_time);
  }
  return out;
}

// A request's queue by what held it back; the step that was under way when it arrived holds it by what is in it.
template <class Each>
std::array<std::int64_t, kHolds> holds_of(const Lane& lane, std::int64_t from, std::int64_t to,
                                          const Each& each_partial) {
  std::array<std::int64_t, kHolds> out{};
  auto first = static_cast<std::size_t>(std::ranges::upper_bound(lane.steps, from, {}, &ServedStep::end_ns) -
                                        lane.steps.begin());
  const auto last = static_cast<std::size_t>(std::ranges::lower_bound(lane.steps, to, {}, &ServedStep::begin_ns) -
                                             lane.steps.begin());
  if (first < last && lane.steps[first].begin_ns < from) {
    const ServedStep& step = lane.steps[first];
    const Hold hold = step.prompt_tokens > 0 ? kPrefills : kStep;
    out[hold] += std::min(step.end_ns, to) - from;
    each_partial(step, hold, std::min(step.end_ns, to) - from);
    ++first;
  }
  if (first >= last) return out;
  for (std::size_t hold = 0; hold < kHolds; ++hold) out[hold] += lane.until[hold][last] - lane.until[hold][first];
  if (const std::int64_t beyond = lane.steps[last - 1].end_ns - to; beyond > 0) out[lane.held[last - 1]] -= beyond;
  return out;
}

// Steps by id, and the parts of prompts by step and by request.
class Prompts {
 public:
  explicit Prompts(const Served& served) : parts_(served.prompts) {
    for (const ServedStep& step : served.steps) steps_[step.id] = &step;
    for (std::size_t i = 0; i < parts_.size(); ++i) of_request_[parts_[i].request_id].push_back(i);
  }
  std::span<const PromptPart> of_step(std::int64_t step_id) const {
    const auto found = std::ranges::equal_range(parts_, step_id, {}, &PromptPart::step_id);
    return {found.begin(), found.end()};
  }
  struct Own {
    std::int64_t own_ns = 0, shared_ns = 0;
  };
  // Its parts of the steps until its first token, and what these steps took beside.
  Own own_of(const RequestFigures& request) const {
    Own out;
    const auto found = of_request_.find(request.id);
    if (found == of_request_.end()) return out;
    for (const std::size_t i : found->second) {
      const auto step = steps_.find(parts_[i].step_id);
      if (step == steps_.end() || step->second->process_id != request.process_id) continue;
      const std::int64_t begin = std::max(step->second->begin_ns, *request.scheduled_ns);
      const std::int64_t time = std::min(step->second->end_ns, *request.first_token_ns) - begin;
      if (time <= 0) continue;
      const std::int64_t own = std::min(time, parts_[i].time_ns);
      out.own_ns += own, out.shared_ns += time - own;
    }
    return out;
  }

 private:
  const std::vector<PromptPart>& parts_;
  std::unordered_map<std::int64_t, const ServedStep*> steps_;
  std::unordered_map<std::int64_t, std::vector<std::size_t>> of_request_;
};

struct PartName {
  const char* part;
  const char* meaning;
  std::int64_t SlowRequest::*ns;
  const char* words;  // of the sentence
};
constexpr std::array kParts = {
    PartName{"queued behind prompts", "while steps computed prompts of others", &SlowRequest::prefills_ns,
             "queueing behind prefills"},
    PartName{"queued for KV blocks", "while the KV cache had too few blocks", &SlowRequest::blocks_ns,
             "queueing for blocks of the KV cache"},
    PartName{"queued for a place", "while max_num_seqs requests ran", &SlowRequest::sequences_ns,
             "queueing for one of max_num_seqs places"},
    PartName{"queued for tokens", "while decodes took all of max_num_batched_tokens", &SlowRequest::budget_ns,
             "queueing behind decodes that take all of max_num_batched_tokens"},
    PartName{"queued for a step", "until the step under way, of decodes, had ended", &SlowRequest::step_ns,
             "waiting for the step under way"},
    PartName{"queued between steps", "no step was under way", &SlowRequest::between_ns,
             "queueing while no step was under way"},
    PartName{"queued, unknown", "what held it back is not recorded", &SlowRequest::other_ns,
             "queueing, for what is not recorded"},
    PartName{"own prompt", "its part of the steps with its prompt", &SlowRequest::own_ns,
             "the computation of its own prompt"},
    PartName{"others in its steps", "the rest of these steps: other requests, the engine", &SlowRequest::shared_ns,
             "others in the steps of its prompt"},
    PartName{"rest", "between its steps, and from the last of them to the token", &SlowRequest::rest_ns,
             "neither queueing nor its prompt's steps"},
};

SlowRequest split(const RequestFigures& request, const Lane* lane, const Prompts& prompts,
                  const std::array<std::int64_t, kHolds>& holds) {
  SlowRequest out{.name = request.name, .ttft_ns = *request.ttft_ns, .queue_ns = request.queue_ns.value_or(0)};
  out.prefills_ns = holds[kPrefills], out.blocks_ns = holds[kBlocks], out.sequences_ns = holds[kSequences];
  out.budget_ns = holds[kBudget], out.step_ns = holds[kStep], out.other_ns = holds[kOther];
  std::int64_t known = 0;
  for (const std::int64_t ns : holds) known += ns;
  (lane == nullptr ? out.other_ns : out.between_ns) += out.queue_ns - known;
  const Prompts::Own own = prompts.own_of(request);
  out.own_ns = own.own_ns, out.shared_ns = own.shared_ns;
  out.rest_ns = out.ttft_ns - out.queue_ns - own.own_ns - own.shared_ns;
  return out;
}

class Explained {
 public:
  Explained(const Served& served, const Engine& engine, const Requests& all)
      : served_(served), engine_(engine), all_(all), prompts_(served) {}

  std::optional<SlowTtft> explain() {
    std::vector<std::int64_t> ttfts;
    for (const RequestFigures& request : all_.all) {
      if (counts(request)) ttfts.push_back(*request.ttft_ns);
    }
    if (ttfts.empty()) return std::nullopt;
    const auto rank = static_cast<std::ptrdiff_t>(quantile_rank(std::ssize(ttfts), 0.99) - 1);
    std::ranges::nth_element(ttfts, ttfts.begin() + rank);
    out_.p99_ns = ttfts[static_cast<std::size_t>(rank)];
    for (const PartName& part : kParts) out_.parts.push_back({part.part, part.meaning});
    for (const RequestFigures& request : all_.all) {
      if (counts(request)) take(request);
    }
    finish();
    return std::move(out_);
  }

 private:
  static bool counts(const RequestFigures& request) {
    return !request.warm_up && request.ttft_ns && request.queue_ns && request.scheduled_ns;
  }

  void take(const RequestFigures& request) {
    const Lane* lane = engine_.lane_of(request);
    const bool slow = *request.ttft_ns >= out_.p99_ns;
    std::array<std::int64_t, kHolds> holds{};
    if (lane != nullptr) {
      holds = holds_of(*lane, request.arrival_ns, *request.scheduled_ns,
                       [&](const ServedStep& step, Hold hold, std::int64_t ns) {
                         if (slow && hold == kPrefills) blame(step, ns);
                       });
      if (slow) blame_steps(*lane, request.arrival_ns, *request.scheduled_ns);
    }
    SlowRequest one = split(request, lane, prompts_, holds);
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      out_.parts[i].all_ns += one.*kParts[i].ns;
      if (slow) out_.parts[i].ns += one.*kParts[i].ns;
    }
    out_.all_ns += one.ttft_ns;
    if (!slow) return;
    ++out_.requests;
    out_.total_ns += one.ttft_ns;
    out_.slowest.push_back(std::move(one));
  }

  void blame_steps(const Lane& lane, std::int64_t from, std::int64_t to) {
    auto at = std::ranges::lower_bound(lane.steps, from, {}, &ServedStep::begin_ns);
    for (; at != lane.steps.end() && at->begin_ns < to; ++at) {
      if (lane.held[static_cast<std::size_t>(at - lane.steps.begin())] == kPrefills)
        blame(*at, std::min(at->end_ns, to) - at->begin_ns);
    }
  }
  // By tokens of the prompts in the step.
  void blame(const ServedStep& step, std::int64_t ns) {
    for (const PromptPart& part : prompts_.of_step(step.id))
      blamed_[part.request_id] +=
          static_cast<double>(ns) * static_cast<double>(part.tokens) / static_cast<double>(step.prompt_tokens);
  }

  void finish() {
    constexpr std::size_t kMostBlamed = 100;
    for (TtftPart& part : out_.parts)
      part.share = out_.total_ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(out_.total_ns) : 0;
    for (const RequestFigures& request : all_.all) {
      const auto found = blamed_.find(request.id);
      if (found != blamed_.end())
        out_.blamed.push_back(
            {request.id, request.name, request.prompt_tokens, static_cast<std::int64_t>(found->second)});
    }
    std::ranges::stable_sort(out_.blamed, std::greater{}, &TtftBlame::ns);
    if (out_.blamed.size() > kMostBlamed) out_.blamed.resize(kMostBlamed);
    std::ranges::stable_sort(out_.slowest, std::greater{}, &SlowRequest::ttft_ns);
    out_.sentence = sentence();
    std::erase_if(out_.parts, [](const TtftPart& part) { return part.ns == 0 && part.all_ns == 0; });
    if (served_.rules)
      out_.rules = served_.rules->engine + (served_.rules->version.empty() ? "" : " " + served_.rules->version);
  }

  // "p99 TTFT 1.24 s is 81 % queueing behind prefills of 4,096 tokens or more (req-12, req-40)"
  std::string sentence() const {
    const auto most = std::ranges::max_element(out_.parts, {}, &TtftPart::ns);
    const auto place = static_cast<std::size_t>(most - out_.parts.begin());
    return fmt::format("p99 TTFT {} is {:.0f} % {}{}", base::human_ns(static_cast<double>(out_.p99_ns)),
                       100 * most->share, kParts[place].words,
                       kParts[place].ns == &SlowRequest::prefills_ns ? whose() : "");
  }

  // The fewest prompts that half of the wait was for.
  std::string whose() const {
    constexpr std::size_t kMostNamed = 2;
    double sum = 0, whole = 0;
    for (const auto& [request, ns] : blamed_) whole += ns;
    std::int64_t least = INT64_MAX;
    std::string names;
    std::size_t count = 0;
    for (const TtftBlame& each : out_.blamed) {
      if (sum >= 0.5 * whole) break;
      sum += static_cast<double>(each.ns), ++count;
      if (each.prompt_tokens > 0) least = std::min(least, each.prompt_tokens);
      if (count <= kMostNamed) names += (names.empty() ? "" : ", ") + base::printable(each.name);
    }
    if (count == 0) return "";
    if (count > kMostNamed) names += fmt::format(" and {} more", count - kMostNamed);
    return fmt::format("{} ({})", least == INT64_MAX ? "" : fmt::format(" of {} tokens or more", least), names);
  }

  const Served& served_;
  const Engine& engine_;
  const Requests& all_;
  Prompts prompts_;
  std::unordered_map<std::int64_t, double> blamed_;
  SlowTtft out_;
};

}  // namespace

void add_slow_ttft(const Served& served, Requests& all) {
  const Engine engine = engine_of(served, all);
  all.slow = Explained(served, engine, all).explain();
}

}  // namespace llmprof::analyze
