#pragma once
// What an engine puts into its next step. The rules are those of vLLM v1 (vllm/v1/core/sched/scheduler.py) and of a
// static batcher; EngineRules says which hold. Knows no time: simulate.h does. Not thread-safe.

#include <cstdint>
#include <memory>
#include <vector>

#include "serving/batch.h"
#include "serving/blocks.h"
#include "serving/engine.h"
#include "serving/workload.h"

namespace llmprof::serving {

using RequestIndex = std::uint32_t;

// A request inside the engine. Tokens whose step was scheduled count as computed and as known, as in vLLM with
// asynchronous scheduling: without it a step is always complete before the next is scheduled.
struct Progress {
  std::int32_t prompt = 0;
  std::int32_t output = 0;
  std::int32_t known = 0;       // prompt and outputs, those of scheduled steps included
  std::int32_t computed = 0;    // their keys and values are in blocks
  std::int32_t scheduled = 0;   // outputs of scheduled steps
  std::int32_t delivered = 0;   // outputs of complete steps
  std::int32_t remembered = 0;  // blocks that are findable or were found
  std::int32_t cached = 0;      // prompt tokens found at the first admission
  std::int32_t preemptions = 0;
  bool running = false, admitted = false;
  std::vector<BlockId> blocks;
};

struct Step {
  Batch batch;
  std::vector<RequestIndex> sampled;  // get a token when it is complete
  std::vector<RequestIndex> started;  // scheduled for the first time
  std::int64_t preempted = 0;         // requests, to make it possible
  std::int64_t running = 0, waiting = 0, blocks_used = 0;
};

enum class Rejection : std::uint8_t {
  kNone,
  kModelLength,  // prompt and output exceed max_model_len
  kBlocks,       // more tokens than the whole KV cache holds
  kBudget,       // without chunked prefill: more tokens than a step may have
};

// Requests of one engine. Progress of all requests is shared between the schedulers of replicas: a request belongs to
// one of them.
class Scheduler {
 public:
  static std::unique_ptr<Scheduler> make(const EngineRules& rules, const Workload& workload,
                                         std::vector<Progress>& progress);
  virtual ~Scheduler() = default;

  // Whether the engine could ever serve it.
  Rejection check(const Request& request) const;
  // A request that check() accepted arrives.
  virtual void add(RequestIndex request) = 0;
  // Fills `step`, reusing its memory; false: nothing can be scheduled before a step is complete or a request arrives.
  virtual bool schedule(Step& step) = 0;
  // The tokens of a step are there; requests that ended with it are appended to `finished`. In the order of schedule().
  virtual void complete(const Step& step, std::vector<RequestIndex>& finished) = 0;

  virtual std::int64_t running() const = 0;
  virtual std::int64_t waiting() const = 0;
  const BlockPool& pool() const { return pool_; }

 protected:
  Scheduler(const EngineRules& rules, const Workload& workload, std::vector<Progress>& progress);
  Progress& at(RequestIndex request) { return progress_[request]; }
  void begin(RequestIndex request);  // its Progress, as it arrives
  // Blocks for `tokens` in all; false: too few are free, none was taken.
  bool allocate(Progress& progress, std::int64_t tokens);
  std::int64_t blocks_for(std::int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  // Launch mode and padding of a batch whose tokens are there.
  void choose_launch(Batch& batch) const;

  EngineRules rules_;
  const Workload& workload_;
  std::vector<Progress>& progress_;
  BlockPool pool_;
  std::int64_t block_size_;
  std::vector<std::int32_t> padded_;  // by tokens, up to the largest graph
};

// What identifies the content of a request's block: equal for equal prompts, unique for what only it has.
std::uint64_t block_content(const Workload& workload, RequestIndex request, std::int64_t block,
                            std::int64_t block_size);

}  // namespace llmprof::serving
