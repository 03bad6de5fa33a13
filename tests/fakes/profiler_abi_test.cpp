// The fakes' reading of CUPTI's profilers against the headers themselves. Nothing runs: it compiles or not.
#include "profiler_abi.h"

#if __has_include(<cupti_range_profiler.h>) && __has_include(<cupti_pmsampling.h>)
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

// One field, and the size that a caller gives.
#define SAME(ours, field, theirs, member)                                  \
  static_assert(offsetof(fake::ours, field) == offsetof(theirs, member) && \
                sizeof(fake::ours::field) == sizeof(theirs::member))
#define SAME_BYTES(ours, last, theirs) \
  static_assert(sizeof(fake::ours) == sizeof(theirs) && FAKE_PARAMS_BYTES(ours, last) == theirs##_STRUCT_SIZE)
#define SAME_VALUE(ours, theirs) static_assert(static_cast<int>(fake::ours) == static_cast<int>(theirs))

static_assert(sizeof(fake::ProfilerParams) == CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
SAME_BYTES(ChipNameParams, chip, CUpti_Device_GetChipName_Params);
SAME_BYTES(AvailabilityParams, image, CUpti_Profiler_GetCounterAvailability_Params);
SAME_BYTES(HostInitializeParams, host, CUpti_Profiler_Host_Initialize_Params);
SAME(HostInitializeParams, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME_BYTES(HostParams, host, CUpti_Profiler_Host_Deinitialize_Params);
SAME_BYTES(SupportedChipsParams, names, CUpti_Profiler_Host_GetSupportedChips_Params);
SAME_BYTES(BaseMetricsParams, count, CUpti_Profiler_Host_GetBaseMetrics_Params);
SAME(BaseMetricsParams, names, CUpti_Profiler_Host_GetBaseMetrics_Params, ppMetricNames);
SAME_BYTES(SubMetricsParams, names, CUpti_Profiler_Host_GetSubMetrics_Params);
SAME(SubMetricsParams, count, CUpti_Profiler_Host_GetSubMetrics_Params, numOfSubmetrics);
SAME_BYTES(MetricPropertiesParams, metric_type, CUpti_Profiler_Host_GetMetricProperties_Params);
SAME(MetricPropertiesParams, unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit);
SAME_BYTES(HostRangeNameParams, name, CUpti_Profiler_Host_GetRangeName_Params);
SAME_BYTES(EvaluateParams, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME(EvaluateParams, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME(EvaluateParams, metrics, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SAME_BYTES(AddMetricsParams, metric_count, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME_BYTES(ConfigSizeParams, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME_BYTES(ConfigImageParams, image, CUpti_Profiler_Host_GetConfigImage_Params);
SAME_BYTES(PassesParams, passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME_BYTES(MostPerPassParams, metrics, CUpti_Profiler_Host_GetMaxNumHardwareMetricsPerPass_Params);

SAME_BYTES(RangeEnableParams, object, CUpti_RangeProfiler_Enable_Params);
SAME_BYTES(RangeParams, object, CUpti_RangeProfiler_Start_Params);
SAME_BYTES(RangeParams, object, CUpti_RangeProfiler_PopRange_Params);
SAME_BYTES(RangeParams, object, CUpti_RangeProfiler_Disable_Params);
SAME_BYTES(RangeConfigParams, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params);
SAME(RangeConfigParams, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME(RangeConfigParams, replay_mode, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME(RangeConfigParams, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME(RangeConfigParams, min_nesting_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
SAME(RangeConfigParams, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SAME_BYTES(RangeStopParams, all_passes_submitted, CUpti_RangeProfiler_Stop_Params);
SAME_BYTES(RangePushParams, name, CUpti_RangeProfiler_PushRange_Params);
SAME_BYTES(RangeDecodeParams, dropped, CUpti_RangeProfiler_DecodeData_Params);
SAME_BYTES(RangeDataSizeParams, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME(RangeDataSizeParams, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SAME_BYTES(DataInitializeParams, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
SAME_BYTES(RangeDataInfoParams, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params);
SAME_BYTES(RangeInfoParams, name, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
SAME_VALUE(kAutoRange, CUPTI_AutoRange);
SAME_VALUE(kUserRange, CUPTI_UserRange);
SAME_VALUE(kKernelReplay, CUPTI_KernelReplay);
SAME_VALUE(kUserReplay, CUPTI_UserReplay);

SAME_BYTES(PmConfigParams, append, CUpti_PmSampling_SetConfig_Params);
SAME(PmConfigParams, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
SAME_BYTES(PmEnableParams, object, CUpti_PmSampling_Enable_Params);
SAME_BYTES(PmParams, object, CUpti_PmSampling_Start_Params);
SAME_BYTES(PmDecodeParams, overflow, CUpti_PmSampling_DecodeData_Params);
SAME(PmDecodeParams, why, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
SAME_BYTES(PmAvailabilityParams, image, CUpti_PmSampling_GetCounterAvailability_Params);
SAME_BYTES(PmDataSizeParams, bytes, CUpti_PmSampling_GetCounterDataSize_Params);
SAME_BYTES(DataInitializeParams, image, CUpti_PmSampling_CounterDataImage_Initialize_Params);
SAME_BYTES(PmDataInfoParams, completed, CUpti_PmSampling_GetCounterDataInfo_Params);
SAME_BYTES(PmSampleInfoParams, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
SAME_VALUE(kImageFull, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
SAME_VALUE(kByTime, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);

static_assert(sizeof(fake::PcStall) == sizeof(CUpti_PCSamplingStallReason));
static_assert(sizeof(fake::PcPlace) == sizeof(CUpti_PCSamplingPCData));
SAME(PcPlace, function, CUpti_PCSamplingPCData, functionName);
SAME(PcPlace, stalls, CUpti_PCSamplingPCData, stallReason);
static_assert(sizeof(fake::PcData) == sizeof(CUpti_PCSamplingData));
SAME(PcData, place, CUpti_PCSamplingData, pPcData);
SAME(PcData, foreign_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
SAME(PcData, buffer_full, CUpti_PCSamplingData, hardwareBufferFull);
static_assert(sizeof(fake::PcAttributeValue) == sizeof(CUpti_PCSamplingConfigurationInfo));
SAME(PcAttributeValue, value, CUpti_PCSamplingConfigurationInfo, attributeData);
static_assert(FAKE_PARAMS_BYTES(PcConfigParams, attributes) == CUpti_PCSamplingConfigurationInfoParamsSize);
static_assert(FAKE_PARAMS_BYTES(PcParams, context) == CUpti_PCSamplingEnableParamsSize);
static_assert(FAKE_PARAMS_BYTES(PcGetDataParams, data) == CUpti_PCSamplingGetDataParamsSize);
static_assert(FAKE_PARAMS_BYTES(PcReasonCountParams, count) == CUpti_PCSamplingGetNumStallReasonsParamsSize);
static_assert(FAKE_PARAMS_BYTES(PcReasonsParams, names) == CUpti_PCSamplingGetStallReasonsParamsSize);
static_assert(FAKE_PARAMS_BYTES(SourceParams, folder) == CUpti_GetSassToSourceCorrelationParamsSize);
SAME(SourceParams, offset, CUpti_GetSassToSourceCorrelationParams, pcOffset);
static_assert(FAKE_PARAMS_BYTES(CubinCrcParams, crc) == CUpti_GetCubinCrcParamsSize);
static_assert(sizeof(fake::ModuleData) == sizeof(CUpti_ModuleResourceData));
static_assert(fake::kReasonBytes == CUPTI_STALL_REASON_STRING_SIZE);
SAME_VALUE(kPcPeriod, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
SAME_VALUE(kPcBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
SAME_VALUE(kPcStartStop, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
#endif
