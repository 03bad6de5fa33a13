// A static batcher: takes what waits, up to max_num_seqs requests whose prompts and outputs fit into the cache,
// computes their prompts in one step padded to the longest, and decodes until the last of them ends. It starts with the
// requests that are there and does not wait for a full batch. Rows of requests that ended are computed until the batch
// ends.

#include <algorithm>
#include <deque>

#include "serving/continuous.h"

namespace llmprof::serving {
namespace {

class StaticBatcher final : public Scheduler {
 public:
  StaticBatcher(const EngineRules& rules, const Workload& workload, std::vector<Progress>& progress)
      : Scheduler(rules, workload, progress), waiting_(workload, rules.policy) {}

  void add(RequestIndex request) override {
    begin(request);
    waiting_.push(request);
  }

  bool schedule(Step& step) override {
    step.sampled.clear();
    step.started.clear();
    step.batch.chunks.clear();
    step.batch.contexts.clear();
    if (batch_.empty()) {
      start(step);
    } else {
      decode(step);
    }
    step.batch.sampled = static_cast<std::int64_t>(step.sampled.size());
    step.batch.new_requests = static_cast<std::int64_t>(step.started.size());
    step.running = running();
    step.waiting = waiting();
    step.blocks_used = pool_.used();
    return !step.sampled.empty();
  }

  void complete(const Step& step, std::vector<RequestIndex>& finished) override {
    for (const RequestIndex request : step.sampled) {
      if (++at(request).delivered < at(request).output) continue;
      finished.push_back(request);
      --left_;
    }
    if (left_ > 0) return;
    for (const RequestIndex request : batch_) {
      pool_.release_all(at(request).blocks);
      at(request).blocks = {};
      at(request).running = false;
    }
    batch_.clear();
  }

  std::int64_t running() const override { return static_cast<std::int64_t>(batch_.size()); }
  std::int64_t waiting() const override { return static_cast<std::int64_t>(waiting_.size()); }

 private:
  void start(Step& step) {
    std::int64_t longest = 0;
    while (!waiting_.empty() && running() < rules_.max_num_seqs) {
      const RequestIndex request = waiting_.front();
      Progress& progress = at(request);
      const std::int64_t rows = (running() + 1) * std::max<std::int64_t>(longest, progress.prompt);
      const bool within = rules_.max_num_batched_tokens == 0 || rows <= rules_.max_num_batched_tokens;
      if (!within && !batch_.empty()) break;
      if (!allocate(progress, std::int64_t{progress.prompt} + progress.output - 1)) break;
      waiting_.pop();
      longest = std::max<std::int64_t>(longest, progress.prompt);
      batch_.push_back(request);
      step.started.push_back(request);
      step.batch.chunks.push_back({progress.prompt, 0});
      progress.running = progress.admitted = true;
      take_token(request, step);
    }
    left_ = running();
    step.batch.launch = Launch::kEager;
    step.batch.padded_tokens = running() * longest;
  }

  void decode(Step& step) {
    for (const RequestIndex request : batch_) {
      const Progress& progress = at(request);
      if (progress.scheduled == progress.output) continue;
      step.batch.contexts.push_back(progress.known);
      take_token(request, step);
    }
    choose_launch(step.batch);
    step.batch.padded_tokens = std::max(step.batch.padded_tokens, running());
  }

  void take_token(RequestIndex request, Step& step) {
    Progress& progress = at(request);
    progress.computed = progress.known;
    ++progress.known;
    ++progress.scheduled;
    step.sampled.push_back(request);
  }

  WaitingQueue waiting_;
  std::vector<RequestIndex> batch_;
  std::int64_t left_ = 0;  // of the batch, requests that have not ended
};

}  // namespace

std::unique_ptr<Scheduler> Scheduler::make(const EngineRules& rules, const Workload& workload,
                                           std::vector<Progress>& progress) {
  if (rules.scheduler == SchedulerKind::kStatic) return std::make_unique<StaticBatcher>(rules, workload, progress);
  return std::make_unique<ContinuousScheduler>(rules, workload, progress);
}

}  // namespace llmprof::serving
