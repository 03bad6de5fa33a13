#include "collect/cuda/graph_sampling.h"

#include "collect/os.h"

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

GraphStreams::Entry* GraphStreams::find(const Stream& stream) {
  for (Entry& entry : entries_) {
    if (entry.used && !entry.gone && entry.stream == stream) return &entry;
  }
  return nullptr;
}

// What was found idle says nothing that could not be found out again.
GraphStreams::Entry* GraphStreams::room() {
  Entry* idle = nullptr;
  for (Entry& entry : entries_) {
    if (!entry.used) return &entry;
    if (!entry.busy) idle = &entry;
  }
  return idle;
}

void GraphStreams::launched(const Stream& stream, void* (*context_of)(const Stream& stream)) {
  const Lock lock(lock_);
  Entry* entry = lock ? find(stream) : nullptr;
  if (lock && entry == nullptr && (entry = room()) != nullptr) {
    const Entry before = *entry;
    *entry = {stream};
    entry->stream.context = context_of(stream);
    if (before.event_context == entry->stream.context) {  // its event serves again
      entry->stream.event = before.stream.event;
      entry->event_context = before.event_context;
    }
  }
  if (entry == nullptr) return uncertain_.store(true, std::memory_order_relaxed);
  entry->used = entry->busy = true;
  entry->marked = false;
}

void GraphStreams::mark(const Stream& stream, void* (*put)(const Stream& stream)) {
  const Lock lock(lock_);
  Entry* entry = lock ? find(stream) : nullptr;
  if (entry == nullptr) return;
  void* const event = put(entry->stream);
  entry->marked = event != nullptr;
  if (event == nullptr) return;
  entry->stream.event = event;
  entry->event_context = entry->stream.context;
}

void GraphStreams::destroyed(std::uint64_t handle) {
  const Lock lock(lock_);
  if (!lock) return uncertain_.store(true, std::memory_order_relaxed);
  for (Entry& entry : entries_) {
    if (!entry.used || entry.gone || entry.stream.is_default || entry.stream.handle != handle) continue;
    entry.gone = true;
    if (!entry.busy) {
      entry.used = false;
    } else if (!entry.marked) {
      entry.used = false;
      uncertain_.store(true, std::memory_order_relaxed);
    }
  }
}

void GraphStreams::context_destroyed(const void* context) {
  const Lock lock(lock_);
  if (!lock) return uncertain_.store(true, std::memory_order_relaxed);
  for (Entry& entry : entries_) {
    const bool of_it = entry.stream.context == context || entry.event_context == context;
    if (!of_it) continue;
    if (entry.used && entry.busy) uncertain_.store(true, std::memory_order_relaxed);
    entry = {};
  }
}

bool GraphStreams::all_idle(bool (*asks)(const Stream& stream, void* of), void* of) {
  if (is_uncertain()) return false;
  const Lock lock(lock_);
  if (!lock || is_uncertain()) return false;
  for (Entry& entry : entries_) {
    if (!entry.used || !entry.busy) continue;
    Stream stream = entry.stream;
    if (!entry.marked) stream.event = nullptr;
    if (!asks(stream, of)) return false;
    entry.busy = false;
    if (entry.gone) entry.used = false;
  }
  return true;
}

// ---- GraphSampling ------------------------------------------------------------------------------------------------

// A ticket is even; odd: it is committed, and kinds are being switched.
namespace {
constexpr std::uint32_t kCommitted = 1;
}

// One side counts itself and then looks whether kinds are switched, the other says that it switches and then looks who
// is inside, all in one order: one of the two sees the other.
std::uint32_t GraphSampling::begin_switch(std::uint32_t inside) {
  const std::uint32_t ticket = (tickets_.fetch_add(1, std::memory_order_relaxed) + 1) << 1;
  std::uint32_t nobody = 0;
  if (ticket == 0 || !switching_.compare_exchange_strong(nobody, ticket)) return 0;
  if (inside_.load() <= inside && in_driver_.load() == 0 && holds_.load() == 0) return ticket;
  end_switch(ticket);
  return 0;
}

bool GraphSampling::commit(std::uint32_t ticket) {
  return switching_.compare_exchange_strong(ticket, ticket | kCommitted);
}

void GraphSampling::end_switch(std::uint32_t ticket) {
  std::uint32_t committed = ticket | kCommitted;
  if (!switching_.compare_exchange_strong(ticket, 0) && !switching_.compare_exchange_strong(committed, 0)) return;
  futex_wake(switching_);
}

// Who only asks is called off when it takes long: streams may have to wait for a lock of the driver that our caller
// holds. What has begun is waited for: it is two or five calls of CUPTI.
void GraphSampling::await_switch() {
  constexpr int kAskingMs = 5, kSwitchingMs = 2000;
  for (int ms = 0; ms < kSwitchingMs; ++ms) {
    std::uint32_t now = switching_.load();
    if (now == 0) return;
    if ((now & kCommitted) == 0 && ms >= kAskingMs) {
      if (switching_.compare_exchange_strong(now, 0)) return futex_wake(switching_);
      continue;
    }
    futex_wait(switching_, now, 1);
  }
  give_up("CUPTI took too long to switch what it records");
}

void GraphSampling::enter() {
  for (std::uint32_t ms = 0, waits; ms < kDrainMs && (waits = draining_.load()) != 0; ++ms) {
    futex_wait(draining_, waits, 1);
  }
  inside_.fetch_add(1);
  await_switch();
}

bool GraphSampling::hold() {
  holds_.fetch_add(1);
  if (switching_.load() == 0 && (!is_open() || is_settled())) return true;
  holds_.fetch_sub(1);
  return false;
}

// ---- instantiations -----------------------------------------------------------------------------------------------

bool GraphSampling::close_if_idle(const Hands& hands) {
  const std::uint32_t ticket = begin_switch(0);
  if (ticket == 0) return false;
  bool closes = is_open() && hands.is_idle(hands.of);
  if (closes) {
    hands.prepare(Action::kClose, hands.of);
    closes = commit(ticket);
  }
  if (closes) {
    hands.act(Action::kClose, hands.of);
    state_.store(State::kNormal, std::memory_order_relaxed);
  }
  end_switch(ticket);
  return closes;
}

void GraphSampling::drain(const Hands& hands) {
  draining_.fetch_add(1);
  for (std::uint32_t ms = 0; ms < kDrainMs && is_open() && !close_if_idle(hands); ++ms) {
    pause_ms(1);
  }
  draining_.fetch_sub(1);
  futex_wake(draining_);
}

// From in_driver_ on nobody switches: what is on now is on while the graph is made.
void GraphSampling::instantiation_begins(const Hands* hands) {
  instantiating_.fetch_add(1);
  if (hands != nullptr && is_open() && !stays_open()) drain(*hands);
  in_driver_.fetch_add(1);
  await_switch();
  if (is_open()) stays_open_.store(true, std::memory_order_relaxed);
}

void GraphSampling::instantiation_ended() {
  in_driver_.fetch_sub(1);
  instantiating_.fetch_sub(1);
}

void GraphSampling::capture_begins(const Hands& hands) {
  instantiating_.fetch_add(1);
  if (is_open() && !stays_open()) drain(hands);
  in_driver_.fetch_add(1);
  await_switch();
  captures_.fetch_add(1);
}

// The end of one that failed may be told twice.
void GraphSampling::capture_ended() {
  std::uint32_t open = captures_.load();
  while (open > 0 && !captures_.compare_exchange_weak(open, open - 1)) {
  }
  if (open > 0) instantiation_ended();
}

// ---- launches -----------------------------------------------------------------------------------------------------

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
  if (is_open()) return !is_settled();
  if (due_graph == nullptr || instantiating_.load() != 0) return false;
  return in_vain_ < kOften || launches_.load(std::memory_order_relaxed) % kRarely == 0;
}

// All is idle.
GraphSampling::Action GraphSampling::next(const Graph* due_graph) {
  switch (state_.load(std::memory_order_relaxed)) {
    case State::kNormal:
      if (due_graph == nullptr) return Action::kNone;  // it was open, and closed by others
      return idle_moments_++ < kSteady || instantiating_.load() != 0 ? Action::kNone : Action::kOpen;
    case State::kNodes:
      return stays_open() ? Action::kNone : Action::kSilence;
    case State::kNothing:
      if (stays_open()) return Action::kResume;
      return silence_is_over_ ? Action::kClose : Action::kNone;
  }
  return Action::kNone;
}

void GraphSampling::became(Action action, Graph* due_graph) {
  switch (action) {
    case Action::kNone:
      return;
    case Action::kOpen:
      due_graph->launches = 0;
      ++due_graph->samples;
      samples_.fetch_add(1, std::memory_order_relaxed);
      sampled_graph_ = due_graph->id;
      return state_.store(State::kNodes, std::memory_order_relaxed);
    case Action::kSilence:
      silent_launches_ = 0;
      silence_is_over_ = false;
      return state_.store(State::kNothing, std::memory_order_relaxed);
    case Action::kClose:
      return state_.store(State::kNormal, std::memory_order_relaxed);
    case Action::kResume:
      return state_.store(State::kNodes, std::memory_order_relaxed);
  }
}

GraphSampling::Action GraphSampling::switch_if_idle(Graph* due_graph, const Hands& hands) {
  const std::uint32_t ticket = begin_switch(1);
  if (ticket == 0) return Action::kNone;
  const bool is_idle = hands.is_idle(hands.of);
  in_vain_.store(is_idle ? 0 : in_vain_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  Action action = is_idle ? next(due_graph) : Action::kNone;
  if (action != Action::kNone) hands.prepare(action, hands.of);
  if (action != Action::kNone && commit(ticket)) {
    hands.act(action, hands.of);
    became(action, due_graph);
  } else {
    action = Action::kNone;
  }
  end_switch(ticket);
  return action;
}

GraphSampling::Action GraphSampling::launch_begins(const Launch& launch, const Hands& hands) {
  if (deciding_.exchange(1, std::memory_order_acquire) != 0) return Action::kNone;  // another thread's launch decides
  if (launches_.fetch_add(1, std::memory_order_relaxed) == 0) first_ns_.store(launch.now_ns, std::memory_order_relaxed);
  last_ns_.store(launch.now_ns, std::memory_order_relaxed);
  Graph* due_graph = due(launch);
  const Action action = wants_to_know(due_graph) ? switch_if_idle(due_graph, hands) : Action::kNone;
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
