// Our declarations of CUPTI's profiler host interface and PM sampling against the real headers.

#include "wire/cupti_host_abi.h"

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

namespace llmprof::wire::cupti {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(ours{}.size == theirs##_STRUCT_SIZE && sizeof(ours) == sizeof(theirs))
#define SAME(ours, theirs, our_member, their_member)                            \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))

SAME_SIZE(HostInitialize, CUpti_Profiler_Host_Initialize_Params);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, profiler, profilerType);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, chip, pChipName);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, availability, pCounterAvailabilityImage);
SAME(HostInitialize, CUpti_Profiler_Host_Initialize_Params, host, pHostObject);
SAME_SIZE(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params);
SAME(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params, host, pHostObject);
SAME_SIZE(HostChips, CUpti_Profiler_Host_GetSupportedChips_Params);
SAME(HostChips, CUpti_Profiler_Host_GetSupportedChips_Params, count, numChips);
SAME(HostChips, CUpti_Profiler_Host_GetSupportedChips_Params, names, ppChipNames);
SAME_SIZE(HostBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params);
SAME(HostBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params, host, pHostObject);
SAME(HostBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params, type, metricType);
SAME(HostBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params, names, ppMetricNames);
SAME(HostBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params, count, numMetrics);
SAME_SIZE(HostSubMetrics, CUpti_Profiler_Host_GetSubMetrics_Params);
SAME(HostSubMetrics, CUpti_Profiler_Host_GetSubMetrics_Params, metric, pMetricName);
SAME(HostSubMetrics, CUpti_Profiler_Host_GetSubMetrics_Params, count, numOfSubmetrics);
SAME(HostSubMetrics, CUpti_Profiler_Host_GetSubMetrics_Params, names, ppSubMetrics);
SAME_SIZE(HostMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params);
SAME(HostMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params, metric, pMetricName);
SAME(HostMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params, description, pDescription);
SAME(HostMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params, hw_unit, pHwUnit);
SAME(HostMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params, dim_unit, pDimUnit);
SAME(HostMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params, type, metricType);
SAME_SIZE(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, host, pHostObject);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, image, pCounterDataImage);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, image_bytes, counterDataImageSize);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, range, rangeIndex);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, metrics, ppMetricNames);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, count, numMetrics);
SAME(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params, values, pMetricValues);
SAME_SIZE(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, metrics, ppMetricNames);
SAME(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, count, numMetrics);
SAME_SIZE(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME(HostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params, bytes, configImageSize);
SAME_SIZE(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params);
SAME(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params, bytes, configImageSize);
SAME(HostConfig, CUpti_Profiler_Host_GetConfigImage_Params, image, pConfigImage);
SAME_SIZE(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, bytes, configImageSize);
SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, image, pConfigImage);
SAME(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, passes, numOfPasses);
SAME_SIZE(DeviceChipName, CUpti_Device_GetChipName_Params);
SAME(DeviceChipName, CUpti_Device_GetChipName_Params, device, deviceIndex);
SAME(DeviceChipName, CUpti_Device_GetChipName_Params, chip, pChipName);
SAME_SIZE(ProfilerInitialize, CUpti_Profiler_Initialize_Params);

SAME_SIZE(PmEnable, CUpti_PmSampling_Enable_Params);
SAME(PmEnable, CUpti_PmSampling_Enable_Params, device, deviceIndex);
SAME(PmEnable, CUpti_PmSampling_Enable_Params, object, pPmSamplingObject);
SAME_SIZE(PmObject, CUpti_PmSampling_Disable_Params);
SAME_SIZE(PmObject, CUpti_PmSampling_Start_Params);
SAME_SIZE(PmObject, CUpti_PmSampling_Stop_Params);
SAME(PmObject, CUpti_PmSampling_Start_Params, object, pPmSamplingObject);
SAME_SIZE(PmSetConfig, CUpti_PmSampling_SetConfig_Params);
SAME(PmSetConfig, CUpti_PmSampling_SetConfig_Params, config_bytes, configSize);
SAME(PmSetConfig, CUpti_PmSampling_SetConfig_Params, config, pConfig);
SAME(PmSetConfig, CUpti_PmSampling_SetConfig_Params, hardware_bytes, hardwareBufferSize);
SAME(PmSetConfig, CUpti_PmSampling_SetConfig_Params, interval, samplingInterval);
SAME(PmSetConfig, CUpti_PmSampling_SetConfig_Params, trigger, triggerMode);
SAME(PmSetConfig, CUpti_PmSampling_SetConfig_Params, append, hwBufferAppendMode);
SAME_SIZE(PmDataSize, CUpti_PmSampling_GetCounterDataSize_Params);
SAME(PmDataSize, CUpti_PmSampling_GetCounterDataSize_Params, metrics, pMetricNames);
SAME(PmDataSize, CUpti_PmSampling_GetCounterDataSize_Params, count, numMetrics);
SAME(PmDataSize, CUpti_PmSampling_GetCounterDataSize_Params, most_samples, maxSamples);
SAME(PmDataSize, CUpti_PmSampling_GetCounterDataSize_Params, bytes, counterDataSize);
SAME_SIZE(PmDataInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params);
SAME(PmDataInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params, bytes, counterDataSize);
SAME(PmDataInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params, image, pCounterData);
SAME_SIZE(PmDecode, CUpti_PmSampling_DecodeData_Params);
SAME(PmDecode, CUpti_PmSampling_DecodeData_Params, image, pCounterDataImage);
SAME(PmDecode, CUpti_PmSampling_DecodeData_Params, bytes, counterDataImageSize);
SAME(PmDecode, CUpti_PmSampling_DecodeData_Params, stop, decodeStopReason);
SAME(PmDecode, CUpti_PmSampling_DecodeData_Params, overflow, overflow);
SAME_SIZE(PmDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params);
SAME(PmDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params, image, pCounterDataImage);
SAME(PmDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params, total, numTotalSamples);
SAME(PmDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params, populated, numPopulatedSamples);
SAME(PmDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params, completed, numCompletedSamples);
SAME_SIZE(PmSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
SAME(PmSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sample, sampleIndex);
SAME(PmSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params, begin_ns, startTimestamp);
SAME(PmSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params, end_ns, endTimestamp);

static_assert(static_cast<int>(ProfilerType::kPmSampling) == CUPTI_PROFILER_TYPE_PM_SAMPLING);
static_assert(static_cast<int>(ProfilerType::kRange) == CUPTI_PROFILER_TYPE_RANGE_PROFILER);
static_assert(static_cast<int>(MetricType::kThroughput) == CUPTI_METRIC_TYPE_THROUGHPUT);
static_assert(static_cast<int>(Trigger::kTimeInterval) == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
static_assert(static_cast<int>(DecodeStop::kImageFull) == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
static_assert(static_cast<int>(DecodeStop::kEndOfRecords) == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS);
static_assert(static_cast<int>(Append::kKeepLatest) == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
static_assert(kInvalidOperation == CUPTI_ERROR_INVALID_OPERATION && kOutOfMemory == CUPTI_ERROR_OUT_OF_MEMORY &&
              kInvalidMetricName == CUPTI_ERROR_INVALID_METRIC_NAME && kHardwareBusy == CUPTI_ERROR_HARDWARE_BUSY &&
              kNotSupported == CUPTI_ERROR_NOT_SUPPORTED &&
              kInsufficientPrivileges == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES &&
              kVirtualInsufficientPrivileges == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);

}  // namespace
}  // namespace llmprof::wire::cupti
