#pragma once
// Which launches of CUDA graphs are recorded node by node. Plain decisions, no CUPTI. The rules were found on a GPU:
//
// - Kinds of activity may be switched only while no graph is in flight, in any context, and none is being instantiated;
//   else CUPTI crashes the program. So they are switched at the begin of a launch, before which every stream that ever
//   ran a graph was asked and is idle, while no other thread is inside a launch or an instantiation and those that come
//   are held back. Where that cannot be proved nothing is switched.
// - A graph that was instantiated while graphs were not recorded as a whole must never be launched while they are. So
//   a sample is closed before an instantiation. Where it cannot be (a graph does not end), it stays open for good: all
//   launches are recorded node by node from then on.
// - A graph that was launched with node records on is slower by 3 % from then on, until it is launched once with
//   nothing on. So a sample has three parts, each from one idle moment to the next: with nodes, with nothing (a gap),
//   and then as before. Of a program that launches in bursts and waits after each, a part is a burst.
// - The other kinds may be switched at any time while graphs are recorded as a whole, and only then.

#include <atomic>
#include <cstdint>

namespace llmprof::collect {

// The streams that graphs were launched on, of all contexts. A stream is asked only where the answer would be about the
// same stream: the default streams are other ones in other contexts and threads. An event behind the last graph can be
// asked from anywhere, and outlives its stream, but not its context.
class GraphStreams {
 public:
  struct Stream {
    std::uint64_t handle = 0;
    void* context = nullptr;   // it is of
    std::uint64_t thread = 0;  // of a thread's own default stream: that thread; else 0
    bool is_default = false;   // the handle says nothing without the context
    void* event = nullptr;     // behind the last graph launched on it; null: none was put there
    bool operator==(const Stream& other) const {
      return handle == other.handle && thread == other.thread && (!is_default || context == other.context);
    }
  };

  // By a thread that is inside a launch (GraphSampling::enter). `context_of`: of a stream that was not known.
  void launched(const Stream& stream, void* (*context_of)(const Stream& stream));
  // After the launch: an event behind the graph, so that it is known when that has ended although the stream has other
  // work, or is gone. `put` is given the stream with the event it had before, and answers with the one it put there.
  void mark(const Stream& stream, void* (*put)(const Stream& stream));
  // It is about to be destroyed, which does not end what runs on it.
  void destroyed(std::uint64_t handle);
  // With all its streams and events.
  void context_destroyed(const void* context);
  // No graph is in flight. `asks` answers of one stream; called only while GraphSampling holds launches back.
  bool all_idle(bool (*asks)(const Stream& stream, void* of), void* of);
  // A graph may be running on a stream that cannot be asked any more. That never ends: to wait for a whole context
  // would break captures, and could hang the program.
  bool is_uncertain() const { return uncertain_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kMost = 64;
  struct Entry {
    Stream stream;
    void* event_context = nullptr;
    bool used = false;
    bool busy = false;    // launched on since it was last found idle
    bool marked = false;  // the event is behind the last launch
    bool gone = false;    // the stream is: the event is all there is
  };
  class Lock;
  Entry* find(const Stream& stream);
  Entry* room();

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
    kResume,   // with their nodes, for good
  };
  struct Launch {
    std::uint32_t graph;  // id of the executable
    std::uint64_t now_ns;
  };
  // What switching takes. In this order, on the thread that switches; launches are held back meanwhile, but those that
  // wait too long call it off before `act`.
  struct Hands {
    bool (*is_idle)(void* of);                 // no graph is in flight
    void (*prepare)(Action action, void* of);  // what takes time
    void (*act)(Action action, void* of);
    void* of;
  };

  // No sample in this time after the first launch: the begin of a program is no steady state.
  void watch_first(std::uint64_t ns) { watch_first_ns_ = ns; }

  // Around every launch, whatever thread makes it. enter() waits while kinds are switched, but not for ever.
  void enter();
  void leave() { inside_.fetch_sub(1); }

  // After enter(): what was done, mostly nothing.
  Action launch_begins(const Launch& launch, const Hands& hands);

  // Whether an event is wanted behind a launch. While a sample is open, always: it has to be closed some day. Else if
  // the last question was answered with no: a stream may be busy with other work, an event tells more.
  bool wants_marks() const {
    const std::uint32_t in_vain = in_vain_.load(std::memory_order_relaxed);
    return is_open() ? !is_settled() : in_vain > 0 && in_vain < kOften;
  }

  // Its nodes have other kernels from now on (or may have): what was sampled before says nothing about them.
  void changed(std::uint32_t graph, bool for_certain);

  // Around every instantiation. A sample that is open is closed first, once nothing is in flight: launches are held
  // back for that, and nobody waits for ever. `hands`: null where the driver must not be asked.
  void instantiation_begins(const Hands* hands);
  void instantiation_ended();

  // Around every capture of a stream: to ask a stream whether it is idle ends its capture, so nobody is asked
  // meanwhile. What is captured is mostly instantiated next, so a sample that is open is closed here, too.
  void capture_begins(const Hands& hands);
  void capture_ended();

  // Closes what is open, for who cannot wait for the next launch.
  bool close_if_idle(const Hands& hands);

  // Around switching of other kinds, by a thread that is not inside of a launch. False: not now, a sample is open.
  bool hold();
  void release() { holds_.fetch_sub(1); }

  bool is_open() const { return state_.load(std::memory_order_relaxed) != State::kNormal; }
  // It is, for good: a graph was instantiated meanwhile.
  bool stays_open() const { return stays_open_.load(std::memory_order_relaxed); }
  // Node by node from now on: nothing is switched any more.
  bool is_settled() const { return stays_open() && state_.load(std::memory_order_relaxed) == State::kNodes; }

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
  static constexpr std::uint32_t kDrainMs = 200;     // an instantiation waits for graphs in flight, if it must

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

  // Who switches has a ticket: 0: it cannot be had now. Up to commit() it may be called off by others.
  std::uint32_t begin_switch(std::uint32_t inside);
  bool commit(std::uint32_t ticket);
  void end_switch(std::uint32_t ticket);
  void await_switch();

  Graph* find(std::uint32_t id);
  Graph* due(const Launch& launch);
  bool wants_to_know(const Graph* due_graph);
  Action next(const Graph* due_graph);
  void became(Action action, Graph* due_graph);
  Action switch_if_idle(Graph* due_graph, const Hands& hands);
  void drain(const Hands& hands);

  std::atomic<std::uint32_t> inside_{0};         // launches under way
  std::atomic<std::uint32_t> instantiating_{0};  // graphs, or about to
  std::atomic<std::uint32_t> in_driver_{0};      // of these, those that have begun; and captures
  std::atomic<std::uint32_t> captures_{0};
  std::atomic<std::uint32_t> switching_{0};  // futex: the ticket of who switches kinds; 0: nobody
  std::atomic<std::uint32_t> draining_{0};   // futex: instantiations that wait for graphs in flight
  std::atomic<std::uint32_t> tickets_{0};
  std::atomic<std::uint32_t> holds_{0};  // threads that switch other kinds
  std::atomic<bool> stays_open_{false};
  std::atomic<std::uint32_t> deciding_{0};  // what follows belongs to one thread at a time
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
