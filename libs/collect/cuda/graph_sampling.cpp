#include "collect/cuda/graph_sampling.h"

#include "collect/futex.h"

namespace llmprof::collect {

// ---- GraphStreams -------------------------------------------------------------------------------------------------

// Held for moments, or while the driver answers about a stream. A thread that destroys a stream may hold what the
// driver needs for its answer, so nobody waits for ever: whoever does not get the lock says that nothing is certain.
class GraphStreams::Lock {
 public:
  explicit Lock(std::atomic<std::uint32_t>& word) : word_(word) {
    for (int i = 0; i < 100 && !held_; ++i) {
      held_ = word_.exchange(1, std::memory_order_acquire) == 0;
      if (!held_) futex_wait(word_, 1, 1);
    }
  }
  ~Lock() {
    if (!held_) return;
    word_.store(0, std::memory_order_release);
    futex_wake(word_);
  }
  explicit operator bool() const { return held_; }

 private:
  std::atomic<std::uint32_t>& word_;
  bool held_ = false;
};

void GraphStreams::launched(const Stream& stream) {
  const Lock lock(lock_);
  Entry* free = nullptr;
  if (lock) {
    for (Entry& entry : entries_) {
      if (entry.used && entry.stream == stream) {
        entry.busy = true;
        entry.marked = false;
        return;
      }
      if (!entry.used && free == nullptr) free = &entry;
    }
  }
  if (free != nullptr) {
    void* const event = free->stream.event;  // of a stream that is gone: it serves again
    *free = {stream, true, true, false};
    free->stream.event = event;
  } else {
    uncertain_.store(true, std::memory_order_relaxed);
  }
}

void GraphStreams::mark(const Stream& stream, void* (*put)(const Stream& stream)) {
  const Lock lock(lock_);
  if (!lock) return;
  for (Entry& entry : entries_) {
    if (!entry.used || !(entry.stream == stream)) continue;
    void* const event = put(entry.stream);
    entry.marked = event != nullptr;
    if (event != nullptr) entry.stream.event = event;
    return;
  }
}

void GraphStreams::destroyed(std::uint64_t handle) {
  const Lock lock(lock_);
  if (!lock) return uncertain_.store(true, std::memory_order_relaxed);
  for (Entry& entry : entries_) {
    if (!entry.used || entry.stream.handle != handle || entry.stream.place != 0) continue;
    if (entry.busy) uncertain_.store(true, std::memory_order_relaxed);
    entry.used = false;
  }
}

bool GraphStreams::all_idle(bool (*asks)(const Stream& stream, void* of), void* of) {
  if (is_uncertain()) return false;
  const Lock lock(lock_);
  if (!lock) return false;
  for (Entry& entry : entries_) {
    if (!entry.used || !entry.busy) continue;
    Stream stream = entry.stream;
    if (!entry.marked) stream.event = nullptr;
    if (!asks(stream, of)) return false;
    entry.busy = false;
  }
  return true;
}

void GraphStreams::all_ended() {
  const Lock lock(lock_);
  if (!lock) return;
  for (Entry& entry : entries_) entry.busy = false;
  uncertain_.store(false, std::memory_order_relaxed);
}

// ---- GraphSampling ------------------------------------------------------------------------------------------------

// One side counts itself and then looks whether kinds are switched, the other says that it switches and then looks who
// is inside, all in one order: one of the two sees the other.
void GraphSampling::enter() {
  constexpr int kLongestMs = 50;
  inside_.fetch_add(1);
  for (int i = 0; i < kLongestMs && switching_.load() != 0; ++i) futex_wait(switching_, 1, 1);
}

bool GraphSampling::begin_switch(std::uint32_t inside) {
  if (switching_.exchange(1) != 0) return false;
  if (inside_.load() <= inside) return true;
  switching_.store(0);
  futex_wake(switching_);
  return false;
}

void GraphSampling::switched() {
  switching_.store(0);
  futex_wake(switching_);
}

void GraphSampling::instantiation_begins() {
  constexpr int kLongestMs = 50;
  instantiating_.fetch_add(1);
  for (int i = 0; i < kLongestMs && switching_.load() != 0; ++i) futex_wait(switching_, 1, 1);
}

// Nobody instantiates while a sample is open: who wants to is here.
bool GraphSampling::may_close(Idle idle) {
  if (!is_open() || !begin_switch(0)) return false;
  if (is_open() && idle.ask(idle.of)) return true;
  switched();
  return false;
}

GraphSampling::Graph* GraphSampling::find(std::uint32_t id) {
  constexpr std::uint32_t kProbes = 16;
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    Graph& graph = graphs_[(id * 2654435761u + probe) % kGraphs];
    if (graph.id == 0) graph.id = id;
    if (graph.id == id) return &graph;
  }
  return nullptr;  // no room: as if it had been sampled
}

GraphSampling::Graph* GraphSampling::due(const Launch& launch) {
  Graph* graph = find(launch.graph);
  if (graph == nullptr) return nullptr;
  ++graph->launches;
  if (graph->launches > most_launches_.load(std::memory_order_relaxed))
    most_launches_.store(graph->launches, std::memory_order_relaxed);
  const std::uint32_t wanted = graph->samples == 0 ? kFirstLaunch : kSecondAfter;
  const bool enough = graph->samples == kSamplesPerGraph || samples_.load(std::memory_order_relaxed) == kMaxSamples;
  if (graph->launches < wanted || enough || why_not_.load(std::memory_order_relaxed) != nullptr) return nullptr;
  return launch.now_ns - first_ns_.load(std::memory_order_relaxed) < watch_first_ns_ ? nullptr : graph;
}

// A program whose graphs are always in flight is not asked at every launch.
bool GraphSampling::wants_to_know(const Graph* due_graph) {
  if (is_open()) return true;
  if (due_graph == nullptr || instantiating_.load() != 0) return false;
  return in_vain_ < kOften || launches_.load(std::memory_order_relaxed) % kRarely == 0;
}

// All is idle.
GraphSampling::Action GraphSampling::next(Graph* due_graph) {
  switch (state_.load(std::memory_order_relaxed)) {
    case State::kNormal:
      if (due_graph == nullptr) return Action::kNone;  // it was open, and closed for an instantiation
      if (idle_moments_++ < kSteady || instantiating_.load() != 0) return Action::kNone;
      due_graph->launches = 0;
      ++due_graph->samples;
      samples_.fetch_add(1, std::memory_order_relaxed);
      sampled_graph_ = due_graph->id;
      state_.store(State::kNodes, std::memory_order_relaxed);
      return Action::kOpen;
    case State::kNodes:
      silent_launches_ = 0;
      silence_is_over_ = false;
      state_.store(State::kNothing, std::memory_order_relaxed);
      return Action::kSilence;
    case State::kNothing:
      if (!silence_is_over_) return Action::kNone;
      closed();
      return Action::kClose;
  }
  return Action::kNone;
}

GraphSampling::Action GraphSampling::launch_begins(const Launch& launch, Idle idle) {
  if (deciding_.exchange(1, std::memory_order_acquire) != 0) return Action::kNone;  // another thread's launch decides
  if (launches_.fetch_add(1, std::memory_order_relaxed) == 0) first_ns_.store(launch.now_ns, std::memory_order_relaxed);
  last_ns_.store(launch.now_ns, std::memory_order_relaxed);
  Graph* due_graph = due(launch);
  Action action = Action::kNone;
  if (wants_to_know(due_graph) && begin_switch(1)) {
    const bool is_idle = idle.ask(idle.of);
    in_vain_.store(is_idle ? 0 : in_vain_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (is_idle) action = next(due_graph);
    if (action == Action::kNone) switched();
  }
  // The silence is for the sampled graph, unless it does not come.
  if (state_.load(std::memory_order_relaxed) == State::kNothing &&
      (launch.graph == sampled_graph_ || ++silent_launches_ == kPatience))
    silence_is_over_ = true;
  deciding_.store(0, std::memory_order_release);
  return action;
}

// Programs update a graph before every launch, and mostly with the same kernels: the first updates count.
void GraphSampling::changed(std::uint32_t id, bool for_certain) {
  constexpr std::uint32_t kUpdatesThatCount = 2;
  if (deciding_.exchange(1, std::memory_order_acquire) != 0) return;
  Graph* graph = find(id);
  if (graph != nullptr && (for_certain || graph->updates++ < kUpdatesThatCount)) {
    graph->samples = 0;
    graph->launches = 0;
  }
  deciding_.store(0, std::memory_order_release);
}

const char* GraphSampling::why_not() const {
  if (samples_.load(std::memory_order_relaxed) != 0) return nullptr;
  if (const char* why = why_not_.load(std::memory_order_relaxed)) return why;
  if (launches_ == 0) return nullptr;
  if (last_ns_ - first_ns_ < watch_first_ns_) return "all launches came within the time that is waited after the first";
  if (most_launches_ < kFirstLaunch + kSteady) return "no graph was launched often enough";
  return "the program did not wait for its graphs: one was always in flight when the next was launched";
}

}  // namespace llmprof::collect
