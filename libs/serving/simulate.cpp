#include "serving/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/errors.h"

namespace llmprof::serving {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A scheduler with what arrived for it, and its part of the steps under way.
struct Rank {
  std::unique_ptr<Scheduler> scheduler;
  std::vector<RequestIndex> arrived;  // since the host last looked
  std::array<Step, 2> steps;
  std::array<bool, 2> in_step{};
  std::int32_t number = 0;
};

// Ranks that step together: one, or all of them in lockstep. Steps under way are a ring of two at most.
struct Replica {
  std::vector<Rank> ranks;
  std::array<double, 2> end_ns{};
  std::size_t oldest = 0, under_way = 0;
  double device_free_ns = 0;
  double next_ns = kNever;    // when the host acts again
  bool takes_result = false;  // it then takes the result of the oldest step
};

// Ranks that exchange tokens run the same kind of launch, the least of them, and graphs of the same size
// (vllm/v1/worker/dp_utils.py): a prompt on one rank takes the graphs from all.
void agree(Replica& replica, std::size_t slot) {
  Launch least = Launch::kGraph;
  std::int64_t most = 0;
  for (Rank& rank : replica.ranks) {
    if (!rank.in_step[slot]) continue;
    least = std::min(least, rank.steps[slot].batch.launch);
    most = std::max(most, rank.steps[slot].batch.padded_tokens);
  }
  for (Rank& rank : replica.ranks) {
    if (!rank.in_step[slot]) continue;
    Batch& batch = rank.steps[slot].batch;
    if (least != Launch::kEager) {
      batch.padded_tokens = most;
    } else if (batch.launch != Launch::kEager) {
      batch.padded_tokens = batch.tokens();
    }
    batch.launch = least;
  }
}

class Simulator {
 public:
  Simulator(const EngineRules& rules, const Workload& workload, StepCost& cost, const SimulateOptions& options)
      : workload_(workload), cost_(cost), options_(options), depth_(rules.async_scheduling ? 2 : 1) {
    progress_.resize(workload.requests.size());
    last_token_ns_.resize(workload.requests.size(), 0);
    out_.requests.resize(workload.requests.size());
    const auto ranks = static_cast<std::size_t>(options.replicas);
    replicas_.resize(options.lockstep ? 1 : ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      Rank& rank = replicas_[i % replicas_.size()].ranks.emplace_back();
      rank.scheduler = Scheduler::make(rules, workload, progress_);
      rank.number = static_cast<std::int32_t>(i);
    }
    out_.blocks_usable = replicas_.front().ranks.front().scheduler->pool().usable();
  }

  Result<Simulation> run() {
    const bool closed = workload_.concurrency > 0;
    const std::size_t count = workload_.requests.size();
    if (closed) {
      for (std::int64_t i = 0; i < workload_.concurrency; ++i) send_next(0);
    }
    for (;;) {
      const auto next = std::min_element(replicas_.begin(), replicas_.end(),
                                         [](const Replica& a, const Replica& b) { return a.next_ns < b.next_ns; });
      if (!closed && sent_ < count && workload_.requests[sent_].arrival_ns <= next->next_ns) {
        send_next(workload_.requests[sent_].arrival_ns);
        continue;
      }
      if (next->next_ns == kNever) break;
      LLMPROF_TRY(act(*next));
    }
    return finish();
  }

 private:
  // Sends requests until one is accepted: in a closed loop, a rejected one is answered at once.
  void send_next(double now_ns) {
    while (sent_ < workload_.requests.size()) {
      const bool accepted = send(static_cast<RequestIndex>(sent_++), now_ns);
      if (accepted || workload_.concurrency == 0) return;
    }
  }

  bool send(RequestIndex request, double now_ns) {
    const Request& asked = workload_.requests[request];
    RequestResult& result = out_.requests[request];
    result.arrival_ns = now_ns;
    result.queued_ns = result.scheduled_ns = result.first_token_ns = result.last_token_ns = kUnknown;
    result.prompt_tokens = asked.prompt_tokens;
    result.output_tokens = asked.output_tokens;
    const auto [replica, rank] = route();
    result.rejection = rank->scheduler->check(asked);
    ++out_.rejected[static_cast<std::size_t>(result.rejection)];
    if (result.rejection != Rejection::kNone) return false;
    result.replica = rank->number;
    rank->arrived.push_back(request);
    if (replica->next_ns == kNever) replica->next_ns = now_ns;
    return true;
  }

  std::pair<Replica*, Rank*> route() {
    const auto turn = static_cast<std::int32_t>(sent_ % static_cast<std::size_t>(options_.replicas));
    std::pair<Replica*, Rank*> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (Replica& replica : replicas_) {
      for (Rank& rank : replica.ranks) {
        const auto waiting = static_cast<std::int64_t>(rank.arrived.size()) + rank.scheduler->waiting();
        std::int64_t load = 4 * waiting + rank.scheduler->running();
        if (options_.routing == Routing::kRoundRobin) load = rank.number == turn ? 0 : 1;
        if (load >= least) continue;
        least = load;
        best = {&replica, &rank};
      }
    }
    return best;
  }

  // What the host of a replica does when it is free: takes a result if one is due, takes requests, schedules.
  Result<void> act(Replica& replica) {
    const double now = replica.next_ns;
    if (replica.takes_result) take_result(replica, now);
    for (Rank& rank : replica.ranks) {
      for (const RequestIndex request : rank.arrived) {
        out_.requests[request].queued_ns = now;
        rank.scheduler->add(request);
      }
      rank.arrived.clear();
    }
    double host_free_ns = now;
    if (replica.under_way < depth_) {
      const std::size_t slot = (replica.oldest + replica.under_way) % replica.end_ns.size();
      bool any = false;
      for (Rank& rank : replica.ranks) any |= rank.in_step[slot] = rank.scheduler->schedule(rank.steps[slot]);
      if (any) {
        LLMPROF_LET(host_free_ns, launch(replica, slot, now));
        ++replica.under_way;
        if (replica.under_way < depth_ && replica.end_ns[replica.oldest] > host_free_ns) {
          replica.next_ns = host_free_ns;
          replica.takes_result = false;
          return {};
        }
      }
    }
    replica.takes_result = replica.under_way > 0;
    replica.next_ns = replica.under_way > 0 ? std::max(host_free_ns, replica.end_ns[replica.oldest]) : kNever;
    return {};
  }

  // Prices the step of every rank; all end with the slowest. Returns when the host is free again.
  Result<double> launch(Replica& replica, std::size_t slot, double now) {
    if (replica.ranks.size() > 1) agree(replica, slot);
    StepTime longest;
    for (const Rank& rank : replica.ranks) {
      if (!rank.in_step[slot]) continue;
      const Step& step = rank.steps[slot];
      const StepTime time = cost_.of(step.batch);
      const bool sane = time.device_ns >= 0 && time.host_ns >= 0 && time.device_ns + time.host_ns > 0;
      if (!sane || !std::isfinite(time.device_ns + time.host_ns))
        return Error{ErrorCode::kInternal,
                     fmt::format("a step of {} tokens was said to take {} ns on the device and {} ns on the host",
                                 step.batch.tokens(), time.device_ns, time.host_ns),
                     ""};
      longest.device_ns = std::max(longest.device_ns, time.device_ns);
      longest.host_ns = std::max(longest.host_ns, time.host_ns);
      busy_ns_ += time.device_ns;
      block_ns_ += time.device_ns * static_cast<double>(step.blocks_used);
    }
    const double ready_ns = now + longest.host_ns;
    const double begin_ns = std::max(ready_ns, replica.device_free_ns);
    replica.end_ns[slot] = replica.device_free_ns = begin_ns + longest.device_ns;
    for (const Rank& rank : replica.ranks) {
      if (!rank.in_step[slot]) continue;
      for (const RequestIndex request : rank.steps[slot].started) out_.requests[request].scheduled_ns = now;
      if (++out_.step_count > options_.most_steps)
        return usage_error("the simulation was stopped after {} steps", options_.most_steps);
      count_step(rank, rank.steps[slot], begin_ns, longest);
    }
    return ready_ns;
  }

  void count_step(const Rank& rank, const Step& step, double begin_ns, const StepTime& time) {
    const Batch& batch = step.batch;
    if (options_.on_step) options_.on_step({rank.number, begin_ns, time.device_ns, batch});
    out_.graph_steps += batch.launch == Launch::kGraph ? 1 : 0;
    out_.piecewise_steps += batch.launch == Launch::kPiecewise ? 1 : 0;
    out_.eager_steps += batch.launch == Launch::kEager ? 1 : 0;
    out_.blocks_used_peak = std::max(out_.blocks_used_peak, step.blocks_used);
    if (options_.most_step_records == 0 || (out_.step_count - 1) % out_.step_stride != 0) return;
    if (out_.steps.size() == options_.most_step_records) thin_out();
    if ((out_.step_count - 1) % out_.step_stride != 0) return;
    const auto small = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    out_.steps.push_back({begin_ns, time.device_ns, time.host_ns, step.blocks_used, small(batch.tokens()),
                          small(batch.padded_tokens), static_cast<std::int32_t>(batch.chunks.size()),
                          static_cast<std::int32_t>(batch.contexts.size()), small(step.running), small(step.waiting),
                          small(step.preempted), rank.number, batch.launch});
  }

  void thin_out() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out_.steps.size(); i += 2) out_.steps[kept++] = out_.steps[i];
    out_.steps.resize(kept);
    out_.step_stride *= 2;
  }

  void take_result(Replica& replica, double now) {
    const std::size_t slot = replica.oldest;
    replica.oldest = (slot + 1) % replica.end_ns.size();
    --replica.under_way;
    for (Rank& rank : replica.ranks) {
      if (rank.in_step[slot]) take_tokens(rank, rank.steps[slot], now);
    }
  }

  void take_tokens(Rank& rank, const Step& step, double now) {
    for (const RequestIndex request : step.sampled) {
      double& last_ns = last_token_ns_[request];
      if (progress_[request].delivered == 0) {
        out_.requests[request].first_token_ns = now;
      } else {
        out_.itl_ns.add(now - last_ns);
      }
      last_ns = now;
    }
    finished_.clear();
    rank.scheduler->complete(step, finished_);
    for (const RequestIndex request : finished_) {
      RequestResult& result = out_.requests[request];
      result.last_token_ns = now;
      result.cached_tokens = progress_[request].cached;
      result.preemptions = progress_[request].preemptions;
      out_.preemptions += result.preemptions;
      if (workload_.concurrency > 0) send_next(now);
    }
  }

  Result<Simulation> finish() {
    out_.device_busy_ns = busy_ns_;
    out_.blocks_used_mean = busy_ns_ > 0 ? block_ns_ / busy_ns_ : 0;
    out_.rejected[0] = 0;
    out_.begin_ns = kNever;
    for (std::size_t i = 0; i < sent_; ++i) {
      const RequestResult& result = out_.requests[i];
      if (result.rejection != Rejection::kNone) continue;
      if (std::isnan(result.last_token_ns))
        return Error{ErrorCode::kInternal, fmt::format("request {} was never served to its end", i), ""};
      out_.begin_ns = std::min(out_.begin_ns, result.arrival_ns);
      out_.end_ns = std::max(out_.end_ns, result.last_token_ns);
    }
    if (out_.begin_ns == kNever) out_.begin_ns = 0;
    return std::move(out_);
  }

  const Workload& workload_;
  StepCost& cost_;
  SimulateOptions options_;
  std::size_t depth_;
  std::vector<Progress> progress_;
  std::vector<double> last_token_ns_;
  std::vector<Replica> replicas_;
  std::vector<RequestIndex> finished_;
  std::size_t sent_ = 0;
  double busy_ns_ = 0, block_ns_ = 0;
  Simulation out_;
};

}  // namespace

Result<Simulation> simulate(const EngineRules& rules, const Workload& workload, StepCost& cost,
                            const SimulateOptions& options) {
  LLMPROF_TRY(check_rules(rules));
  if (rules.num_gpu_blocks < 2)
    return Error{ErrorCode::kUsage, "the number of KV blocks is not known",
                 "set num_gpu_blocks=N, or give the memory of the device and of the model"};
  if (options.replicas < 1 || options.replicas > 4096)
    return usage_error("{} replicas: between 1 and 4096 can be simulated", options.replicas);
  if (workload.requests.empty()) return usage_error("the workload has no requests");
  return Simulator(rules, workload, cost, options).run();
}

std::string_view reason_text(Rejection rejection) {
  switch (rejection) {
    case Rejection::kNone:
      return "served";
    case Rejection::kModelLength:
      return "prompt and output are longer than max_model_len";
    case Rejection::kBlocks:
      return "prompt and output need more KV blocks than there are";
    case Rejection::kBudget:
      return "longer than max_num_batched_tokens, without chunked prefill";
  }
  return "";
}

}  // namespace llmprof::serving
