#pragma once
// Where the rest of the collector tells the counters what the program does. While nothing is to be counted, each of
// these is one load and a branch.

#include <atomic>
#include <cstdint>

#include "collect/cuda/counters/pc_abi.h"
#include "collect/cuda/cupti_abi.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

// What is being counted, so what has to be told. A forked child is told nothing.
enum Armed : std::uint32_t { kRanges = 1, kKernels = 2, kStalls = 4, kAnything = 7 };
extern constinit std::atomic<std::uint32_t> armed;
inline bool is_armed(std::uint32_t what) { return (armed.load(std::memory_order_relaxed) & what) != 0; }
void disarm(std::uint32_t what);

// Inside cuInit, after the subscription: reads the plan. Whether kernels may be recorded as activity (not with stalls
// only).
bool start();

// Kernels are executed again for their passes: CUPTI gives no times of those (H200, CUDA 13.0).
bool replays_kernels();

void tell_range_opens(wire::StringId name, std::uint32_t domain, int level);
void tell_range_closes(std::uint32_t domain, int level);
void tell_launch_begins(const cupti::CallbackData& data, wire::LaunchOp op);
void tell_launch_ended(const cupti::CallbackData& data, wire::LaunchOp op);

// A thread opens or closes a range: before its time is taken, after its time was taken. `level`: of the range among
// those that are open in its domain on this thread.
inline void range_opens(wire::StringId name, std::uint32_t domain, int level) {
  if (is_armed(kRanges)) [[unlikely]]
    tell_range_opens(name, domain, level);
}
inline void range_closes(std::uint32_t domain, int level) {
  if (is_armed(kRanges)) [[unlikely]]
    tell_range_closes(domain, level);
}

// Around a driver call that gives the device work: before its time is taken, after its time was taken.
inline void launch_begins(const cupti::CallbackData& data, wire::LaunchOp op) {
  if (is_armed(kRanges | kKernels | kStalls)) [[unlikely]]
    tell_launch_begins(data, op);
}
inline void launch_ended(const cupti::CallbackData& data, wire::LaunchOp op) {
  if (is_armed(kRanges | kKernels)) [[unlikely]]
    tell_launch_ended(data, op);
}

// Counts work that was to be measured and was not.
void skip(const char* why, std::uint64_t count = 1);

// Captures of streams: no profiler may be called while one is under way, anywhere in the process. Begins: before the
// driver does.
void capture_begins();
void capture_ended();
bool capture_is_open();
// One may be under way in the driver: whoever was waited for was not waited for any longer. Asked before every call of
// a profiler, and no call is made then: it would break the capture.
bool capture_has_begun();
// Until everything that this thread's context was given is done; not at all if that would break a capture.
void await_device();

void context_created(void* context);
void context_ends(void* context);  // about to be destroyed
void module_loaded(const pc::Module& code);

// Once in a period of the GPU thread: what can be read without disturbing. `idle`: nothing was launched for a while.
void look(bool idle);
// In the GPU thread, as the process ends: what was measured is read, and CUPTI's profilers are left alone from here on.
void finish();
// What may take longer than the exit waits: after everything else is in the log.
void finish_last();

}  // namespace llmprof::collect::counters
