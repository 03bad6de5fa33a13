#pragma once
// Which launches of CUDA graphs are recorded node by node. Plain decisions, no CUPTI; the rules were found on a GPU
// (docs/format/wire.md says how):
//
// - Kinds may be switched only while no graph is in flight, and never while one is being instantiated. We know of no
//   graph in flight when the thread that launched it has waited since; so only a process whose graphs are launched by
//   one thread on one stream, with a wait before each launch, is sampled.
// - A graph that was launched with node records on stays slower by 3 % until it is launched once with nothing on. So a
//   sample is three launches: one with nodes, one with nothing (a gap), and the next is as before.

#include <atomic>
#include <cstdint>

namespace llmprof::collect {

class GraphSampling {
 public:
  enum class Action : std::uint8_t {
    kNone,
    kOpen,     // this launch is recorded with its nodes
    kSilence,  // this one not at all
    kClose,    // as before from here on
  };
  struct Launch {
    std::uint32_t graph;   // id of the executable
    std::uint32_t thread;  // who launches
    std::uint64_t stream;
  };

  // At the begin of a launch. Threads other than the first to launch a graph get kNone, and end the sampling.
  Action launch_begins(const Launch& launch);
  // At its end. Only of the first thread.
  void launch_ended(std::uint32_t thread, std::uint64_t now_ns) {
    if (thread == thread_.load(std::memory_order_relaxed)) last_end_ns_ = now_ns;
  }
  // A thread waited for a stream, or for all (0 or a stream that is the device's default), from `begin_ns` on.
  void waited(std::uint64_t stream, bool for_all, std::uint64_t begin_ns) {
    if (for_all || stream == stream_.load(std::memory_order_relaxed))
      waited_ns_.store(begin_ns, std::memory_order_relaxed);
  }
  // A graph is about to be instantiated: true if node records are on, or nothing is; it must be as before first.
  bool must_close() const { return state_.load(std::memory_order_relaxed) != State::kNormal; }
  void closed() { state_.store(State::kNormal, std::memory_order_relaxed); }

  std::uint32_t samples() const { return samples_; }
  // Why nothing is sampled any more; null: it may still be.
  const char* why_not() const { return why_not_; }

  static constexpr std::uint32_t kSamplesPerGraph = 2;
  static constexpr std::uint32_t kMaxSamples = 64;

 private:
  enum class State : std::uint8_t { kNormal = 0, kNodes, kNothing };
  static constexpr std::uint32_t kGraphs = 4096;
  static constexpr std::uint32_t kSteady = 2;        // launches with a wait before them, before the first sample
  static constexpr std::uint32_t kSecondAfter = 64;  // launches of a graph between its two samples
  static constexpr std::uint32_t kPatience = 8;      // launches with nothing on, waiting for the sampled graph
  struct Graph {
    std::uint32_t id = 0;
    std::uint32_t launches = 0;  // since its last sample
    std::uint32_t samples = 0;
  };

  Graph* find(std::uint32_t id);
  bool is_due(Graph* graph);

  std::atomic<std::uint32_t> thread_{0};
  std::atomic<std::uint64_t> stream_{0};
  std::atomic<std::uint64_t> waited_ns_{0};  // begin of the last wait that has ended
  std::uint64_t last_end_ns_ = 0;            // of a graph launch
  std::atomic<bool> other_thread_{false};
  const char* why_not_ = nullptr;
  std::atomic<State> state_{State::kNormal};
  std::uint32_t steady_ = 0;
  std::uint32_t sampled_graph_ = 0;
  std::uint32_t silent_launches_ = 0;
  std::uint32_t samples_ = 0;
  Graph graphs_[kGraphs]{};
};

}  // namespace llmprof::collect
