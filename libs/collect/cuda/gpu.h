#pragma once
// The state of GPU capture: one constant-initialised struct. It is never torn down: CUPTI calls late.

#include <atomic>

#include "collect/cuda/buffers.h"
#include "collect/cuda/cupti_library.h"
#include "collect/state.h"

namespace llmprof::collect {

struct Gpu {
  cupti::Library library{};
  void* subscriber = nullptr;
  cupti::BufferPool pool{};
  std::atomic<std::int32_t> pid{0};  // of the process that holds CUPTI; 0: not on. A forked child never touches it.
  // What our thread watches.
  std::atomic<std::uint32_t> wake{0};                     // futex
  std::atomic<std::uint32_t> launching{0};                // launches since it looked, about
  std::atomic<std::uint32_t> contexts{0};                 // created so far
  std::atomic<std::uint32_t> requested{0}, completed{0};  // buffers, so far
  std::atomic<std::uint32_t> finish{0};                   // asked to deliver everything
  std::atomic<std::uint32_t> finished{0};                 // futex: done
  std::atomic<std::uint32_t> suspected{0};                // another client may have our buffers
  std::atomic<std::uint64_t> launches_without{0};         // since
  std::atomic<std::uint32_t> exit_handler{0};
  std::atomic<std::uint32_t> never{0};         // futex that nobody wakes
  std::atomic<std::uint64_t> completed_ns{0};  // when a buffer was returned last
  bool wall_clock = false;                     // CUPTI's times are of CLOCK_REALTIME: it could not be given our clock
};
extern constinit Gpu gpu;

// Whether CUPTI may be called: it is ours, and this is the process it is of. A system call: not for every launch.
bool gpu_is_ours();

// Counts a failed call and says so once per call and result. True: it succeeded.
bool succeeded(cupti::Call call, std::uint32_t result);

}  // namespace llmprof::collect
