#pragma once
// CUPTI's profilers, found in the library that gpu.library came from: another instance would not know our subscriber.

#include "collect/cuda/counters/profiler_abi.h"
#include "collect/cuda/cupti_library.h"

namespace llmprof::collect::cupti {

// Which function a failure is of: the upper half of a kCountersFailed detail. Stored in files: never renumber. 32 to 63
// are free; from 64 on they are PC sampling's (pc_library.h).
enum class ProfilerCall : std::uint32_t {
  kNone = 0,
  kProfilerInitialize = 1,
  kProfilerDeInitialize = 2,
  kDeviceGetChipName = 3,
  kHostInitialize = 4,
  kHostDeinitialize = 5,
  kHostConfigAddMetrics = 6,
  kHostGetConfigImageSize = 7,
  kHostGetConfigImage = 8,
  kHostGetNumOfPasses = 9,
  kHostEvaluate = 10,
  kRangeEnable = 11,
  kRangeDisable = 12,
  kRangeSetConfig = 13,
  kRangeStart = 14,
  kRangeStop = 15,
  kRangePush = 16,
  kRangePop = 17,
  kRangeDecode = 18,
  kRangeDataSize = 19,
  kRangeDataInitialize = 20,
  kRangeDataInfo = 21,
  kRangeInfo = 22,
  kMemory = 23,  // no call: there was no memory for an image; the number is an errno
};
const char* name_of(ProfilerCall call);

#define LLMPROF_PROFILER_FUNCTIONS(X)                                                      \
  X(initialize, "cuptiProfilerInitialize", ProfilerInitialize*)                            \
  X(deinitialize, "cuptiProfilerDeInitialize", ProfilerInitialize*)                        \
  X(chip_name, "cuptiDeviceGetChipName", DeviceChipName*)                                  \
  X(host_initialize, "cuptiProfilerHostInitialize", HostInitialize*)                       \
  X(host_deinitialize, "cuptiProfilerHostDeinitialize", HostDeinitialize*)                 \
  X(host_add_metrics, "cuptiProfilerHostConfigAddMetrics", HostAddMetrics*)                \
  X(host_image_size, "cuptiProfilerHostGetConfigImageSize", HostImageSize*)                \
  X(host_image, "cuptiProfilerHostGetConfigImage", HostImage*)                             \
  X(host_passes, "cuptiProfilerHostGetNumOfPasses", HostPasses*)                           \
  X(host_evaluate, "cuptiProfilerHostEvaluateToGpuValues", HostEvaluate*)                  \
  X(enable, "cuptiRangeProfilerEnable", RangeEnable*)                                      \
  X(disable, "cuptiRangeProfilerDisable", RangeCall*)                                      \
  X(set_config, "cuptiRangeProfilerSetConfig", RangeConfig*)                               \
  X(start, "cuptiRangeProfilerStart", RangeCall*)                                          \
  X(stop, "cuptiRangeProfilerStop", RangeStop*)                                            \
  X(push, "cuptiRangeProfilerPushRange", RangePush*)                                       \
  X(pop, "cuptiRangeProfilerPopRange", RangeCall*)                                         \
  X(decode, "cuptiRangeProfilerDecodeData", RangeDecode*)                                  \
  X(data_size, "cuptiRangeProfilerGetCounterDataSize", RangeDataSize*)                     \
  X(data_initialize, "cuptiRangeProfilerCounterDataImageInitialize", RangeDataInitialize*) \
  X(data_info, "cuptiRangeProfilerGetCounterDataInfo", RangeDataInfo*)                     \
  X(range_info, "cuptiRangeProfilerCounterDataGetRangeInfo", RangeInfo*)

struct ProfilerLibrary {
#define LLMPROF_PROFILER_MEMBER(member, name, ...) Result (*member)(__VA_ARGS__);
  LLMPROF_PROFILER_FUNCTIONS(LLMPROF_PROFILER_MEMBER)
#undef LLMPROF_PROFILER_MEMBER
};

// Null: everything was found. Else the name of a function that is missing: CUPTI before 12.6 has no range profiler.
const char* find_profilers(const Library& library, ProfilerLibrary* profilers);

// Counts a failed call of any profiler by what it means and says so once: not allowed, held by another, or failed.
// `call` is a ProfilerCall or another number of its list; `name` is said. True: it succeeded.
bool profiler_succeeded(std::uint32_t call, const char* name, std::uint32_t result);
inline bool succeeded(ProfilerCall call, std::uint32_t result) {
  return profiler_succeeded(static_cast<std::uint32_t>(call), name_of(call), result);
}

}  // namespace llmprof::collect::cupti
