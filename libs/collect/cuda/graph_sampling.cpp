#include "collect/cuda/graph_sampling.h"

namespace llmprof::collect {

GraphSampling::Graph* GraphSampling::find(std::uint32_t id) {
  constexpr std::uint32_t kProbes = 16;
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    Graph& graph = graphs_[(id * 2654435761u + probe) % kGraphs];
    if (graph.id == 0) graph.id = id;
    if (graph.id == id) return &graph;
  }
  return nullptr;  // as if it had been sampled
}

// The second and later launches: the first of a graph uploads it.
bool GraphSampling::is_due(Graph* graph) {
  ++graph->launches;
  if (graph->samples == 0) return graph->launches >= 3;
  return graph->samples < kSamplesPerGraph && graph->launches >= kSecondAfter;
}

GraphSampling::Action GraphSampling::launch_begins(const Launch& launch) {
  std::uint32_t first = 0;
  if (thread_.compare_exchange_strong(first, launch.thread, std::memory_order_relaxed)) {
    stream_.store(launch.stream, std::memory_order_relaxed);
  } else if (first != launch.thread) {
    other_thread_.store(true, std::memory_order_relaxed);
    return Action::kNone;
  }
  if (other_thread_.load(std::memory_order_relaxed)) why_not_ = "graphs are launched by several threads";
  if (launch.stream != stream_.load(std::memory_order_relaxed)) why_not_ = "graphs are launched on several streams";
  const bool idle = last_end_ns_ == 0 || waited_ns_.load(std::memory_order_relaxed) >= last_end_ns_;
  const State state = state_.load(std::memory_order_relaxed);
  if (why_not_ != nullptr && state == State::kNormal) return Action::kNone;
  if (!idle) {
    steady_ = 0;
    return Action::kNone;
  }
  ++steady_;
  Graph* graph = find(launch.graph);
  switch (state) {
    case State::kNormal:
      if (graph == nullptr || !is_due(graph) || steady_ <= kSteady || samples_ >= kMaxSamples) return Action::kNone;
      graph->launches = 0;
      ++graph->samples;
      ++samples_;
      sampled_graph_ = launch.graph;
      silent_launches_ = 0;
      state_.store(State::kNodes, std::memory_order_relaxed);
      return Action::kOpen;
    case State::kNodes:
      state_.store(State::kNothing, std::memory_order_relaxed);
      if (launch.graph == sampled_graph_) silent_launches_ = kPatience;
      return Action::kSilence;
    case State::kNothing:
      // With nothing on until the sampled graph was launched, for a while.
      if (silent_launches_ < kPatience) {
        silent_launches_ = launch.graph == sampled_graph_ ? kPatience : silent_launches_ + 1;
        return Action::kNone;
      }
      closed();
      return Action::kClose;
  }
  return Action::kNone;
}

}  // namespace llmprof::collect
