#include "collect/cuda/graph_sampling.h"

namespace llmprof::collect {

bool GraphSampling::owns(const Launch& launch) {
  std::uint32_t owner = 0;
  if (owner_.compare_exchange_strong(owner, launch.thread, std::memory_order_relaxed)) {
    stream_.store(launch.stream, std::memory_order_relaxed);
    first_ns_ = launch.now_ns;
    return true;
  }
  if (owner != launch.thread) give_up("several threads launch graphs");
  if (launch.stream != stream_.load(std::memory_order_relaxed)) give_up("graphs are launched on several streams");
  return owner == launch.thread;
}

// What others launched, or on another stream, is known to have ended only when all was waited for.
bool GraphSampling::is_idle() const {
  const std::uint64_t last_ns = last_end_ns_.load(std::memory_order_relaxed);
  if (waited_for_all_ns_.load(std::memory_order_relaxed) >= last_ns) return true;
  return why_not() == nullptr && waited_ns_.load(std::memory_order_relaxed) >= last_ns;
}

void GraphSampling::waited(std::uint64_t stream, bool for_all, std::uint64_t begin_ns) {
  if (for_all) waited_for_all_ns_.store(begin_ns, std::memory_order_relaxed);
  if (stream == stream_.load(std::memory_order_relaxed)) waited_ns_.store(begin_ns, std::memory_order_relaxed);
}

void GraphSampling::instantiation_begins(std::uint32_t thread) {
  instantiating_.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
  if (owner != 0 && owner != thread) give_up("several threads make graphs");
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

bool GraphSampling::is_due(const Launch& launch) {
  Graph* graph = find(launch.graph);
  if (graph == nullptr) return false;
  ++graph->launches;
  const std::uint32_t wanted = graph->samples == 0 ? kFirstLaunch : kSecondAfter;
  const bool early = launch.now_ns - first_ns_ < watch_first_ns_ || steady_ <= kSteady;
  if (early || graph->launches < wanted || graph->samples == kSamplesPerGraph || samples_ == kMaxSamples) return false;
  if (instantiating_.load(std::memory_order_relaxed) != 0) return false;
  graph->launches = 0;
  ++graph->samples;
  ++samples_;
  return true;
}

GraphSampling::Action GraphSampling::next(const Launch& launch) {
  const bool is_sampled = launch.graph == sampled_graph_;
  switch (state_.load(std::memory_order_relaxed)) {
    case State::kNormal:
      if (why_not() != nullptr || !is_due(launch)) return Action::kNone;
      sampled_graph_ = launch.graph;
      state_.store(State::kNodes, std::memory_order_relaxed);
      return Action::kOpen;
    case State::kNodes:
      silent_launches_ = is_sampled ? kPatience : 1;
      state_.store(State::kNothing, std::memory_order_relaxed);
      return Action::kSilence;
    case State::kNothing:  // until the sampled graph was launched, for a while
      if (silent_launches_ < kPatience) {
        silent_launches_ = is_sampled ? kPatience : silent_launches_ + 1;
        return Action::kNone;
      }
      closed();
      return Action::kClose;
  }
  return Action::kNone;
}

GraphSampling::Action GraphSampling::launch_begins(const Launch& launch) {
  if (!owns(launch)) return Action::kNone;
  if (!is_idle()) {
    steady_ = 0;
    return Action::kNone;
  }
  ++steady_;
  return next(launch);
}

}  // namespace llmprof::collect
