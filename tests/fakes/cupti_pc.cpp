// The fake CUPTI's PC sampling. A kernel of N ns is seen N/100 times at 0x100, waiting for memory, in half of them with
// no warp issuing; and N/200 times at 0x200, waiting. Kernels in graphs are not known while kernels or graphs are
// recorded as activity.
#include "cupti_profiler.h"

#include <cstdlib>
#include <cstring>
#include <map>

namespace fake {
namespace {

constexpr const char* kReasons[] = {"barrier",
                                    "branch_resolving",
                                    "dispatch_stall",
                                    "drain",
                                    "gmma",
                                    "imc_miss",
                                    "lg_throttle",
                                    "long_scoreboard",
                                    "math_pipe_throttle",
                                    "membar",
                                    "mio_throttle",
                                    "misc",
                                    "no_instructions",
                                    "not_selected",
                                    "selected",
                                    "short_scoreboard",
                                    "sleeping",
                                    "tex_throttle",
                                    "wait",
                                    "warpgroup_arrive"};
constexpr std::uint32_t kReasonCount = std::size(kReasons), kLongScoreboard = 7, kWait = 18;

struct Place {
  std::string function;
  std::uint64_t offset;
  bool operator<(const Place& other) const {
    return function != other.function ? function < other.function : offset < other.offset;
  }
};

struct PcSampling {
  bool enabled = false, started = false, by_hand = false;
  std::map<Place, std::map<std::uint32_t, std::uint32_t>> samples;  // by index of the reason
  std::uint64_t foreign = 0;
};

std::map<const Context*, PcSampling>& samplings() {
  static auto* all = new std::map<const Context*, PcSampling>;
  return *all;
}

std::uint64_t crc_of(const void* cubin, std::size_t bytes) {
  std::uint64_t sum = 17;
  for (std::size_t i = 0; i < bytes; ++i) sum = sum * 31 + static_cast<const unsigned char*>(cubin)[i];
  return sum;
}

const char kCode[] = "the code of all kernels";  // as the driver loads it (cuda_work.cpp)

// The name is CUPTI's and stays: several records point to it.
char* name_of(const std::string& function) {
  static auto* names = new std::map<std::string, char*>;
  char*& name = (*names)[function];
  if (name == nullptr) name = strdup(function.c_str());
  return name;
}

int set(PcSampling* sampling, PcAttributeValue* given) {
  switch (given->attribute) {
    case kPcPeriod:
      return script().pc_no_period != 0 || given->value.number < 5 || given->value.number > 31 ? kInvalidOperation
                                                                                               : kSuccess;
    case kPcStartStop:
      return sampling->by_hand = given->value.number == 1, kSuccess;
    case kPcBuffer: {
      const auto* data = static_cast<const PcData*>(given->value.pointer);
      return data != nullptr && data->size == sizeof(PcData) && data->place != nullptr ? kSuccess : kInvalidOperation;
    }
    default:
      return given->attribute > 0 && given->attribute <= kPcWorkerSleep ? kSuccess : kInvalidParameter;
  }
}

void fill(PcSampling* sampling, PcData* data) {
  data->total_samples = data->dropped_samples = data->foreign_samples = 0;
  data->places = 0;
  data->buffer_full = static_cast<std::uint8_t>(script().pc_full);
  while (!sampling->samples.empty() && data->places < data->most_places) {
    const auto first = sampling->samples.begin();
    PcPlace& place = data->place[data->places++];
    place.cubin = crc_of(kCode, sizeof(kCode));
    place.offset = first->first.offset;
    place.function_index = 1;
    place.function = name_of(first->first.function);
    place.correlation = 0;
    place.stall_count = 0;
    for (const auto& [reason, samples] : first->second) {
      place.stalls[place.stall_count++] = {reason, samples};
      if (reason < kReasonCount) data->total_samples += samples;  // the others are a part of them
    }
    sampling->samples.erase(first);
  }
  data->remaining_places = sampling->samples.size();
  data->foreign_samples = sampling->foreign;
  data->dropped_samples = script().pc_dropped;
  data->total_samples += data->foreign_samples + data->dropped_samples;
  sampling->foreign = 0;
}

PcSampling* sampling_of(void* context) {
  const auto found = samplings().find(static_cast<Context*>(context));
  return found != samplings().end() && found->second.enabled ? &found->second : nullptr;
}

}  // namespace

void pc_sampling_sees(const Work& work) {
  const std::lock_guard hold(cupti().lock);
  for (auto& [context, sampling] : samplings()) {
    if (!sampling.enabled || context->id != work.context || (sampling.by_hand && !sampling.started)) continue;
    const Totals totals = totals_of(work);
    const auto seen = static_cast<std::uint32_t>(totals.kernel_ns / 100);
    if (seen == 0) continue;
    note(k_pc_samples, seen + seen / 2);
    const bool recorded = cupti().kinds[kGraphTrace] || cupti().kinds[kConcurrentKernel] || cupti().kinds[kKernel];
    if (work.name == nullptr || (totals.graphs > 0 && recorded)) {
      sampling.foreign += seen + seen / 2;
      continue;
    }
    const std::string function = script().pc_nameless != 0 ? "" : work.name;
    auto& first = sampling.samples[{function, 0x100}];
    first[kLongScoreboard] += seen;
    first[kLongScoreboard + kReasonCount] += seen / 2;
    sampling.samples[{function, 0x200}][kWait] += seen / 2;
  }
}

}  // namespace fake

using namespace fake;

FAKE_EXPORT int cuptiPCSamplingEnable(PcParams* given) {
  BEGIN_ON_DEVICE(PcParams, context, static_cast<Context*>(given->context));
  if (given->context == nullptr) return kInvalidParameter;
  if (script().forbidden != 0) return kInsufficientPrivileges;
  if (script().busy != 0) return kHardwareBusy;
  PcSampling& sampling = samplings()[static_cast<Context*>(given->context)];
  if (sampling.enabled) return kInvalidOperation;
  sampling = {};
  return sampling.enabled = true, kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingDisable(PcParams* given) {
  BEGIN_ON_DEVICE(PcParams, context, static_cast<Context*>(given->context));
  PcSampling* sampling = sampling_of(given->context);
  if (sampling == nullptr) return kInvalidOperation;
  return sampling->enabled = false, kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingSetConfigurationAttribute(PcConfigParams* given) {
  BEGIN_ON_DEVICE(PcConfigParams, attributes, static_cast<Context*>(given->context));
  PcSampling* sampling = sampling_of(given->context);
  if (sampling == nullptr || sampling->started) return kInvalidOperation;
  int result = kSuccess;
  for (std::size_t i = 0; i < given->count; ++i) {
    given->attributes[i].status = set(sampling, &given->attributes[i]);
    if (given->attributes[i].status != kSuccess) result = kInvalidOperation;
  }
  return result;
}

FAKE_EXPORT int cuptiPCSamplingGetConfigurationAttribute(PcConfigParams* given) {
  BEGIN_ON_DEVICE(PcConfigParams, attributes, static_cast<Context*>(given->context));
  if (sampling_of(given->context) == nullptr) return kInvalidOperation;
  for (std::size_t i = 0; i < given->count; ++i) {
    given->attributes[i].status = kSuccess;
    given->attributes[i].value.words[0] = given->attributes[i].attribute == kPcPeriod ? 12 : 0;
  }
  return kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingStart(PcParams* given) {
  BEGIN_ON_DEVICE(PcParams, context, static_cast<Context*>(given->context));
  PcSampling* sampling = sampling_of(given->context);
  if (sampling == nullptr || sampling->started || !sampling->by_hand) return kInvalidOperation;
  note(k_profiler_starts);
  return sampling->started = true, kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingStop(PcParams* given) {
  BEGIN_ON_DEVICE(PcParams, context, static_cast<Context*>(given->context));
  PcSampling* sampling = sampling_of(given->context);
  if (sampling == nullptr || !sampling->started) return kInvalidOperation;
  return sampling->started = false, kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingGetData(PcGetDataParams* given) {
  BEGIN_ON_DEVICE(PcGetDataParams, data, static_cast<Context*>(given->context));
  PcSampling* sampling = sampling_of(given->context);
  auto* data = static_cast<PcData*>(given->data);
  if (sampling == nullptr) return kInvalidOperation;
  if (data == nullptr || data->size != sizeof(PcData) || data->place == nullptr) return kInvalidParameter;
  fill(sampling, data);
  return script().pc_full != 0 ? kOutOfMemory : kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingGetNumStallReasons(PcReasonCountParams* given) {
  BEGIN_ON_DEVICE(PcReasonCountParams, count, static_cast<Context*>(given->context));
  if (given->context == nullptr || given->count == nullptr) return kInvalidParameter;
  return *given->count = 2 * kReasonCount, kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingGetStallReasons(PcReasonsParams* given) {
  BEGIN_ON_DEVICE(PcReasonsParams, names, static_cast<Context*>(given->context));
  if (given->context == nullptr || given->count < 2 * kReasonCount) return kInvalidParameter;
  for (std::uint32_t i = 0; i < 2 * kReasonCount; ++i) {
    std::string name = std::string("smsp__pcsamp_warps_issue_stalled_") + kReasons[i % kReasonCount];
    if (i >= kReasonCount) name += "_not_issued";
    given->indices[i] = i;
    std::strncpy(given->names[i], name.c_str(), kReasonBytes - 1);
    given->names[i][kReasonBytes - 1] = '\0';
  }
  return kSuccess;
}

FAKE_EXPORT int cuptiGetCubinCrc(CubinCrcParams* given) {
  if (const int error = begin_call(__func__); error != kSuccess) return error;
  if (given->cubin == nullptr || given->cubin_bytes == 0) return kInvalidParameter;
  return given->crc = crc_of(given->cubin, given->cubin_bytes), kSuccess;
}

// Line N of "/src/kernels.cu" for the place at 0xN00.
FAKE_EXPORT int cuptiGetSassToSourceCorrelation(SourceParams* given) {
  if (const int error = begin_call(__func__); error != kSuccess) return error;
  if (given == nullptr || given->size != FAKE_PARAMS_BYTES(SourceParams, folder)) return kInvalidParameter;
  if (given->cubin == nullptr || given->cubin_bytes == 0 || given->function == nullptr) return kInvalidParameter;
  given->line = static_cast<std::uint32_t>(given->offset >> 8);
  given->file = strdup("kernels.cu");
  return given->folder = strdup("/src"), kSuccess;
}
