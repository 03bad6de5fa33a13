#pragma once
// Which launches of CUDA graphs are recorded node by node. Plain decisions, no CUPTI. The rules were found on a GPU:
//
// - Kinds of activity may be switched only while no graph is in flight and none is being instantiated; else CUPTI
//   crashes the program. So they are switched at the begin of a launch, before which every stream that ever ran a graph
//   was asked and is idle, while no other thread is inside a launch and those that come are held back.
// - A graph that was launched with node records on is slower by 3 % from then on, until it is launched once with
//   nothing on. So a sample has three parts, each from one idle moment to the next: with nodes, with nothing (a gap),
//   and then as before. Of a program that launches in bursts and waits after each, a part is a burst.

#include <atomic>
#include <cstdint>

namespace llmprof::collect {

// The streams that graphs were launched on. A stream is asked only where the answer would be about the same stream:
// the default streams are other ones in other contexts and threads.
class GraphStreams {
 public:
  struct Stream {
    std::uint64_t handle = 0;
    std::uint64_t place = 0;  // of a default stream: its context or thread; else 0
    void* event = nullptr;    // behind the last graph launched on it; null: none was put there
    bool operator==(const Stream& other) const { return handle == other.handle && place == other.place; }
  };

  // By a thread that is inside a launch (GraphSampling::enter).
  void launched(const Stream& stream);
  // After the launch: an event behind the graph, so that it is known when that has ended although the stream has other
  // work. `put` is given the stream with the event it had before, and answers with the one it put there.
  void mark(const Stream& stream, void* (*put)(const Stream& stream));
  // It is about to be destroyed, which does not end what runs on it.
  void destroyed(std::uint64_t handle);
  // No graph is in flight. `asks` answers of one stream; called only while GraphSampling holds launches back.
  bool all_idle(bool (*asks)(const Stream& stream, void* of), void* of);
  // All work of all contexts has been waited for.
  void all_ended();
  // A graph may be running on a stream that cannot be asked any more.
  bool is_uncertain() const { return uncertain_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kMost = 64;
  struct Entry {
    Stream stream;
    bool used = false;
    bool busy = false;    // launched on since it was last found idle
    bool marked = false;  // the event is behind the last launch
  };
  class Lock;

  std::atomic<std::uint32_t> lock_{0};
  std::atomic<bool> uncertain_{false};
  Entry entries_[kMost]{};
};

class GraphSampling {
 public:
  enum class Action : std::uint8_t {
    kNone,
    kOpen,     // from this launch on they are recorded with their nodes
    kSilence,  // not at all
    kClose,    // as before
  };
  struct Launch {
    std::uint32_t graph;  // id of the executable
    std::uint64_t now_ns;
  };
  struct Idle {  // whether no graph is in flight; asked while launches are held back
    bool (*ask)(void* of);
    void* of;
  };

  // No sample in this time after the first launch: the begin of a program is no steady state.
  void watch_first(std::uint64_t ns) { watch_first_ns_ = ns; }

  // Around every launch, whatever thread makes it. enter() waits while kinds are switched, but not for ever.
  void enter();
  void leave() { inside_.fetch_sub(1); }

  // After enter(). Anything but kNone: the caller acts, and then calls switched().
  Action launch_begins(const Launch& launch, Idle idle);
  void switched();

  // Whether the last question was answered with no: a stream may be busy with other work, an event tells more.
  bool wants_marks() const {
    const std::uint32_t in_vain = in_vain_.load(std::memory_order_relaxed);
    return in_vain > 0 && (in_vain < kOften || is_open());
  }

  // Its nodes have other kernels from now on (or may have): what was sampled before says nothing about them.
  void changed(std::uint32_t graph, bool for_certain);

  // Around every instantiation. A sample that is open then must be closed first: true, if the caller may do so now, and
  // then calls switched().
  void instantiation_begins();
  void instantiation_ended() { instantiating_.fetch_sub(1); }
  bool may_close(Idle idle);

  bool is_open() const { return state_.load(std::memory_order_relaxed) != State::kNormal; }
  void closed() { state_.store(State::kNormal, std::memory_order_relaxed); }

  // Ends it for good; one that is open is still closed.
  void give_up(const char* why) { why_not_.store(why, std::memory_order_relaxed); }
  // Why no launch was recorded node by node; null: some were, or there was none.
  const char* why_not() const;

  static constexpr std::uint32_t kSamplesPerGraph = 2;
  static constexpr std::uint32_t kMaxSamples = 64;
  static constexpr std::uint32_t kFirstLaunch = 3;   // the first ones of a graph upload it
  static constexpr std::uint32_t kSecondAfter = 64;  // launches of a graph between its samples
  static constexpr std::uint32_t kSteady = 2;        // idle moments seen before a sample: there will be more
  static constexpr std::uint32_t kOften = 256;       // questions in vain, before it asks more rarely
  static constexpr std::uint32_t kRarely = 61;       // launches; prime, so that no burst has the same length

 private:
  enum class State : std::uint8_t { kNormal = 0, kNodes, kNothing };
  static constexpr std::uint32_t kGraphs = 4096;
  static constexpr std::uint32_t kPatience = 8;  // launches with nothing on, waiting for the sampled graph
  struct Graph {
    std::uint32_t id = 0;
    std::uint32_t launches = 0;  // since its last sample
    std::uint32_t samples = 0;
    std::uint32_t updates = 0;  // that may have changed it
  };

  bool begin_switch(std::uint32_t inside);
  Graph* find(std::uint32_t id);
  Graph* due(const Launch& launch);
  bool wants_to_know(const Graph* due_graph);
  Action next(Graph* due_graph);

  std::atomic<std::uint32_t> inside_{0};         // launches under way
  std::atomic<std::uint32_t> instantiating_{0};  // graphs
  std::atomic<std::uint32_t> switching_{0};      // futex: kinds are being switched
  std::atomic<std::uint32_t> deciding_{0};       // what follows belongs to one thread at a time
  std::atomic<const char*> why_not_{nullptr};
  std::atomic<State> state_{State::kNormal};
  std::atomic<std::uint32_t> samples_{0};
  std::uint64_t watch_first_ns_ = 0;
  // These are read at the end, too, by a thread that does not launch.
  std::atomic<std::uint64_t> first_ns_{0}, last_ns_{0};
  std::atomic<std::uint32_t> launches_{0}, most_launches_{0};  // of all; of one graph
  std::atomic<std::uint32_t> in_vain_{0};
  std::uint32_t idle_moments_ = 0;
  std::uint32_t sampled_graph_ = 0;
  std::uint32_t silent_launches_ = 0;
  bool silence_is_over_ = false;
  Graph graphs_[kGraphs]{};
};

}  // namespace llmprof::collect
