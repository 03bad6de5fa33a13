#include "bench/cuda/cupti.h"

#include <fmt/format.h>

#include <string>

#include "base/cuda_libraries.h"
#include "base/dynlib.h"
#include "base/errors.h"
#include "bench/cuda/activity.h"
#include "bench/cuda/context.h"
#include "bench/cuda/cupti_api.h"

namespace llmprof::bench::cuda {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::uint32_t kOldestVersion = 18;  // CUDA 12.0: the layouts of cupti_api.h were compared from there on

void CUPTIAPI on_request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = request_cupti_buffer();
  *bytes = *buffer != nullptr ? kCuptiBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI on_complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  if (buffer != nullptr) complete_cupti_buffer(buffer, valid_bytes);
}

void CUPTIAPI on_nothing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

Error failed(const CuptiApi& api, const char* call, CUptiResult result) {
  const char* text = nullptr;
  if (api.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown error";
  return unsupported_error("{}: {}", call, text);
}

Activity activity_of(const KernelRecord& record) {
  return {record.start, record.end, record.correlationId, record.name != nullptr ? record.name : "[kernel]"};
}

void add_record(const CUpti_Activity* record, std::vector<Activity>& activities) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      activities.push_back(activity_of(*reinterpret_cast<const KernelRecord*>(record)));
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* copy = reinterpret_cast<const MemcpyRecord*>(record);
      activities.push_back({copy->start, copy->end, copy->correlationId, "[memcpy]"});
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* set = reinterpret_cast<const MemsetRecord*>(record);
      activities.push_back({set->start, set->end, set->correlationId, "[memset]"});
      return;
    }
    default:
      return;
  }
}

void add_records(const CuptiApi& api, const FilledBuffer& buffer, std::vector<Activity>& activities) {
  CUpti_Activity* record = nullptr;
  while (buffer.valid_bytes > 0 && api.next_record(buffer.data, buffer.valid_bytes, &record) == CUPTI_SUCCESS) {
    add_record(record, activities);
  }
}

Result<Cupti*> open_library() {
  // The newest first: a library understands drivers that are newer than it, not always older ones.
  std::vector<std::string> names;
  for (const char* library : {"libcupti.so.13", "libcupti.so.12"}) {
    names.emplace_back(library);
    for (std::string& path : base::cuda_library_candidates(library)) names.push_back(std::move(path));
  }
  const Result<CuptiApi> api = base::load_api<CuptiApi>(names, CuptiApi::symbols());
  if (!api) return Error{ErrorCode::kUnsupported, "no CUPTI: " + api.error().message, ""};
  LLMPROF_LET(std::unique_ptr<Cupti> cupti, Cupti::open(*api));
  return cupti.release();  // for the life of the process: CUPTI has no way back that is safe
}

}  // namespace

Cupti::Cupti(const CuptiApi& api) : api_(std::make_unique<CuptiApi>(api)) {}
Cupti::~Cupti() = default;

Result<Cupti*> Cupti::get() {
  static const Result<Cupti*> opened = open_library();
  return opened;
}

Result<std::unique_ptr<Cupti>> Cupti::open(const CuptiApi& api) {
  std::uint32_t version = 0;
  if (const CUptiResult result = api.version(&version); result != CUPTI_SUCCESS) {
    return failed(api, "cuptiGetVersion", result);
  }
  if (version < kOldestVersion) return unsupported_error("CUPTI's API version {} is older than CUDA 12", version);
  // Subscribed only to hold the one place there is: whoever else has it would take our records, or we theirs.
  CUpti_SubscriberHandle subscriber = nullptr;
  const CUptiResult subscribed = api.subscribe(&subscriber, on_nothing, nullptr);
  if (subscribed == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    return Error{ErrorCode::kUnsupported, "another tool (a profiler or a debugger) holds CUPTI in this process", ""};
  }
  if (subscribed != CUPTI_SUCCESS) return failed(api, "cuptiSubscribe", subscribed);
  if (api.set_attribute != nullptr) {  // ours are zeroed already; without this CUPTI does it again
    std::uint8_t yes = 1;
    std::size_t bytes = sizeof(yes);
    api.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &yes);
  }
  if (const CUptiResult result = api.register_callbacks(on_request, on_complete); result != CUPTI_SUCCESS) {
    return failed(api, "cuptiActivityRegisterCallbacks", result);
  }
  return std::unique_ptr<Cupti>(new Cupti(api));
}

Result<void> Cupti::start() {
  for (const FilledBuffer& buffer : take_cupti_buffers()) recycle_cupti_buffer(buffer);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (const CUptiResult result = api_->enable(kind); result != CUPTI_SUCCESS) {
      static_cast<void>(disable());
      return failed(*api_, "cuptiActivityEnable", result);
    }
  }
  return {};
}

Result<void> Cupti::disable() {
  for (const CUpti_ActivityKind kind : kKinds) {
    if (const CUptiResult result = api_->disable(kind); result != CUPTI_SUCCESS) {
      return failed(*api_, "cuptiActivityDisable", result);
    }
  }
  return {};
}

Result<void> Cupti::flush() {
  if (const CUptiResult result = api_->flush_all(0); result != CUPTI_SUCCESS) {
    return failed(*api_, "cuptiActivityFlushAll", result);
  }
  return {};
}

Result<std::vector<Activity>> Cupti::stop() {
  const Result<void> flushed = flush();
  LLMPROF_TRY(disable());
  LLMPROF_TRY(flushed);
  std::vector<Activity> activities;
  for (const FilledBuffer& buffer : take_cupti_buffers()) {
    add_records(*api_, buffer, activities);
    recycle_cupti_buffer(buffer);
  }
  std::size_t dropped = 0;
  if (api_->dropped(nullptr, 0, &dropped) == CUPTI_SUCCESS && dropped > 0) {
    return unsupported_error("CUPTI dropped {} records", dropped);
  }
  return activities;
}

}  // namespace llmprof::bench::cuda
