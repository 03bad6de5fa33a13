#pragma once
// CUPTI's profilers, found in the library that gpu.library came from: another instance would not know our subscriber.

#include "collect/cuda/counters/profiler_abi.h"
#include "collect/cuda/cupti_library.h"

namespace llmprof::collect::cupti {

using wire::ProfilerCall;

// Member, its row in wire/cupti_calls.h, what it is given.
#define LLMPROF_PROFILER_FUNCTIONS(X)                            \
  X(initialize, kInitialize, ProfilerInitialize*)                \
  X(deinitialize, kDeinitialize, ProfilerInitialize*)            \
  X(chip_name, kChipName, DeviceChipName*)                       \
  X(host_initialize, kHostInitialize, HostInitialize*)           \
  X(host_deinitialize, kHostDeinitialize, HostDeinitialize*)     \
  X(host_add_metrics, kHostAddMetrics, HostAddMetrics*)          \
  X(host_image_size, kHostImageSize, HostImageSize*)             \
  X(host_image, kHostImage, HostImage*)                          \
  X(host_passes, kHostPasses, HostPasses*)                       \
  X(host_evaluate, kHostEvaluate, HostEvaluate*)                 \
  X(enable, kRangeEnable, RangeEnable*)                          \
  X(disable, kRangeDisable, RangeCall*)                          \
  X(set_config, kRangeSetConfig, RangeConfig*)                   \
  X(start, kRangeStart, RangeCall*)                              \
  X(stop, kRangeStop, RangeStop*)                                \
  X(push, kRangePush, RangePush*)                                \
  X(pop, kRangePop, RangeCall*)                                  \
  X(decode, kRangeDecode, RangeDecode*)                          \
  X(data_size, kRangeDataSize, RangeDataSize*)                   \
  X(data_initialize, kRangeDataInitialize, RangeDataInitialize*) \
  X(data_info, kRangeDataInfo, RangeDataInfo*)                   \
  X(range_info, kRangeInfo, RangeInfo*)

struct ProfilerLibrary {
#define LLMPROF_PROFILER_MEMBER(member, call, ...) Result (*member)(__VA_ARGS__);
  LLMPROF_PROFILER_FUNCTIONS(LLMPROF_PROFILER_MEMBER)
#undef LLMPROF_PROFILER_MEMBER
};

// Null: everything was found. Else the name of a function that is missing: CUPTI before 12.6 has no range profiler.
const char* find_profilers(const Library& library, ProfilerLibrary* profilers);

// Counts a failed call of any profiler by what it means and says so once: not allowed, held by another, or failed.
// True: it succeeded.
bool succeeded(ProfilerCall call, std::uint32_t result);

}  // namespace llmprof::collect::cupti
