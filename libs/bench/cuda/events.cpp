#include "bench/cuda/events.h"

#include <utility>

#include "bench/cuda/driver.h"

namespace llmprof::bench::cuda {

Result<EventPairs> EventPairs::create(Context& context, std::size_t pairs) {
  EventPairs created;
  created.context_ = &context;
  for (std::size_t i = 0; i < 2 * pairs; ++i) {
    CUevent event = nullptr;
    LLMPROF_TRY(checked(driver()->event_create(&event, CU_EVENT_DEFAULT), "cuEventCreate"));
    created.events_.push_back(event);
  }
  return created;
}

EventPairs::EventPairs(EventPairs&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)), events_(std::exchange(other.events_, {})) {}

EventPairs& EventPairs::operator=(EventPairs&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(events_, other.events_);
  return *this;
}

EventPairs::~EventPairs() {
  if (context_ == nullptr || context_->broken()) return;
  for (void* event : events_) driver()->event_destroy(static_cast<CUevent>(event));
}

Result<void> EventPairs::record(std::size_t event) {
  return checked(
      driver()->event_record(static_cast<CUevent>(events_.at(event)), reinterpret_cast<CUstream>(context_->stream())),
      "cuEventRecord");
}

Result<double> EventPairs::seconds(std::size_t pair) const {
  float milliseconds = 0;
  LLMPROF_TRY(checked(driver()->event_elapsed_ms(&milliseconds, static_cast<CUevent>(events_.at(2 * pair)),
                                                 static_cast<CUevent>(events_.at(2 * pair + 1))),
                      "cuEventElapsedTime"));
  return milliseconds * 1e-3;
}

}  // namespace llmprof::bench::cuda
