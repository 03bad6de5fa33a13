#include "record/cuda_losses.h"

#include <fmt/format.h>

#include <cstring>
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

}  // namespace

std::string cupti_error_text(std::uint64_t detail) {
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<std::uint32_t>(detail >> 32);
  if (call == kBufferPool)
    return fmt::format("no memory for buffers: {}", std::strerror(static_cast<int>(error & 0xfff)));
  const std::string_view meaning = words(error);
  const std::string number =
      meaning.empty() ? fmt::format("error {}", error) : fmt::format("error {} ({})", error, meaning);
  if (call == kFatal) return "CUPTI reported a fatal " + number;
  const std::string_view name = call > 0 && call < std::size(kCalls) ? kCalls[call] : "a call of CUPTI";
  return fmt::format("{} failed with {}", name, number);
}

}  // namespace llmprof::record
