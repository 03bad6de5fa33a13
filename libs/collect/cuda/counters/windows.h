#pragma once
// The three ways of counting that hooks.cpp passes events to: ranges, single kernels, stalls.

#include <atomic>
#include <cstdint>

#include "collect/cuda/counters/pc_abi.h"
#include "collect/cuda/counters/plan.h"
#include "collect/cuda/cupti_abi.h"
#include "collect/os.h"
#include "collect/state.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

// Counters of the program's ranges and of graph launches: one user range of CUPTI's each, nothing executed twice.
//
// Which: the innermost ranges whose names match the plan; one at a time in a process, as there is one profiler. In a
// program without such ranges, launches of graphs. How often: as the budget allows (choice.h).

void start_range_windows(const Plan& plan);
void range_window_opens(wire::StringId name, std::uint32_t domain, int level);
void range_window_closes(std::uint32_t domain, int level);
void graph_window_begins(const cupti::CallbackData& data);
void graph_window_ended();
void launch_in_window(const cupti::CallbackData& data, wire::LaunchOp op);
void range_capture_begins();
void range_context_ends(void* context);
void look_at_range_windows(bool idle);
void finish_range_windows();

// Counters of single kernels: automatic ranges around launches of the kernels that were asked for, one pass a launch.
// The launch of a measured kernel ends when the kernel has: the host waits for it, and that is the cost.

void start_kernel_windows(const Plan& plan);
void kernel_window_begins(const cupti::CallbackData& data);
void kernel_window_ended(const cupti::CallbackData& data);
void kernel_capture_begins();             // after capture_is_open() became true: waits for an open window, or ends it
void kernel_context_ends(void* context);  // about to be destroyed
void finish_kernel_windows();             // in the GPU thread

// Where warps stand and why they wait: CUPTI's PC sampling, continuous, read by our own thread. What was found on a GPU
// (H200, CUDA 13.0):
//
// - It works beside records of kernels and graphs. Started after graphs were made it does not know the code of their
//   kernels ("non-user"); started before the first launch it does.
// - Its start hangs the program if the device works meanwhile, from whatever thread it is made.
// - It slows nothing measurably; but samples that are not fetched in time make the stop take seconds.
//
// The first context that gives the device work is sampled. While a stream is being captured nothing is called.

void start_stall_sampling(const Plan& plan);
void stall_context_created(void* context);
void stall_launch_begins(void* context);           // sampling begins before the first work of the context
void stall_context_ends(void* context);            // about to be destroyed: it is not asked any more
void stall_module_loaded(const pc::Module& code);  // kept for its source lines
void stall_capture_begins();                       // after capture_is_open() became true: waits for a call under way
void look_at_stalls();                             // in the GPU thread: fetches
void finish_stall_sampling();                      // in the GPU thread

// The lock of CUPTI's profiler. Nobody waits for it: a thread that does not get it goes on without. A window outlasts
// the lock that opened it, and is acquired again by its number: by its thread, or by whoever has to end it early.

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
