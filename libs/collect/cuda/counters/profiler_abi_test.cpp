// Our declarations of CUPTI's profilers against the real headers.

#include "collect/cuda/counters/profiler_library.h"

#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <gtest/gtest.h>

namespace llmprof::collect::cupti {
namespace {

#define SAME(ours, theirs, our_member, their_member)                            \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))
#define SAME_SIZE(ours, theirs)                                                      \
  static_assert(ours{}.size == theirs##_STRUCT_SIZE);                               \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs)); \
  SAME(ours, theirs, size, structSize);                                              \
  SAME(ours, theirs, priv, pPriv)

SAME_SIZE(ProfilerInitialize, CUpti_Profiler_Initialize_Params);
SAME_SIZE(ProfilerInitialize, CUpti_Profiler_DeInitialize_Params);

SAME_SIZE(DeviceChipName, CUpti_Device_GetChipName_Params);
SAME(DeviceChipName, CUpti_Device_GetChipName_Params, device, deviceIndex);
SAME(DeviceChipName, CUpti_Device_GetChipName_Params, chip, pChipName);

SAME_SIZE(HostInitialize, CUpti_Profiler_Host_Initialize_Params);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, profiler, profilerType);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, chip, pChipName);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, availability, pCounterAvailabilityImage);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, host, pHostObject);

SAME_SIZE(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params);
SAME(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params, host, pHostObject);

SAME_SIZE(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, host, pHostObject);
SAME(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, metrics, ppMetricNames);
SAME(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, count, numMetrics);

SAME_SIZE(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params, host, pHostObject);
SAME(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params, bytes, configImageSize);

SAME_SIZE(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params);
SAME(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params, host, pHostObject);
SAME(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params, bytes, configImageSize);
SAME(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params, image, pConfigImage);

SAME_SIZE(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, bytes, configImageSize);
SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, image, pConfigImage);
SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, passes, numOfPasses);

SAME_SIZE(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, host, pHostObject);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, image, pCounterDataImage);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, image_bytes, counterDataImageSize);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, range, rangeIndex);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, metrics, ppMetricNames);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, count, numMetrics);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, values, pMetricValues);

SAME_SIZE(RangeEnable, CUpti_RangeProfiler_Enable_Params);
SAME(RangeEnable, CUpti_RangeProfiler_Enable_Params, context, ctx);
SAME(RangeEnable, CUpti_RangeProfiler_Enable_Params, profiler, pRangeProfilerObject);

SAME_SIZE(RangeCall, CUpti_RangeProfiler_Disable_Params);
SAME(RangeCall, CUpti_RangeProfiler_Disable_Params, profiler, pRangeProfilerObject);
SAME_SIZE(RangeCall, CUpti_RangeProfiler_Start_Params);
SAME(RangeCall, CUpti_RangeProfiler_Start_Params, profiler, pRangeProfilerObject);
SAME_SIZE(RangeCall, CUpti_RangeProfiler_PopRange_Params);
SAME(RangeCall, CUpti_RangeProfiler_PopRange_Params, profiler, pRangeProfilerObject);

SAME_SIZE(RangeConfig, CUpti_RangeProfiler_SetConfig_Params);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, profiler, pRangeProfilerObject);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, image_bytes, configSize);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, image, pConfig);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, data_bytes, counterDataImageSize);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, data, pCounterDataImage);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, range, range);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, replay, replayMode);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, most_ranges, maxRangesPerPass);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, nesting_levels, numNestingLevels);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, first_level, minNestingLevel);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, pass, passIndex);
SAME(RangeConfig, CUpti_RangeProfiler_SetConfig_Params, target_level, targetNestingLevel);

SAME_SIZE(RangeStop, CUpti_RangeProfiler_Stop_Params);
SAME(RangeStop, CUpti_RangeProfiler_Stop_Params, profiler, pRangeProfilerObject);
SAME(RangeStop, CUpti_RangeProfiler_Stop_Params, pass, passIndex);
SAME(RangeStop, CUpti_RangeProfiler_Stop_Params, target_level, targetNestingLevel);
SAME(RangeStop, CUpti_RangeProfiler_Stop_Params, all_passes, isAllPassSubmitted);

SAME_SIZE(RangePush, CUpti_RangeProfiler_PushRange_Params);
SAME(RangePush, CUpti_RangeProfiler_PushRange_Params, profiler, pRangeProfilerObject);
SAME(RangePush, CUpti_RangeProfiler_PushRange_Params, name, pRangeName);

SAME_SIZE(RangeDecode, CUpti_RangeProfiler_DecodeData_Params);
SAME(RangeDecode, CUpti_RangeProfiler_DecodeData_Params, profiler, pRangeProfilerObject);
SAME(RangeDecode, CUpti_RangeProfiler_DecodeData_Params, dropped, numOfRangeDropped);

SAME_SIZE(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, profiler, pRangeProfilerObject);
SAME(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, metrics, pMetricNames);
SAME(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, count, numMetrics);
SAME(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, most_ranges, maxNumOfRanges);
SAME(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, most_nodes, maxNumRangeTreeNodes);
SAME(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, data_bytes, counterDataSize);

SAME_SIZE(RangeDataInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
SAME(RangeDataInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, profiler, pRangeProfilerObject);
SAME(RangeDataInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, data_bytes, counterDataSize);
SAME(RangeDataInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, data, pCounterData);

SAME_SIZE(RangeDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params);
SAME(RangeDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params, data, pCounterDataImage);
SAME(RangeDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params, data_bytes, counterDataImageSize);
SAME(RangeDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params, ranges, numTotalRanges);

SAME_SIZE(RangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
SAME(RangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, data, pCounterDataImage);
SAME(RangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, data_bytes, counterDataImageSize);
SAME(RangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, range, rangeIndex);
SAME(RangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, delimiter, rangeDelimiter);
SAME(RangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, name, rangeName);

TEST(ProfilerAbi, NumbersAreTheHeaders) {
  EXPECT_EQ(static_cast<int>(kInvalidParameter), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(static_cast<int>(kInvalidMetricName), CUPTI_ERROR_INVALID_METRIC_NAME);
  EXPECT_EQ(static_cast<int>(kHardwareBusy), CUPTI_ERROR_HARDWARE_BUSY);
  EXPECT_EQ(static_cast<int>(kForbidden), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  EXPECT_EQ(static_cast<int>(kOldProfilerInUse), CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED);
  EXPECT_EQ(static_cast<int>(kForbiddenOnVirtualDevice), CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
  EXPECT_EQ(static_cast<int>(ProfilerType::kRange), CUPTI_PROFILER_TYPE_RANGE_PROFILER);
  EXPECT_EQ(static_cast<int>(ProfilerType::kPmSampling), CUPTI_PROFILER_TYPE_PM_SAMPLING);
  EXPECT_EQ(static_cast<int>(kAutomaticRanges), CUPTI_AutoRange);
  EXPECT_EQ(static_cast<int>(kUserRanges), CUPTI_UserRange);
  EXPECT_EQ(static_cast<int>(kKernelReplay), CUPTI_KernelReplay);
  EXPECT_EQ(static_cast<int>(kUserReplay), CUPTI_UserReplay);
}

}  // namespace
}  // namespace llmprof::collect::cupti
