#include "collect/cuda/counters/profiler_library.h"

#include <dlfcn.h>
#include <stdio.h>

#include <atomic>

#include "collect/names.h"

namespace llmprof::collect::cupti {
namespace {

using wire::LossKind;

// One word a way to fail: what was said is not said again.
bool first_time(LossKind kind) {
  static constinit std::atomic<std::uint64_t> said;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<std::uint32_t>(kind);
  return (said.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

void state_forbidden(const char* name, std::uint32_t result) {
  const char* setting = result == kForbiddenOnVirtualDevice
                            ? "profiling is not enabled for this virtual GPU"
                            : "NVreg_RestrictProfilingToAdminUsers of the NVIDIA driver (RmProfilingAdminOnly)";
  count_loss_about(LossKind::kCountersForbidden, 1, intern(setting));
  if (!first_time(LossKind::kCountersForbidden)) return;
  note("counters", "hardware counters may not be read: %s. %s answered %u.", setting, name, result);
}

void state_held(const char* name, std::uint32_t result) {
  const char* who = result == kOldProfilerInUse ? "a client of CUPTI's older profilers in this process"
                                                : "another profiler, which CUPTI does not name";
  count_loss_about(LossKind::kCountersHeld, 1, intern(who));
  if (!first_time(LossKind::kCountersHeld)) return;
  note("counters", "hardware counters are held by %s. %s answered %u.", who, name, result);
}

void state_failed(ProfilerCall call, const char* name, std::uint32_t result) {
  count_loss_about(LossKind::kCountersFailed, 1, std::uint64_t{result} | static_cast<std::uint64_t>(call) << 32);
  if (!first_time(LossKind::kCountersFailed)) return;
  note("counters", "%s answered %u: what it was to measure is missing.", name, result);
}

}  // namespace

const char* find_profilers(const Library& library, ProfilerLibrary* profilers) {
  const char* missing = nullptr;
#define LLMPROF_PROFILER_LOAD(member, call, ...)                                                               \
  profilers->member =                                                                                          \
      reinterpret_cast<decltype(profilers->member)>(dlsym(library.handle, wire::name_of(ProfilerCall::call))); \
  if (profilers->member == nullptr) missing = wire::name_of(ProfilerCall::call);
  LLMPROF_PROFILER_FUNCTIONS(LLMPROF_PROFILER_LOAD)
#undef LLMPROF_PROFILER_LOAD
  return missing;
}

bool succeeded(ProfilerCall call, std::uint32_t result) {
  const char* const name = wire::name_of(call);
  switch (result) {
    case kSuccess:
      return true;
    case kForbidden:
    case kForbiddenOnVirtualDevice:
      state_forbidden(name, result);
      return false;
    case kHardwareBusy:
    case kOldProfilerInUse:
    case kHeldByAnother:
      state_held(name, result);
      return false;
    default:
      state_failed(call, name, result);
      return false;
  }
}

}  // namespace llmprof::collect::cupti
