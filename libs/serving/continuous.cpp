#include "serving/continuous.h"

#include <algorithm>
#include <tuple>

#include "base/assert.h"

namespace llmprof::serving {

bool WaitingQueue::later(RequestIndex a, RequestIndex b) const {
  const Request &left = workload_.requests[a], &right = workload_.requests[b];
  return std::tie(left.priority, left.arrival_ns, a) > std::tie(right.priority, right.arrival_ns, b);
}

void WaitingQueue::push(RequestIndex request) {
  requests_.push_back(request);
  if (policy_ == Policy::kPriority)
    std::push_heap(requests_.begin(), requests_.end(), [this](auto a, auto b) { return later(a, b); });
}

void WaitingQueue::push_preempted(RequestIndex request) {
  if (policy_ == Policy::kPriority) return push(request);
  requests_.push_front(request);
}

void WaitingQueue::pop() {
  if (policy_ == Policy::kFcfs) return requests_.pop_front();
  std::pop_heap(requests_.begin(), requests_.end(), [this](auto a, auto b) { return later(a, b); });
  requests_.pop_back();
}

void WaitingQueue::remove(RequestIndex request) {
  requests_.erase(std::find(requests_.begin(), requests_.end(), request));
  if (policy_ == Policy::kPriority)
    std::make_heap(requests_.begin(), requests_.end(), [this](auto a, auto b) { return later(a, b); });
}

ContinuousScheduler::ContinuousScheduler(const EngineRules& rules, const Workload& workload,
                                         std::vector<Progress>& progress)
    : Scheduler(rules, workload, progress), waiting_(workload, rules.policy) {
  watermark_blocks_ = static_cast<std::int64_t>(rules.watermark * static_cast<double>(rules.num_gpu_blocks));
}

void ContinuousScheduler::add(RequestIndex request) {
  begin(request);
  waiting_.push(request);
}

bool ContinuousScheduler::schedule(Step& step) {
  step.sampled.clear();
  step.started.clear();
  step.preempted = 0;
  do {
    picks_.clear();
    preempted_ = 0;
    budget_ = rules_.max_num_batched_tokens;
    schedule_running();
    if (preempted_ == 0) schedule_waiting(step);
    step.preempted += preempted_;
    // By priority the first running request may have to give way itself, which ends the step with nothing in it. vLLM
    // then schedules again at once, or, with a step under way, after its result.
  } while (picks_.empty() && preempted_ > 0 && under_way_ == 0);
  if (picks_.empty()) return false;
  fill(step);
  ++under_way_;
  return true;
}

void ContinuousScheduler::schedule_running() {
  const std::int64_t threshold = rules_.long_prefill_token_threshold;
  for (std::size_t index = 0; index < running_.size() && budget_ > 0; ++index) {
    const RequestIndex request = running_[index];
    Progress& progress = at(request);
    if (progress.scheduled == progress.output) continue;  // its last token is on its way
    std::int64_t tokens = progress.known - progress.computed;
    if (threshold > 0) tokens = std::min(tokens, threshold);
    tokens = std::min(tokens, budget_);
    if (!make_blocks(request, progress.computed + tokens, index)) return;
    picks_.push_back({request, static_cast<std::int32_t>(tokens)});
    budget_ -= tokens;
  }
}

// Preempts until the blocks are there; false: the request had to give way itself.
bool ContinuousScheduler::make_blocks(RequestIndex request, std::int64_t tokens, std::size_t& index) {
  while (!allocate(at(request), tokens)) {
    const std::size_t place = victim();
    const bool itself = running_[place] == request;
    preempt(place, index);
    if (itself) return false;
  }
  return true;
}

std::size_t ContinuousScheduler::victim() const {
  if (rules_.policy == Policy::kFcfs) return running_.size() - 1;
  const auto least_urgent = std::max_element(running_.begin(), running_.end(), [this](auto a, auto b) {
    const Request &left = workload_.requests[a], &right = workload_.requests[b];
    return std::tie(left.priority, left.arrival_ns) < std::tie(right.priority, right.arrival_ns);
  });
  return static_cast<std::size_t>(least_urgent - running_.begin());
}

void ContinuousScheduler::preempt(std::size_t place, std::size_t& index) {
  const RequestIndex request = running_[place];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  if (place < index) {  // it may be part of this step already: takes back its tokens
    --index;
    const auto pick = std::find_if(picks_.begin(), picks_.end(), [&](const Pick& p) { return p.request == request; });
    if (pick != picks_.end()) {
      budget_ += pick->tokens;
      picks_.erase(pick);
    }
  }
  Progress& progress = at(request);
  release(progress);
  progress.computed = 0;
  progress.running = false;
  ++progress.preemptions;
  ++preempted_;
  waiting_.push_preempted(request);
}

void ContinuousScheduler::schedule_waiting(Step& step) {
  while (!waiting_.empty() && budget_ > 0 && running() < rules_.max_num_seqs) {
    if (!admit(waiting_.front(), step)) return;
  }
}

// False: it does not fit now, and those behind it wait as well.
bool ContinuousScheduler::admit(RequestIndex request, Step& step) {
  if (pool_.free() == 0) return false;  // a whole prefix in the cache still needs a block for its last token
  Progress& progress = at(request);
  find_prefix(request);
  const auto found = static_cast<std::int64_t>(found_.size());
  std::int64_t tokens = progress.known - found * block_size_;
  if (const std::int64_t threshold = rules_.long_prefill_token_threshold; threshold > 0)
    tokens = std::min(tokens, threshold);
  if (!rules_.enable_chunked_prefill && tokens > budget_) return false;
  tokens = std::min(tokens, budget_);

  const std::int64_t reserved =
      rules_.scheduler_reserve_full_isl ? progress.known : std::int64_t{found * block_size_ + tokens};
  const auto unused =
      std::count_if(found_.begin(), found_.end(), [this](BlockId block) { return pool_.references(block) == 0; });
  const std::int64_t watermark = running_.empty() ? 0 : watermark_blocks_;
  if (blocks_for(reserved) - found + unused + watermark > pool_.free()) return false;

  if (progress.blocks.capacity() == 0 && !spares_.empty()) {
    progress.blocks = std::move(spares_.back());
    spares_.pop_back();
  }
  for (const BlockId block : found_) pool_.share(block);
  progress.blocks.assign(found_.begin(), found_.end());
  progress.remembered = static_cast<std::int32_t>(found);
  progress.computed = static_cast<std::int32_t>(found * block_size_);
  allocate(progress, progress.computed + tokens);
  if (!progress.admitted) {
    progress.admitted = true;
    progress.cached = progress.computed;
    step.started.push_back(request);
  }
  progress.running = true;
  waiting_.pop();
  running_.push_back(request);
  picks_.push_back({request, static_cast<std::int32_t>(tokens)});
  budget_ -= tokens;
  // Findable at once, as in vLLM: a request admitted behind this one shares what this step computes.
  progress.computed += static_cast<std::int32_t>(tokens);
  remember_blocks(request, progress);
  progress.computed -= static_cast<std::int32_t>(tokens);
  return true;
}

void ContinuousScheduler::find_prefix(RequestIndex request) {
  found_.clear();
  if (!rules_.enable_prefix_caching) return;
  // The last token is always computed: sampling needs its output.
  const std::int64_t most = (at(request).known - 1) / block_size_;
  for (std::int64_t i = 0; i < most; ++i) {
    const BlockId block = pool_.find(block_content(workload_, request, i, block_size_));
    if (block == kNoBlock) return;
    found_.push_back(block);
  }
}

void ContinuousScheduler::remember_blocks(RequestIndex request, Progress& progress) {
  if (!rules_.enable_prefix_caching) return;
  const auto full = static_cast<std::int32_t>(progress.computed / block_size_);
  for (; progress.remembered < full; ++progress.remembered) {
    pool_.remember(progress.blocks[static_cast<std::size_t>(progress.remembered)],
                   block_content(workload_, request, progress.remembered, block_size_));
  }
}

void ContinuousScheduler::fill(Step& step) {
  Batch& batch = step.batch;
  batch.chunks.clear();
  batch.contexts.clear();
  for (const auto& [request, tokens] : picks_) {
    Progress& progress = at(request);
    // Kernels tell a decode by its one new token, also where it is the last piece of a prompt.
    if (tokens == 1) {
      batch.contexts.push_back(progress.computed + 1);
    } else {
      batch.chunks.push_back({tokens, progress.computed});
    }
    progress.computed += tokens;
    if (progress.computed >= (std::int64_t{progress.remembered} + 1) * block_size_) remember_blocks(request, progress);
    if (progress.computed == progress.known) {
      step.sampled.push_back(request);
      ++progress.known;
      ++progress.scheduled;
    }
  }
  batch.sampled = static_cast<std::int64_t>(step.sampled.size());
  batch.new_requests = static_cast<std::int64_t>(step.started.size());
  choose_launch(batch);
  step.running = running();
  step.waiting = waiting();
  step.blocks_used = pool_.used();
}

void ContinuousScheduler::release(Progress& progress) {
  pool_.release_all(progress.blocks);
  progress.remembered = 0;
}

void ContinuousScheduler::retire(Progress& progress) {
  release(progress);
  if (progress.blocks.capacity() > 0) spares_.push_back(std::move(progress.blocks));
  progress.blocks = {};
}

void ContinuousScheduler::remove(RequestIndex request) {
  LLMPROF_ASSERT(under_way_ == 0);
  Progress& progress = at(request);
  if (progress.running) {
    progress.running = false;
    std::erase(running_, request);
  } else {
    waiting_.remove(request);
  }
  retire(progress);
}

void ContinuousScheduler::complete(const Step& step, std::vector<RequestIndex>& finished) {
  --under_way_;
  bool ended_running = false;
  for (const RequestIndex request : step.sampled) {
    Progress& progress = at(request);
    if (++progress.delivered < progress.output) continue;
    finished.push_back(request);
    if (progress.running) {
      progress.running = false;
      ended_running = true;
    } else {
      waiting_.remove(request);  // preempted while its last token was on its way
    }
    retire(progress);
  }
  if (ended_running) std::erase_if(running_, [this](RequestIndex request) { return !at(request).running; });
}

}  // namespace llmprof::serving
