#pragma once
// GPU capture: its state, and what its parts offer each other (session, recording, launches, our thread).

#include <atomic>
#include <cstdint>

#include "collect/cuda/buffers.h"
#include "collect/cuda/cupti_abi.h"
#include "collect/cuda/cupti_library.h"
#include "collect/state.h"

namespace llmprof::collect {

// The state of GPU capture: one constant-initialised struct. It is never torn down: CUPTI calls late.
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
  std::atomic<std::uint64_t> completed_ns{0};  // when a buffer was returned last
  bool wall_clock = false;                     // CUPTI's times are of CLOCK_REALTIME: it could not be given our clock
};
extern constinit Gpu gpu;

// Whether CUPTI may be called: it is ours, and this is the process it is of. A system call: not for every launch.
bool gpu_is_ours();

// Counts a failed call and says so once per call and result. True: it succeeded.
bool succeeded(cupti::Call call, std::uint32_t result);

// GPU capture from cuInit to exit: finds CUPTI, subscribes, keeps the records coming.

// Inside cuInit, once. Whatever fails is counted and said; the program goes on.
void start_gpu();

// Everything that CUPTI holds, into our buffers, within `limit_ms`. After it CUPTI is not called any more.
void finish_gpu(std::uint64_t limit_ms);

// Stops and resumes GPU recording. Any thread; takes effect within moments.
void set_gpu_recording(bool on);

// cudaProfilerStart, cudaProfilerStop.
void profiler_called(bool started);

// Which kinds of activity and which callbacks are on, and switching them.

// The kinds of activity that are what a device did, graphs as a whole apart: those have rules of their own.
inline constexpr std::uint32_t kDeviceWork[] = {cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemcpyPeer,
                                                cupti::kMemset};

// Inside cuInit: everything that was asked for, or as little as possible if the program decides when to record.
// `kernels`: whether kernels and graphs may be.
void start_recording(bool kernels);

// Makes it so, now, on this thread. One thread at a time does the switching; another one's wish is fulfilled by it.
void apply_recording(bool on);

bool fulfil_wish();  // of set_gpu_recording(), and what could not be done at once. False: not yet
bool is_recording();
bool records_kernels();

// Sampling of kernels (kernel_sampling.h). At the begin of a launch, on its thread: its number, 0 where all are
// recorded.
std::uint16_t kernel_launch_begins(const cupti::CallbackData& data, std::uint64_t now_ns);
bool notes_kernels();  // they are noted only, at the moment
// By our thread, every period: so many launches were made in it, and that long it was.
void look_at_kernels(std::uint32_t launches, std::uint64_t period_ms);
// All are recorded from now on.
void record_all_kernels(const char* why);
void finish_kernels();  // says why they were all recorded, if they were to be sampled

// After another client has ended: what it may have taken or switched off.
void resume_recording();

// The callbacks for buffers are ours again.
bool register_buffers();

// Our thread for CUPTI: asks it for what it has four times a second, and watches that it still gives it to us. A thread
// of its own, since a flush waits inside CUPTI and the driver while the writer must go on writing.

bool start_gpu_thread();
void wake_gpu_thread();

// CUDA calls as the program makes them, on its threads: launches, allocations, waits. Called by CUPTI around each call.

std::uint32_t device_of(void* context);  // its number; 0 where CUPTI does not say
void on_driver_call(std::uint32_t id, const cupti::CallbackData& data);
void on_runtime_call(const cupti::CallbackData& data);  // only when all API calls are recorded

}  // namespace llmprof::collect
