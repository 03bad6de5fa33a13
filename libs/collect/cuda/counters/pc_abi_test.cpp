// Our declarations of CUPTI's PC sampling against the real headers.

#include "collect/cuda/counters/pc_abi.h"

#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <gtest/gtest.h>

namespace llmprof::collect::pc {
namespace {

#define SAME_FIELD(ours, theirs, our_member, their_member)                      \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))

static_assert(sizeof(Reason) == sizeof(CUpti_PCSamplingStallReason));
SAME_FIELD(Reason, CUpti_PCSamplingStallReason, index, pcSamplingStallReasonIndex);
SAME_FIELD(Reason, CUpti_PCSamplingStallReason, samples, samples);

static_assert(sizeof(Place) == sizeof(CUpti_PCSamplingPCData) && alignof(Place) == alignof(CUpti_PCSamplingPCData));
SAME_FIELD(Place, CUpti_PCSamplingPCData, size, size);
SAME_FIELD(Place, CUpti_PCSamplingPCData, cubin, cubinCrc);
SAME_FIELD(Place, CUpti_PCSamplingPCData, offset, pcOffset);
SAME_FIELD(Place, CUpti_PCSamplingPCData, function_index, functionIndex);
SAME_FIELD(Place, CUpti_PCSamplingPCData, function, functionName);
SAME_FIELD(Place, CUpti_PCSamplingPCData, reason_count, stallReasonCount);
SAME_FIELD(Place, CUpti_PCSamplingPCData, reasons, stallReason);
SAME_FIELD(Place, CUpti_PCSamplingPCData, correlation, correlationId);

static_assert(sizeof(Data) == sizeof(CUpti_PCSamplingData) && alignof(Data) == alignof(CUpti_PCSamplingData));
SAME_FIELD(Data, CUpti_PCSamplingData, size, size);
SAME_FIELD(Data, CUpti_PCSamplingData, capacity, collectNumPcs);
SAME_FIELD(Data, CUpti_PCSamplingData, total_samples, totalSamples);
SAME_FIELD(Data, CUpti_PCSamplingData, dropped_samples, droppedSamples);
SAME_FIELD(Data, CUpti_PCSamplingData, count, totalNumPcs);
SAME_FIELD(Data, CUpti_PCSamplingData, remaining, remainingNumPcs);
SAME_FIELD(Data, CUpti_PCSamplingData, range, rangeId);
SAME_FIELD(Data, CUpti_PCSamplingData, places, pPcData);
SAME_FIELD(Data, CUpti_PCSamplingData, unknown_samples, nonUsrKernelsTotalSamples);
SAME_FIELD(Data, CUpti_PCSamplingData, buffer_full, hardwareBufferFull);

#define ATTRIBUTE(our_member, their_member) \
  SAME_FIELD(Attribute, CUpti_PCSamplingConfigurationInfo, our_member, their_member)
static_assert(sizeof(Attribute) == sizeof(CUpti_PCSamplingConfigurationInfo));
ATTRIBUTE(type, attributeType);
ATTRIBUTE(status, attributeStatus);
ATTRIBUTE(value.number, attributeData.samplingPeriodData.samplingPeriod);
ATTRIBUTE(value.number, attributeData.collectionModeData.collectionMode);
ATTRIBUTE(value.number, attributeData.enableStartStopControlData.enableStartStopControl);
ATTRIBUTE(value.number, attributeData.outputDataFormatData.outputDataFormat);
ATTRIBUTE(value.number, attributeData.workerThreadPeriodicSleepSpanData.workerThreadPeriodicSleepSpan);
ATTRIBUTE(value.bytes, attributeData.scratchBufferSizeData.scratchBufferSize);
ATTRIBUTE(value.bytes, attributeData.hardwareBufferSizeData.hardwareBufferSize);
ATTRIBUTE(value.buffer, attributeData.samplingDataBufferData.samplingDataBuffer);
ATTRIBUTE(value.reasons.indexes, attributeData.stallReasonData.pStallReasonIndex);

static_assert(sizeof(ConfigureParams) == CUpti_PCSamplingConfigurationInfoParamsSize);
SAME_FIELD(ConfigureParams, CUpti_PCSamplingConfigurationInfoParams, context, ctx);
SAME_FIELD(ConfigureParams, CUpti_PCSamplingConfigurationInfoParams, count, numAttributes);
SAME_FIELD(ConfigureParams, CUpti_PCSamplingConfigurationInfoParams, attributes, pPCSamplingConfigurationInfo);
static_assert(sizeof(ContextParams) == CUpti_PCSamplingEnableParamsSize);
static_assert(sizeof(ContextParams) == CUpti_PCSamplingDisableParamsSize);
static_assert(sizeof(ContextParams) == CUpti_PCSamplingStartParamsSize);
static_assert(sizeof(ContextParams) == CUpti_PCSamplingStopParamsSize);
SAME_FIELD(ContextParams, CUpti_PCSamplingEnableParams, context, ctx);
static_assert(sizeof(GetDataParams) == CUpti_PCSamplingGetDataParamsSize);
SAME_FIELD(GetDataParams, CUpti_PCSamplingGetDataParams, context, ctx);
SAME_FIELD(GetDataParams, CUpti_PCSamplingGetDataParams, data, pcSamplingData);
static_assert(sizeof(CountReasonsParams) == CUpti_PCSamplingGetNumStallReasonsParamsSize);
SAME_FIELD(CountReasonsParams, CUpti_PCSamplingGetNumStallReasonsParams, count, numStallReasons);
static_assert(sizeof(GetReasonsParams) == CUpti_PCSamplingGetStallReasonsParamsSize);
SAME_FIELD(GetReasonsParams, CUpti_PCSamplingGetStallReasonsParams, count, numStallReasons);
SAME_FIELD(GetReasonsParams, CUpti_PCSamplingGetStallReasonsParams, indexes, stallReasonIndex);
SAME_FIELD(GetReasonsParams, CUpti_PCSamplingGetStallReasonsParams, names, stallReasons);

static_assert(sizeof(SourceParams) == CUpti_GetSassToSourceCorrelationParamsSize);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, cubin, cubin);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, function, functionName);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, cubin_bytes, cubinSize);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, line, lineNumber);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, offset, pcOffset);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, file, fileName);
SAME_FIELD(SourceParams, CUpti_GetSassToSourceCorrelationParams, folder, dirName);
static_assert(sizeof(ChecksumParams) == CUpti_GetCubinCrcParamsSize);
SAME_FIELD(ChecksumParams, CUpti_GetCubinCrcParams, cubin_bytes, cubinSize);
SAME_FIELD(ChecksumParams, CUpti_GetCubinCrcParams, cubin, cubin);
SAME_FIELD(ChecksumParams, CUpti_GetCubinCrcParams, checksum, cubinCrc);

static_assert(sizeof(Module) == sizeof(CUpti_ModuleResourceData));
SAME_FIELD(Module, CUpti_ModuleResourceData, bytes, cubinSize);
SAME_FIELD(Module, CUpti_ModuleResourceData, cubin, pCubin);

TEST(PcAbi, NumbersAreTheHeaders) {
  EXPECT_EQ(int(kContinuous), int(CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS));
  EXPECT_EQ(int(kSamplingPeriod), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD));
  EXPECT_EQ(int(kStallReasons), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON));
  EXPECT_EQ(int(kScratchBufferSize), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE));
  EXPECT_EQ(int(kHardwareBufferSize), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE));
  EXPECT_EQ(int(kCollectionMode), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE));
  EXPECT_EQ(int(kStartStopControl), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL));
  EXPECT_EQ(int(kDataFormat), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT));
  EXPECT_EQ(int(kDataBuffer), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER));
  EXPECT_EQ(int(kWorkerSleepMs), int(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN));
  EXPECT_EQ(int(kParsed), int(CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED));
  EXPECT_EQ(int(kModuleLoaded), int(CUPTI_CBID_RESOURCE_MODULE_LOADED));
  EXPECT_EQ(kReasonNameBytes, std::size_t{CUPTI_STALL_REASON_STRING_SIZE});
}

}  // namespace
}  // namespace llmprof::collect::pc
