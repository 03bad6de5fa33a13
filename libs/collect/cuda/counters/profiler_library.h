#pragma once
// CUPTI's profilers: their interface, and the functions found at run time.

#include <cstddef>
#include <cstdint>

#include "collect/cuda/cupti_library.h"
#include "wire/cupti_host_abi.h"

namespace llmprof::collect::cupti {

// The part of CUPTI's profilers that we use, declared here as cupti_abi.h and wire/cupti_host_abi.h declare the rest.
// Every structure begins with its own size, which is that of the header's macros: up to the end of its last member,
// without the padding behind it. profiler_abi_test.cpp holds all of it against the real headers where they are
// installed.
enum ProfilerResult : std::uint32_t {
  kInvalidParameter = 1,
  kInvalidMetricName = 17,
  kHardwareBusy = 26,
  kForbidden = 35,  // insufficient privileges
  kOldProfilerInUse = 36,
  kForbiddenOnVirtualDevice = 40,
};

enum RangeMode : std::uint32_t { kAutomaticRanges = 1, kUserRanges = 2 };
enum ReplayMode : std::uint32_t { kKernelReplay = 2, kUserReplay = 3 };

// ---- the range profiler --------------------------------------------------------------------------------------------

struct RangeEnable {
  LLMPROF_CUPTI_HEAD(sizeof(RangeEnable))
  void* context;
  void* profiler;  // out
};

struct RangeCall {  // Disable, Start, PopRange
  LLMPROF_CUPTI_HEAD(sizeof(RangeCall))
  void* profiler;
};

struct RangeConfig {
  LLMPROF_CUPTI_HEAD(LLMPROF_CUPTI_BYTES(RangeConfig, target_level))
  void* profiler;
  std::size_t image_bytes;
  const std::uint8_t* image;
  std::size_t data_bytes;
  std::uint8_t* data;
  std::uint32_t range;   // RangeMode
  std::uint32_t replay;  // ReplayMode
  std::size_t most_ranges;
  std::uint16_t nesting_levels, first_level;
  std::size_t pass;
  std::uint16_t target_level;
};

struct RangeStop {
  LLMPROF_CUPTI_HEAD(LLMPROF_CUPTI_BYTES(RangeStop, all_passes))
  void* profiler;
  std::size_t pass;          // out: the next one
  std::size_t target_level;  // out
  std::uint8_t all_passes;   // out: 1: every pass was made
};

struct RangePush {
  LLMPROF_CUPTI_HEAD(sizeof(RangePush))
  void* profiler;
  const char* name;
};

struct RangeDecode {
  LLMPROF_CUPTI_HEAD(sizeof(RangeDecode))
  void* profiler;
  std::size_t dropped;  // out: ranges
};

struct RangeDataSize {
  LLMPROF_CUPTI_HEAD(sizeof(RangeDataSize))
  void* profiler;
  const char** metrics;
  std::size_t count;
  std::size_t most_ranges;
  std::uint32_t most_nodes;  // of the tree of ranges
  std::size_t data_bytes;    // out
};

struct RangeDataInitialize {
  LLMPROF_CUPTI_HEAD(sizeof(RangeDataInitialize))
  void* profiler;
  std::size_t data_bytes;
  std::uint8_t* data;
};

struct RangeDataInfo {
  LLMPROF_CUPTI_HEAD(sizeof(RangeDataInfo))
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t ranges;  // out
};

struct RangeInfo {
  LLMPROF_CUPTI_HEAD(sizeof(RangeInfo))
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t range;
  const char* delimiter;
  const char* name;  // out
};

// CUPTI's profilers, found in the library that gpu.library came from: another instance would not know our subscriber.

using wire::ProfilerCall;
using namespace wire::cupti;  // the host's side: metrics, configurations, values

// Counts a failed call of any profiler by what it means and says so once: not allowed, held by another, or failed.
// True: it succeeded.
bool succeeded(ProfilerCall call, std::uint32_t result);

// Member, its row in wire/cupti_calls.h, what it is given.
#define LLMPROF_PROFILER_FUNCTIONS(X)                           \
  X(initialize, kInitialize, ProfilerInitialize)                \
  X(chip_name, kChipName, DeviceChipName)                       \
  X(host_initialize, kHostInitialize, HostInitialize)           \
  X(host_deinitialize, kHostDeinitialize, HostDeinitialize)     \
  X(host_add_metrics, kHostAddMetrics, HostAddMetrics)          \
  X(host_image_size, kHostImageSize, HostConfigSize)            \
  X(host_image, kHostImage, HostConfig)                         \
  X(host_passes, kHostPasses, HostPasses)                       \
  X(host_evaluate, kHostEvaluate, HostEvaluate)                 \
  X(enable, kRangeEnable, RangeEnable)                          \
  X(disable, kRangeDisable, RangeCall)                          \
  X(set_config, kRangeSetConfig, RangeConfig)                   \
  X(start, kRangeStart, RangeCall)                              \
  X(stop, kRangeStop, RangeStop)                                \
  X(push, kRangePush, RangePush)                                \
  X(pop, kRangePop, RangeCall)                                  \
  X(decode, kRangeDecode, RangeDecode)                          \
  X(data_size, kRangeDataSize, RangeDataSize)                   \
  X(data_initialize, kRangeDataInitialize, RangeDataInitialize) \
  X(data_info, kRangeDataInfo, RangeDataInfo)                   \
  X(range_info, kRangeInfo, RangeInfo)

// Each function as found; false if it failed, which was counted and said.
struct ProfilerLibrary {
#define LLMPROF_PROFILER_MEMBER(member, call, Params) \
  Result (*member##_found)(Params*);                  \
  bool member(Params& params) const { return succeeded(ProfilerCall::call, member##_found(&params)); }
  LLMPROF_PROFILER_FUNCTIONS(LLMPROF_PROFILER_MEMBER)
#undef LLMPROF_PROFILER_MEMBER
};

// Null: everything was found. Else the name of a function that is missing: CUPTI before 12.6 has no range profiler.
const char* find_profilers(const Library& library, ProfilerLibrary* profilers);

}  // namespace llmprof::collect::cupti
