#pragma once
// The engine of the server without its clock and its sockets: requests are added and aborted between steps, a step is
// what ContinuousScheduler (libs/serving, the one that predictions simulate) puts into it, and its tokens are handed
// to a listener. One thread. Announces its steps, their members and what becomes of requests (llmprof/annotate.h).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "serving/continuous.h"
#include "workload/generate.h"
#include "workload/serve/step_runner.h"

namespace llmprof::workload {

// What an engine is to generate.
struct GenerationRequest {
  std::uint64_t ticket = 0;  // by which the listener knows it
  std::string id;            // in profiles; no other request of this process has it
  std::vector<Token> prompt;
  std::int32_t most_tokens = 16;  // to be generated
  std::int32_t priority = 0;      // lower is served first, where the policy is priority
  Sampler sampler;
  std::vector<Token> stop;    // ends with the first of them
  std::int64_t arrival_ns = 0;  // CLOCK_MONOTONIC_RAW, as all times here
};

enum class Finish : std::uint8_t { kStop, kLength, kAborted, kFailed };

// Times of a request inside the engine; 0: not reached.
struct RequestTimes {
  std::int64_t arrival_ns = 0, queued_ns = 0, scheduled_ns = 0, first_token_ns = 0, last_token_ns = 0;
};

// One token of a request, or its end without one.
struct Delivery {
  std::uint64_t ticket = 0;
  std::optional<Token> token;
  std::optional<Finish> finish;
  std::int32_t cached_tokens = 0;  // of the prompt, found when it was first scheduled
};

// A request that ended.
struct Ended {
  Finish finish = Finish::kStop;
  std::int32_t prompt_tokens = 0, output_tokens = 0;
  RequestTimes times;
};

// A step that is complete. Members are in the order of its rows; `ids` and `members` live as long as the call.
struct StepReport {
  struct Member {
    const std::string* id;
    std::int32_t tokens, context;  // new ones; length afterwards
    bool sampled;
  };
  struct Arrival {
    std::string id;
    std::int32_t prompt_tokens, most_tokens, priority;
  };
  std::int64_t number = 0;
  std::int64_t scheduled_ns = 0, begin_ns = 0, end_ns = 0;  // scheduling began; the model's work
  const serving::Step& step;
  std::span<const Member> members;
  std::span<const Arrival> arrived;  // since the step before
  std::int64_t left = 0;  // requests, when it was complete
};

class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void scheduled(std::int32_t /*prompt_tokens*/, std::int32_t /*cached_tokens*/) {}  // for the first time
  virtual void token(std::int64_t /*since_last_ns*/, bool /*first*/, std::int32_t /*prompt_tokens*/) {}
  virtual void ended(const Ended& /*ended*/) {}
  virtual void step(const StepReport& /*report*/) {}
  virtual void deliver(std::span<const Delivery> /*deliveries*/) {}
};

class LiveEngine {
 public:
  // The rules say what a batch may have; max_model_len and num_gpu_blocks must be set. Steps are scheduled one at a
  // time: what a step samples is known before the next.
  LiveEngine(const serving::EngineRules& rules, StepRunner& runner, EngineListener& listener);

  // Whether such a request could ever be served. From any thread.
  serving::Rejection check(std::int64_t prompt_tokens, std::int64_t most_tokens) const;
  std::int64_t usable_blocks() const { return scheduler_.pool().usable(); }

  // A request that check() accepted.
  void add(GenerationRequest generation);
  void abort(std::uint64_t ticket);  // which may have ended already
  void abort_all();
  // Marks all as failed: of an engine whose step failed, which is of no more use.
  void fail_all();
  // Schedules a step, runs it and hands out its tokens; false: there is nothing to do.
  Result<bool> step();
  bool idle() const { return by_ticket_.empty(); }
  std::int64_t running() const { return scheduler_.running(); }
  std::int64_t waiting() const { return scheduler_.waiting(); }
  std::int64_t blocks_used() const { return scheduler_.pool().used(); }

 private:
  using Slot = serving::RequestIndex;
  struct Live {
    GenerationRequest generation;
    std::vector<Token> tokens;  // prompt and outputs
    std::uint64_t content = 0;  // of the last block that is described
    std::int32_t preemptions = 0;
    bool running = false;
    RequestTimes times;
  };

  serving::Request& request(Slot slot) { return workload_.requests[slot]; }
  Slot free_slot();
  void describe(Slot slot);
  void announce_changes();
  void fill_input();
  Result<void> run_model(StepReport& report);
  void take_tokens(std::int64_t now_ns);
  void end(Slot slot, Finish finish, std::int64_t now_ns);

  serving::EngineRules rules_;
  StepRunner& runner_;
  EngineListener& listener_;
  serving::Workload workload_;
  std::vector<serving::Progress> progress_;
  serving::ContinuousScheduler scheduler_;
  std::int64_t ids_per_request_;
  std::vector<Live> live_;  // by slot, as the requests of the workload and their progress
  std::vector<Slot> free_slots_;
  std::unordered_map<std::uint64_t, Slot> by_ticket_;
  std::vector<Slot> running_;  // as announced
  std::int64_t steps_ = 0;
  std::vector<StepReport::Arrival> arrived_;
  // Of the step under way:
  serving::Step step_;
  std::vector<Token> tokens_, next_;
  std::vector<NewTokens> sequences_;
  std::vector<const Sampler*> samplers_;
  std::vector<StepReport::Member> members_;
  std::vector<Slot> finished_;
  std::vector<Delivery> deliveries_;
};

}  // namespace llmprof::workload
