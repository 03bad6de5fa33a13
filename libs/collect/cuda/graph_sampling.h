#pragma once
// Which launches of CUDA graphs are recorded node by node. Plain decisions, no CUPTI. The rules were found on a GPU:
//
// - Kinds of activity may be switched only while no graph is in flight and none is being instantiated; else CUPTI
//   crashes the program. So a process is sampled only if one thread launches its graphs, on one stream, and waits for
//   them: then none is in flight when it launches the next.
// - A graph that was launched with node records on is slower by 3 % from then on, until it is launched once with
//   nothing on. So a sample takes three launches: with nodes, with nothing (a gap), and then as before.

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
    std::uint32_t thread;  // who launches; not 0
    std::uint64_t stream;
    std::uint64_t now_ns;
  };

  // No sample in this time after the first launch: by then other threads that use graphs have shown themselves.
  void watch_first(std::uint64_t ns) { watch_first_ns_ = ns; }

  // Around every launch. The thread that launches first owns the sampling; others get kNone, and end it.
  Action launch_begins(const Launch& launch);
  void launch_ended(std::uint64_t now_ns) { last_end_ns_.store(now_ns, std::memory_order_relaxed); }

  // A wait for a stream, or for all of them, has ended that began at `begin_ns`.
  void waited(std::uint64_t stream, bool for_all, std::uint64_t begin_ns);

  // Around every instantiation.
  void instantiation_begins(std::uint32_t thread);
  void instantiation_ended() { instantiating_.fetch_sub(1, std::memory_order_relaxed); }

  bool is_owner(std::uint32_t thread) const { return owner_.load(std::memory_order_relaxed) == thread; }

  // A sample is under way: before a graph is instantiated it must be as before, and closed() is called.
  bool is_open() const { return state_.load(std::memory_order_relaxed) != State::kNormal; }
  void closed() { state_.store(State::kNormal, std::memory_order_relaxed); }

  // Why nothing is sampled any more; null: it may still be.
  const char* why_not() const { return why_not_.load(std::memory_order_relaxed); }

  static constexpr std::uint32_t kSamplesPerGraph = 2;
  static constexpr std::uint32_t kMaxSamples = 64;
  static constexpr std::uint32_t kFirstLaunch = 3;   // the first ones of a graph upload it
  static constexpr std::uint32_t kSecondAfter = 64;  // launches of a graph between its samples

 private:
  enum class State : std::uint8_t { kNormal = 0, kNodes, kNothing };
  static constexpr std::uint32_t kGraphs = 4096;
  static constexpr std::uint32_t kSteady = 2;    // launches before which all was idle, before a sample
  static constexpr std::uint32_t kPatience = 8;  // launches with nothing on, waiting for the sampled graph
  struct Graph {
    std::uint32_t id = 0;
    std::uint32_t launches = 0;  // since its last sample
    std::uint32_t samples = 0;
  };

  bool owns(const Launch& launch);
  bool is_idle() const;
  Graph* find(std::uint32_t id);
  bool is_due(const Launch& launch);
  Action next(const Launch& launch);
  void give_up(const char* why) { why_not_.store(why, std::memory_order_relaxed); }

  std::atomic<std::uint32_t> owner_{0};  // thread
  std::atomic<std::uint64_t> stream_{0};
  std::atomic<std::uint64_t> last_end_ns_{0};  // of a graph launch, by any thread
  std::atomic<std::uint64_t> waited_ns_{0};    // begin of the last wait for the stream, or for all
  std::atomic<std::uint64_t> waited_for_all_ns_{0};
  std::atomic<std::uint32_t> instantiating_{0};
  std::atomic<const char*> why_not_{nullptr};
  std::atomic<State> state_{State::kNormal};
  std::uint64_t watch_first_ns_ = 0;
  // The owner.
  std::uint64_t first_ns_ = 0;
  std::uint32_t steady_ = 0;
  std::uint32_t sampled_graph_ = 0;
  std::uint32_t silent_launches_ = 0;
  std::uint32_t samples_ = 0;
  Graph graphs_[kGraphs]{};
};

}  // namespace llmprof::collect
