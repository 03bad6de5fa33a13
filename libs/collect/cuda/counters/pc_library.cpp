#include "collect/cuda/counters/pc_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/cuda/counters/profiler_library.h"
#include "collect/cuda/facts.h"
#include "collect/cuda/gpu.h"

namespace llmprof::collect::counters {
namespace {

using wire::ProfilerCall;

constexpr std::uint32_t kOutOfMemory = 8;  // of the device's buffer: what there is comes all the same

void* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? memory : nullptr;
}

// A buffer as CUPTI wants it: places, and room for all reasons at each. Null: no memory.
pc::Data* map_data(std::size_t places, std::size_t reasons) {
  const std::size_t bytes = sizeof(pc::Data) + places * (sizeof(pc::Place) + reasons * sizeof(pc::Reason));
  auto* data = static_cast<pc::Data*>(map(bytes));
  if (data == nullptr) return nullptr;
  data->size = sizeof(pc::Data);
  data->capacity = places;
  data->places = reinterpret_cast<pc::Place*>(data + 1);
  auto* room = reinterpret_cast<pc::Reason*>(data->places + places);
  for (std::size_t i = 0; i < places; ++i, room += reasons) {
    data->places[i].size = sizeof(pc::Place);
    data->places[i].reason_count = reasons;
    data->places[i].reasons = room;
  }
  return data;
}

pc::Attribute attribute(pc::AttributeType type, std::uint32_t number) {
  pc::Attribute attribute{};
  attribute.type = type;
  attribute.value.number = number;
  return attribute;
}

}  // namespace

bool PcSampler::load() {
  const char* missing = nullptr;
#define LLMPROF_PC_LOAD(member, call, needed, params)                                                            \
  library_.member =                                                                                              \
      reinterpret_cast<decltype(library_.member)>(dlsym(gpu.library.handle, wire::name_of(ProfilerCall::call))); \
  if ((needed) && library_.member == nullptr) missing = wire::name_of(ProfilerCall::call);
  LLMPROF_PC_FUNCTIONS(LLMPROF_PC_LOAD)
#undef LLMPROF_PC_LOAD
  if (missing == nullptr) return true;
  count_loss_about(wire::LossKind::kCountersFailed, 1, static_cast<std::uint64_t>(ProfilerCall::kSamplingLoad) << 32);
  char text[128];
  snprintf(text, sizeof(text), "reasons of stalls cannot be read: CUPTI lacks %s.", missing);
  note("counters", text);
  return false;
}

bool PcSampler::read_reasons() {
  std::size_t count = 0;
  pc::CountReasonsParams counted = {sizeof(counted), nullptr, context_, &count};
  if (!cupti::succeeded(ProfilerCall::kCountReasons, library_.count_reasons(&counted))) return false;
  if (count > StallReasons::kMost) count = StallReasons::kMost;
  static char names[StallReasons::kMost][pc::kReasonNameBytes];  // by one thread, once
  static char* pointers[StallReasons::kMost];
  for (std::size_t i = 0; i < count; ++i) pointers[i] = names[i];
  pc::GetReasonsParams params = {sizeof(params), nullptr, context_, count, indexes_, pointers};
  if (!cupti::succeeded(ProfilerCall::kGetReasons, library_.get_reasons(&params))) return false;
  for (std::size_t i = 0; i < count; ++i) {
    names[i][pc::kReasonNameBytes - 1] = '\0';
    reasons_.add(indexes_[i], names[i]);
  }
  index_count_ = count;
  return true;
}

bool PcSampler::map_buffers() {
  kept_ = map_data(kMostPlaces, index_count_);
  read_ = map_data(kMostPlaces, index_count_);
  if (kept_ != nullptr && read_ != nullptr) return true;
  return cupti::succeeded(ProfilerCall::kSamplingMemory, errno != 0 ? static_cast<std::uint32_t>(errno) : ENOMEM);
}

std::uint32_t PcSampler::configure_with(std::uint32_t exponent) {
  pc::Attribute attributes[] = {
      attribute(pc::kCollectionMode, pc::kContinuous),
      attribute(pc::kStartStopControl, 1),
      attribute(pc::kDataFormat, pc::kParsed),
      attribute(pc::kDataBuffer, 0),
      attribute(pc::kStallReasons, 0),
      attribute(pc::kSamplingPeriod, exponent),
  };
  attributes[3].value.buffer = kept_;
  attributes[4].value.reasons = {index_count_, indexes_};
  constexpr std::size_t kAll = sizeof(attributes) / sizeof(attributes[0]);
  pc::ConfigureParams params = {sizeof(params), nullptr, context_, exponent != 0 ? kAll : kAll - 1, attributes};
  return library_.configure(&params);
}

// A period that is refused leaves CUPTI's own.
bool PcSampler::configure() {
  period_exponent_ = kPeriodExponent;
  if (configure_with(kPeriodExponent) == cupti::kSuccess) return true;
  period_exponent_ = 0;
  return cupti::succeeded(ProfilerCall::kSamplingConfigure, configure_with(0));
}

bool PcSampler::start(void* context) {
  context_ = context;
  if (!load()) return false;
  pc::ContextParams params = context_params();
  if (!cupti::succeeded(ProfilerCall::kSamplingEnable, library_.enable(&params))) return false;
  // In this order: the reasons are known once it is enabled.
  if (read_reasons() && map_buffers() && configure()) {
    params = context_params();
    if (cupti::succeeded(ProfilerCall::kSamplingStart, library_.start(&params))) return true;
  }
  params = context_params();
  library_.disable(&params);
  return false;
}

bool PcSampler::fetch(Fetched* fetched) {
  for (std::size_t i = 0; i < filled_; ++i) read_->places[i].reason_count = index_count_;  // it is the room, when asked
  read_->total_samples = read_->dropped_samples = read_->unknown_samples = 0;
  read_->count = read_->remaining = 0;
  read_->buffer_full = 0;
  pc::GetDataParams params = {sizeof(params), nullptr, context_, read_};
  const std::uint32_t result = library_.get_data(&params);
  if (result != kOutOfMemory && !cupti::succeeded(ProfilerCall::kSamplingGetData, result)) return false;
  filled_ = read_->count < kMostPlaces ? read_->count : kMostPlaces;
  *fetched = {read_->places,
              filled_,
              read_->total_samples,
              read_->dropped_samples,
              read_->unknown_samples,
              result == kOutOfMemory || read_->buffer_full != 0,
              filled_ > 0 && read_->remaining > 0};
  for (std::size_t i = 0; i < filled_; ++i) {
    pc::Place& place = read_->places[i];
    if (place.reason_count > index_count_) place.reason_count = index_count_;
  }
  return true;
}

bool PcSampler::stop() {
  pc::ContextParams params = context_params();
  return cupti::succeeded(ProfilerCall::kSamplingStop, library_.stop(&params));
}

}  // namespace llmprof::collect::counters
