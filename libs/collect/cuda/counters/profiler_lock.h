#pragma once
// The lock of CUPTI's profiler. Nobody waits for it: a thread that does not get it goes on without. A window outlasts
// the lock that opened it, and is acquired again by its number: by its thread, or by whoever has to end it early.

#include <atomic>
#include <cstdint>

#include "collect/os.h"
#include "collect/state.h"

namespace llmprof::collect::counters {

class ProfilerLock {
 public:
  // All four: true: it is ours until release(), open_window() or retire().
  bool try_acquire() { return change(kFree, kTaken); }
  bool try_acquire_window(std::uint32_t number) { return change(window(number), kTaken); }
  bool try_acquire_any_window(std::uint32_t* number) {
    const std::uint64_t now = word_.load(std::memory_order_seq_cst);
    *number = static_cast<std::uint32_t>(now >> 2);
    return (now & kKinds) == kOpen && change(now, kTaken);
  }
  bool try_acquire_anything(std::uint32_t* number) {
    *number = 0;
    return try_acquire() || try_acquire_any_window(number);
  }

  void release() { word_.store(kFree, std::memory_order_seq_cst); }
  std::uint32_t open_window() {  // a window: its number, never 0
    last_ = last_ == ~std::uint32_t{0} ? 1 : last_ + 1;
    const std::uint32_t number = last_;
    word_.store(window(number), std::memory_order_seq_cst);
    return number;
  }
  void retire() { word_.store(kEnded, std::memory_order_seq_cst); }  // for good

  bool is_taken() const { return word_.load(std::memory_order_seq_cst) == kTaken; }
  // Taken, or a window is open: by one look, for a window may be taken between two.
  bool is_busy() const {
    const std::uint64_t now = word_.load(std::memory_order_seq_cst);
    return now == kTaken || (now & kKinds) == kOpen;
  }
  bool is_retired() const { return word_.load(std::memory_order_seq_cst) == kEnded; }
  bool has_window() const { return (word_.load(std::memory_order_relaxed) & kKinds) == kOpen; }

 private:
  static constexpr std::uint64_t kFree = 0, kTaken = 1, kOpen = 2, kEnded = 3, kKinds = 3;
  static std::uint64_t window(std::uint32_t number) { return std::uint64_t{number} << 2 | kOpen; }
  bool change(std::uint64_t from, std::uint64_t to) {
    return word_.compare_exchange_strong(from, to, std::memory_order_seq_cst);
  }

  std::atomic<std::uint64_t> word_{kFree};
  std::uint32_t last_ = 0;  // of the holder
};

// Profiler calls of a thread of the program: no signal handler may jump out of them, and what CUPTI does with the
// driver in them is not the program's.
class Measuring {
 public:
  Measuring() { tl.measuring = true; }
  ~Measuring() { tl.measuring = false; }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

 private:
  Undisturbed undisturbed_;
};

}  // namespace llmprof::collect::counters
