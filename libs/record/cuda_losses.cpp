#include "record/cuda_losses.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "wire/cupti_calls.h"

namespace llmprof::record {
namespace {

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

std::string failed(const char* call, std::string_view otherwise, std::uint32_t error) {
  return fmt::format("{} failed with {}", call != nullptr ? call : otherwise, error_number(error));
}

std::string no_memory(std::string_view purpose, std::uint32_t error) {
  return fmt::format("no memory for {}: {}", purpose, std::strerror(static_cast<int>(error & 0xfff)));
}

}  // namespace

std::string cupti_error_text(std::uint64_t detail) {
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<wire::CuptiCall>(detail >> 32);
  if (call == wire::CuptiCall::kBufferPool) return no_memory("buffers", error);
  if (call == wire::CuptiCall::kFatal) return "CUPTI reported a fatal " + error_number(error);
  return failed(wire::name_of(call), "a call of CUPTI", error);
}

std::string profiler_error_text(std::uint64_t detail) {
  using wire::ProfilerCall;
  const auto error = static_cast<std::uint32_t>(detail);
  const auto call = static_cast<ProfilerCall>(detail >> 32);
  if (call == ProfilerCall::kSamplingLoad) return "CUPTI has no PC sampling: a function is missing";
  if (call == ProfilerCall::kMemory || call == ProfilerCall::kSamplingMemory) return no_memory("counters", error);
  return failed(wire::name_of(call), "a call of CUPTI's profilers", error);
}

}  // namespace llmprof::record
