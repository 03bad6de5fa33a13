#pragma once
// User ranges of a session, and what becomes of them: windows in the thread's records, values once all passes were
// made. One holder at a time (profiler_lock.h).
//
// A set of one pass: windows of any names follow each other until there is no room for more. A set of several: four
// windows of one name make a pass (one, the first time: values come sooner), and the next passes are made over the next
// windows of that name; the values of window k are put together from the k-th of every pass.
//
// A window's record is made when it closes, by the thread that was measured: `begin_ns` is before the time of the
// range, or launch, that it is of, `end_ns` after its end. Its values come later, maybe from another thread of the
// program or from our own. A window whose values never come was measured in vain, but it did take the program's time.

#include "collect/cuda/counters/session.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

struct Window {
  std::uint64_t key;
  wire::StringId name;
  std::uint32_t correlation;
  wire::CounterScope scope;
};

class Measurements {
 public:
  static constexpr std::uint32_t kMostWindows = 64;  // of one pass
  static constexpr std::uint32_t kOfSeveral = 4;     // the same, if a set needs several passes

  // Everything up to the first window. False here and below: it failed, which was said; nothing more can be measured.
  bool open(const Plan& plan, void* context);
  // `first`: the name was never measured.
  bool begin(const Window& window, bool first);
  // `good`: its values count. What it took of the program is added to cost_ns().
  bool end(bool good, bool graphs);
  // All that was measured with one pass is read.
  bool read_now();
  // Several passes: what was begun is given up.
  bool drop();

  void close(bool call_cupti);

  bool is_open() const { return session_.is_open(); }
  void* context() const { return context_; }
  std::uint32_t passes() const { return session_.passes(); }
  std::size_t metrics() const { return session_.metrics(); }
  bool is_between() const { return used_ == 0 && pass_ == 0; }  // nothing is waiting to be read or completed
  const Window& window() const { return window_; }
  std::uint32_t made() const { return made_; }
  // Of the window that ended last; of everything else since it was asked.
  std::uint64_t window_cost_ns() const { return window_cost_ns_; }
  std::uint64_t take_other_cost_ns();

 private:
  struct Slot {
    std::uint32_t measurement;
    bool graphs, good;
  };
  bool start();
  bool end_pass();
  bool read_values();
  void put_values(const Slot& slot);
  void put_window(std::uint64_t end_ns) const;

  Session session_;
  void* context_ = nullptr;
  std::uint32_t device_ = 0;
  std::uint32_t room_ = 0;  // windows of a pass
  std::uint32_t used_ = 0;  // of this pass
  std::uint32_t pass_ = 0;
  bool started_ = false;
  bool is_read_ = false;            // or given up: the next start needs fresh data
  std::uint32_t made_ = 0;          // windows
  std::uint32_t measurements_ = 0;  // numbers given
  Window window_{};
  std::uint64_t begin_ns_ = 0, window_cost_ns_ = 0, other_cost_ns_ = 0;
  Slot slots_[kMostWindows]{};
  wire::StringId names_[List::kMost]{};
  double values_[List::kMost]{};
};

}  // namespace llmprof::collect::counters
