#pragma once
// vLLM v1's scheduler: no phases, a step takes from every request what brings its computed tokens up to those known.

#include <deque>
#include <utility>
#include <vector>

#include "serving/scheduler.h"

namespace llmprof::serving {

// Requests that wait: first come, first served, preempted ones in front; or by priority, then arrival.
class WaitingQueue {
 public:
  WaitingQueue(const Workload& workload, Policy policy) : workload_(workload), policy_(policy) {}
  bool empty() const { return requests_.empty(); }
  std::size_t size() const { return requests_.size(); }
  RequestIndex front() const { return requests_.front(); }
  void push(RequestIndex request);
  void push_preempted(RequestIndex request);
  void pop();
  void remove(RequestIndex request);

 private:
  bool later(RequestIndex a, RequestIndex b) const;
  const Workload& workload_;
  Policy policy_;
  std::deque<RequestIndex> requests_;  // a heap where the policy is priority
};

class ContinuousScheduler final : public Scheduler {
 public:
  ContinuousScheduler(const EngineRules& rules, const Workload& workload, std::vector<Progress>& progress);
  void add(RequestIndex request) override;
  bool schedule(Step& step) override;
  void complete(const Step& step, std::vector<RequestIndex>& finished) override;
  std::int64_t running() const override { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting() const override { return static_cast<std::int64_t>(waiting_.size()); }

  // What a live engine needs beside. Requests may be added to the workload while it runs; one that ended may be replaced
  // by another, if the workload describes outputs (otherwise blocks of the first could be taken for the other's).

  struct Member {
    RequestIndex request;
    std::int32_t tokens;  // new ones
  };
  // Of the step that schedule() made last, in the order of its rows.
  const std::vector<Member>& members() const { return picks_; }
  // Ends a request before its last token: it sampled a stop token, or nobody waits for it. Not while a step is under way.
  void remove(RequestIndex request);

 private:
  using Pick = Member;
  void schedule_running();
  void schedule_waiting(Step& step);
  bool admit(RequestIndex request, Step& step);
  bool make_blocks(RequestIndex request, std::int64_t tokens, std::size_t& index);
  std::size_t victim() const;  // place in running_
  void preempt(std::size_t place, std::size_t& index);
  void find_prefix(RequestIndex request);
  void remember_blocks(RequestIndex request, Progress& progress);
  void fill(Step& step);
  void release(Progress& progress);
  void retire(Progress& progress);

  std::vector<RequestIndex> running_;
  WaitingQueue waiting_;
  std::int64_t budget_ = 0, watermark_blocks_ = 0, preempted_ = 0;
  std::int64_t under_way_ = 0;                // steps that were scheduled and are not complete
  std::vector<Pick> picks_;                   // of the step that is being made
  std::vector<BlockId> found_;                // by find_prefix()
  std::vector<std::vector<BlockId>> spares_;  // memory of requests that ended
};

}  // namespace llmprof::serving
