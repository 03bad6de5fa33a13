#include "record/log/cuda_losses.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string_view>

namespace llmprof::record {
namespace {

// By the numbers that the collector gives its calls (libs/collect/cuda/cupti_library.h).
constexpr std::string_view kCalls[] = {
    "",
    "cuptiGetVersion",
    "cuptiSubscribe",
    "cuptiEnableCallback",
    "cuptiActivityEnable",
    "cuptiActivityDisable",
    "cuptiActivityRegisterCallbacks",
    "cuptiActivityGetNextRecord",
    "cuptiActivityFlushAll",
    "cuptiActivityRegisterTimestampCallback",
    "cuptiActivitySetAttribute",
    "cuptiActivityGetNumDroppedRecords",
    "cuptiGetGraphNodeId",
    "cuptiGetGraphExecId",
    "cuptiGetGraphId",
    "cuptiGetDeviceId",
    "cuptiEnableDomain",
};
constexpr std::uint32_t kFatal = 17, kBufferPool = 18;

// By the numbers that its counters give theirs (libs/collect/cuda/counters/profiler_library.h and, from 64 on,
// pc_library.h).
constexpr std::string_view kProfilerCalls[] = {
    "",
    "cuptiProfilerInitialize",
    "cuptiProfilerDeInitialize",
    "cuptiDeviceGetChipName",
    "cuptiProfilerHostInitialize",
    "cuptiProfilerHostDeinitialize",
    "cuptiProfilerHostConfigAddMetrics",
    "cuptiProfilerHostGetConfigImageSize",
    "cuptiProfilerHostGetConfigImage",
    "cuptiProfilerHostGetNumOfPasses",
    "cuptiProfilerHostEvaluateToGpuValues",
    "cuptiRangeProfilerEnable",
    "cuptiRangeProfilerDisable",
    "cuptiRangeProfilerSetConfig",
    "cuptiRangeProfilerStart",
    "cuptiRangeProfilerStop",
    "cuptiRangeProfilerPushRange",
    "cuptiRangeProfilerPopRange",
    "cuptiRangeProfilerDecodeData",
    "cuptiRangeProfilerGetCounterDataSize",
    "cuptiRangeProfilerCounterDataImageInitialize",
    "cuptiRangeProfilerGetCounterDataInfo",
    "cuptiRangeProfilerCounterDataGetRangeInfo",
};
constexpr std::string_view kSamplingCalls[] = {
    "",
    "cuptiPCSamplingEnable",
    "cuptiPCSamplingDisable",
    "cuptiPCSamplingGetNumStallReasons",
    "cuptiPCSamplingGetStallReasons",
    "cuptiPCSamplingSetConfigurationAttribute",
    "cuptiPCSamplingStart",
    "cuptiPCSamplingStop",
    "cuptiPCSamplingGetData",
};
constexpr std::uint32_t kProfilerMemory = 23, kSamplingLoad = 64, kSamplingMemory = 73;

// CUPTI's results that its callers meet, in our words.
constexpr std::pair<std::uint32_t, std::string_view> kResults[] = {
    {1, "invalid parameter"},
    {2, "invalid device"},
    {3, "invalid context"},
    {7, "invalid operation"},
    {8, "out of memory"},
    {9, "hardware error"},
    {10, "parameter too small"},
    {11, "not implemented"},
    {12, "limit reached"},
    {13, "not ready"},
    {14, "not compatible"},
    {15, "not initialised"},
    {19, "invalid handle"},
    {20, "invalid stream"},
    {21, "invalid kind of activity"},
    {23, "disabled"},
    {26, "hardware busy"},
    {27, "not supported"},
    {33, "not supported on a virtual device"},
    {35, "insufficient privileges"},
    {36, "the older profiler interface is in use"},
    {39, "another profiler is subscribed"},
    {40, "insufficient privileges on a virtual device"},
    {41, "not supported with confidential computing"},
    {43, "not supported with MIG"},
    {45, "not supported on WSL"},
    {999, "unknown"},
};

std::string error_number(std::uint32_t error) {
  for (const auto& [number, meaning] : kResults) {
    if (number == error) return fmt::format("error {} ({})", error, meaning);
  }
  return fmt::format("error {}", error);
}

std::string failed(std::span<const std::string_view> calls, std::string_view other, std::uint64_t detail) {
  const auto call = detail >> 32;
  return fmt::format("{} failed with {}", call > 0 && call < calls.size() ? calls[call] : other,
                     error_number(static_cast<std::uint32_t>(detail)));
}

}  // namespace

std::string cupti_error_text(std::uint64_t detail) {
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<std::uint32_t>(detail >> 32);
  if (call == kBufferPool)
    return fmt::format("no memory for buffers: {}", std::strerror(static_cast<int>(error & 0xfff)));
  if (call == kFatal) return "CUPTI reported a fatal " + error_number(error);
  return failed(kCalls, "a call of CUPTI", detail);
}

std::string profiler_error_text(std::uint64_t detail) {
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<std::uint32_t>(detail >> 32);
  if (call == kSamplingLoad) return "CUPTI has no PC sampling: a function is missing";
  if (call == kProfilerMemory || call == kSamplingMemory) {
    return fmt::format("no memory for counters: {}", std::strerror(static_cast<int>(error & 0xfff)));
  }
  constexpr std::string_view kOther = "a call of CUPTI's profilers";
  if (call < kSamplingLoad) return failed(kProfilerCalls, kOther, detail);
  return failed(kSamplingCalls, kOther, error | std::uint64_t{call - kSamplingLoad} << 32);
}

}  // namespace llmprof::record
