#pragma once
// Pairs of CUDA events: when the device came to two points of a stream. What lies between them, gaps included.

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class EventPairs {
 public:
  static Result<EventPairs> create(Context& context, std::size_t pairs);
  EventPairs() = default;
  EventPairs(EventPairs&& other) noexcept;
  EventPairs& operator=(EventPairs&& other) noexcept;
  ~EventPairs();

  std::size_t size() const { return events_.size() / 2; }
  Result<void> begin(std::size_t pair) { return record(2 * pair); }  // enqueued on the context's stream
  Result<void> end(std::size_t pair) { return record(2 * pair + 1); }
  Result<double> seconds(std::size_t pair) const;  // when the device passed both

 private:
  Result<void> record(std::size_t event);
  [[maybe_unused]] Context* context_ = nullptr;
  std::vector<void*> events_;  // CUevent
};

}  // namespace llmprof::bench::cuda
