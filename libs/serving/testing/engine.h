#pragma once
// A scheduler with a few requests, for tests: steps are complete as soon as they are scheduled.

#include <memory>
#include <vector>

#include "serving/scheduler.h"

namespace llmprof::serving {

// Blocks of 4 tokens, one more than `usable` of them (vLLM reserves one).
inline EngineRules small_rules(std::int64_t usable, std::int64_t budget = 64) {
  EngineRules rules;
  rules.engine = "vllm";
  rules.block_size = 4;
  rules.num_gpu_blocks = usable + 1;
  rules.max_num_batched_tokens = budget;
  rules.max_num_seqs = 8;
  rules.scheduler_reserve_full_isl = true;
  return rules;
}

inline Request request_of(std::int32_t prompt, std::int32_t output, std::int32_t priority = 0) {
  Request request;
  request.prompt_tokens = prompt;
  request.output_tokens = output;
  request.priority = priority;
  return request;
}

struct TestEngine {
  TestEngine(const EngineRules& rules, const std::vector<Request>& requests, std::vector<std::uint64_t> ids = {}) {
    workload.requests = requests;
    workload.content_ids = std::move(ids);
    workload.content_tokens = 4;
    for (std::size_t i = 0; i < requests.size(); ++i) workload.requests[i].arrival_ns = static_cast<double>(i);
    progress.resize(requests.size());
    scheduler = Scheduler::make(rules, workload, progress);
  }
  void add_all() {
    for (std::size_t i = 0; i < workload.requests.size(); ++i) scheduler->add(static_cast<RequestIndex>(i));
  }
  // Schedules a step and completes it; false: there was nothing to schedule.
  bool next() {
    finished.clear();
    if (!scheduler->schedule(step)) return false;
    scheduler->complete(step, finished);
    return true;
  }

  Workload workload;
  std::vector<Progress> progress;
  std::unique_ptr<Scheduler> scheduler;
  Step step;
  std::vector<RequestIndex> finished;
};

}  // namespace llmprof::serving
