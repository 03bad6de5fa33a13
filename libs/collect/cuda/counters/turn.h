#pragma once
// Whose turn it is with the profiler. Nobody waits for it: who does not get it goes on without. A window outlasts the
// turn in which it was opened, and is taken up again by its number: by its thread, or by whoever has to end it early.

#include <atomic>
#include <cstdint>

namespace llmprof::collect::counters {

class Turn {
 public:
  // All four: true: it is ours, until give_back(), keep_open() or end().
  bool take() { return change(kFree, kTaken); }
  bool take_window(std::uint32_t number) { return change(window(number), kTaken); }
  bool take_any_window(std::uint32_t* number) {
    const std::uint64_t now = word_.load(std::memory_order_seq_cst);
    *number = static_cast<std::uint32_t>(now >> 2);
    return (now & kKinds) == kOpen && change(now, kTaken);
  }
  bool take_anything(std::uint32_t* number) {
    *number = 0;
    return take() || take_any_window(number);
  }

  void give_back() { word_.store(kFree, std::memory_order_seq_cst); }
  std::uint32_t keep_open() {  // a window: its number, never 0
    last_ = last_ == ~std::uint32_t{0} ? 1 : last_ + 1;
    const std::uint32_t number = last_;
    word_.store(window(number), std::memory_order_seq_cst);
    return number;
  }
  void end() { word_.store(kEnded, std::memory_order_seq_cst); }  // for good

  bool is_taken() const { return word_.load(std::memory_order_seq_cst) == kTaken; }
  // Taken, or a window is open: by one look, for a window may be taken between two.
  bool is_busy() const {
    const std::uint64_t now = word_.load(std::memory_order_seq_cst);
    return now == kTaken || (now & kKinds) == kOpen;
  }
  bool is_ended() const { return word_.load(std::memory_order_seq_cst) == kEnded; }
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

}  // namespace llmprof::collect::counters
