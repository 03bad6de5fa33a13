#include "record/cuda_losses.h"

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
std::string_view words(std::uint32_t error) {
  switch (error) {
    case 1:
      return "invalid parameter";
    case 2:
      return "invalid device";
    case 3:
      return "invalid context";
    case 7:
      return "invalid operation";
    case 8:
      return "out of memory";
    case 9:
      return "hardware error";
    case 10:
      return "parameter too small";
    case 11:
      return "not implemented";
    case 12:
      return "limit reached";
    case 13:
      return "not ready";
    case 14:
      return "not compatible";
    case 15:
      return "not initialised";
    case 19:
      return "invalid handle";
    case 20:
      return "invalid stream";
    case 21:
      return "invalid kind of activity";
    case 23:
      return "disabled";
    case 26:
      return "hardware busy";
    case 27:
      return "not supported";
    case 33:
      return "not supported on a virtual device";
    case 35:
      return "insufficient privileges";
    case 36:
      return "the older profiler interface is in use";
    case 39:
      return "another profiler is subscribed";
    case 40:
      return "insufficient privileges on a virtual device";
    case 41:
      return "not supported with confidential computing";
    case 43:
      return "not supported with MIG";
    case 45:
      return "not supported on WSL";
    case 999:
      return "unknown";
    default:
      return "";
  }
}

std::string error_number(std::uint32_t error) {
  const std::string_view meaning = words(error);
  return meaning.empty() ? fmt::format("error {}", error) : fmt::format("error {} ({})", error, meaning);
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
