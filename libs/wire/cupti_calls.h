#pragma once
// The functions of CUPTI that the collector calls: the name by which each is found in the library, and the number by
// which a loss record names the one that failed. The collector and the recorder read the same rows.

#include <cstdint>

namespace llmprof::wire {

// Enumerator, number, name. Numbers are stored in files: never renumber.
#define LLMPROF_CUPTI_CALLS(X)                                           \
  X(kGetVersion, 1, "cuptiGetVersion")                                   \
  X(kSubscribe, 2, "cuptiSubscribe")                                     \
  X(kEnableCallback, 3, "cuptiEnableCallback")                           \
  X(kActivityEnable, 4, "cuptiActivityEnable")                           \
  X(kActivityDisable, 5, "cuptiActivityDisable")                         \
  X(kRegisterCallbacks, 6, "cuptiActivityRegisterCallbacks")             \
  X(kGetNextRecord, 7, "cuptiActivityGetNextRecord")                     \
  X(kFlushAll, 8, "cuptiActivityFlushAll")                               \
  X(kRegisterTimestamp, 9, "cuptiActivityRegisterTimestampCallback")     \
  X(kSetAttribute, 10, "cuptiActivitySetAttribute")                      \
  X(kGetDropped, 11, "cuptiActivityGetNumDroppedRecords")                \
  X(kGetGraphNodeId, 12, "cuptiGetGraphNodeId")                          \
  X(kGetGraphExecId, 13, "cuptiGetGraphExecId")                          \
  X(kGetGraphId, 14, "cuptiGetGraphId")                                  \
  X(kGetDeviceId, 15, "cuptiGetDeviceId")                                \
  X(kEnableDomain, 16, "cuptiEnableDomain")                              \
  X(kFatal, 17, "CUPTI itself")             /* it reported an error */   \
  X(kBufferPool, 18, "mmap of the buffers") /* the result is an errno */ \
  X(kSubscribeNamed, 19, "cuptiSubscribe_v2")

// The range profiler's below 64, PC sampling's from there on.
#define LLMPROF_PROFILER_CALLS(X)                                                        \
  X(kInitialize, 1, "cuptiProfilerInitialize")                                           \
  X(kDeinitialize, 2, "cuptiProfilerDeInitialize")                                       \
  X(kChipName, 3, "cuptiDeviceGetChipName")                                              \
  X(kHostInitialize, 4, "cuptiProfilerHostInitialize")                                   \
  X(kHostDeinitialize, 5, "cuptiProfilerHostDeinitialize")                               \
  X(kHostAddMetrics, 6, "cuptiProfilerHostConfigAddMetrics")                             \
  X(kHostImageSize, 7, "cuptiProfilerHostGetConfigImageSize")                            \
  X(kHostImage, 8, "cuptiProfilerHostGetConfigImage")                                    \
  X(kHostPasses, 9, "cuptiProfilerHostGetNumOfPasses")                                   \
  X(kHostEvaluate, 10, "cuptiProfilerHostEvaluateToGpuValues")                           \
  X(kRangeEnable, 11, "cuptiRangeProfilerEnable")                                        \
  X(kRangeDisable, 12, "cuptiRangeProfilerDisable")                                      \
  X(kRangeSetConfig, 13, "cuptiRangeProfilerSetConfig")                                  \
  X(kRangeStart, 14, "cuptiRangeProfilerStart")                                          \
  X(kRangeStop, 15, "cuptiRangeProfilerStop")                                            \
  X(kRangePush, 16, "cuptiRangeProfilerPushRange")                                       \
  X(kRangePop, 17, "cuptiRangeProfilerPopRange")                                         \
  X(kRangeDecode, 18, "cuptiRangeProfilerDecodeData")                                    \
  X(kRangeDataSize, 19, "cuptiRangeProfilerGetCounterDataSize")                          \
  X(kRangeDataInitialize, 20, "cuptiRangeProfilerCounterDataImageInitialize")            \
  X(kRangeDataInfo, 21, "cuptiRangeProfilerGetCounterDataInfo")                          \
  X(kRangeInfo, 22, "cuptiRangeProfilerCounterDataGetRangeInfo")                         \
  X(kMemory, 23, "mmap of a counter image")                 /* the result is an errno */ \
  X(kSamplingLoad, 64, "a function of CUPTI's PC sampling") /* it is missing */          \
  X(kSamplingEnable, 65, "cuptiPCSamplingEnable")                                        \
  X(kSamplingDisable, 66, "cuptiPCSamplingDisable")                                      \
  X(kCountReasons, 67, "cuptiPCSamplingGetNumStallReasons")                              \
  X(kGetReasons, 68, "cuptiPCSamplingGetStallReasons")                                   \
  X(kSamplingConfigure, 69, "cuptiPCSamplingSetConfigurationAttribute")                  \
  X(kSamplingStart, 70, "cuptiPCSamplingStart")                                          \
  X(kSamplingStop, 71, "cuptiPCSamplingStop")                                            \
  X(kSamplingGetData, 72, "cuptiPCSamplingGetData")                                      \
  X(kSamplingMemory, 73, "mmap") /* the result is an errno */                            \
  X(kSassToSource, 74, "cuptiGetSassToSourceCorrelation")                                \
  X(kCubinCrc, 75, "cuptiGetCubinCrc")

#define LLMPROF_ENUMERATOR(enumerator, number, name) enumerator = number,
#define LLMPROF_NAME_OF(enumerator, number, name) \
  case number:                                    \
    return name;

// The upper half of a detail of LossKind::kCuptiError.
enum class CuptiCall : std::uint32_t { LLMPROF_CUPTI_CALLS(LLMPROF_ENUMERATOR) };
// The upper half of a detail of LossKind::kCountersFailed.
enum class ProfilerCall : std::uint32_t { LLMPROF_PROFILER_CALLS(LLMPROF_ENUMERATOR) };

// Null: a number of a newer version.
constexpr const char* name_of(CuptiCall call) {
  switch (static_cast<std::uint32_t>(call)) { LLMPROF_CUPTI_CALLS(LLMPROF_NAME_OF) }
  return nullptr;
}
constexpr const char* name_of(ProfilerCall call) {
  switch (static_cast<std::uint32_t>(call)) { LLMPROF_PROFILER_CALLS(LLMPROF_NAME_OF) }
  return nullptr;
}

#undef LLMPROF_ENUMERATOR
#undef LLMPROF_NAME_OF
#undef LLMPROF_CUPTI_CALLS
#undef LLMPROF_PROFILER_CALLS

}  // namespace llmprof::wire
