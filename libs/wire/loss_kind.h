#pragma once
// What the collector may lose.

#include <cstdint>

namespace llmprof::wire {

// What can be lost inside the target. The recorder gives each a meaning and a remedy (libs/trace/loss.h).
enum class LossKind : std::uint16_t {
  kNone = 0,
  kBufferFull = 1,          // records dropped: the pool of buffers was empty
  kStringTableFull = 2,     // names replaced by "<other>"
  kNameTruncated = 3,       // names longer than 64 KiB cut
  kWriteFailed = 4,         // events lost: write(2) failed; detail is the errno
  kSizeLimit = 5,           // records dropped: --max-size reached
  kReentered = 6,           // events raised while the collector was already inside an event of the same thread
  kForkedAfterCuda = 7,     // events in a forked child whose parent had initialised CUDA
  kBlasNotHooked = 8,       // a BLAS library is loaded whose calls are not seen; detail is a string id
  kBlasUnresolved = 9,      // calls whose real function could not be found by caller (answered by a fallback)
  kThreadTableFull = 10,    // events of threads that got no slot
  kCudaNotTraced = 11,      // CUDA was initialised; this build records no GPU activity
  kNvtxTableTooSmall = 12,  // the NVTX client offered fewer callbacks than we know
  kUnbalancedPop = 13,      // pops without a push on that thread
  kOutsideWindow = 14,      // records outside the window that was asked for
  kAfterExit = 15,          // events raised while the process was exiting
  kDefinitionsFull = 16,    // kernel shapes, GEMM shapes, frames or stacks that found no room: records without them
  kCuptiMissing = 17,       // CUDA is used but no usable CUPTI was found; detail is a string id (what was tried)
  kCuptiHeld = 18,          // another profiler holds CUPTI; detail is a string id (its name, if it says)
  kCuptiError = 19,         // a call of CUPTI failed; detail is its number | call << 32
  kCuptiDropped = 20,       // activity records CUPTI says it dropped
  kCuptiRefused = 21,       // buffers CUPTI asked for and did not get: the pool was in use
  kZeroTimes = 22,          // executions whose times CUPTI had lost; detail is a string id (why, if known)
  kUnknownActivity = 23,    // activity records of a kind or size that is not understood
  kGraphUnknown = 24,       // executions of graph nodes, or of graphs, that nobody announced
  kBuffersTaken = 25,       // launches while another client had taken CUPTI's buffers
  kStacksOff = 26,          // launches without the stack that was asked for; detail is a string id (why)
  kLaunchLost = 27,         // executions whose launch was not seen
  kCountersForbidden = 28,  // hardware counters may not be read; detail is a string id (which setting)
  kCountersHeld = 29,       // another client holds the hardware counters; detail is a string id (who, if known)
  kCounterUnknown = 30,     // a metric that this chip does not have; detail is a string id (its name)
  kCountersFailed = 31,     // a call of CUPTI's profilers failed; detail is its number | call << 32
  kCountersSkipped = 32,    // work that was to be measured and was not; detail is a string id (why)
  kCountersShort = 33,      // windows too short for a value; detail is a string id (what)
};

}  // namespace llmprof::wire
