#include "bench/cuda/events.h"

#include <atomic>
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

Result<PinnedBuffer> PinnedBuffer::allocate(std::int64_t bytes) {
  if (!driver()) return driver().error();
  void* data = nullptr;
  LLMPROF_TRY(checked(driver()->host_allocate(&data, static_cast<std::size_t>(bytes), 0), "cuMemHostAlloc"));
  return PinnedBuffer(data);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) (void)driver()->host_free(data_);
}

namespace {

constexpr std::uint64_t kDeadlineNs = 250'000'000;
constexpr std::size_t kGo = 0, kGaveUp = 16;  // a cache line apart

}  // namespace

Result<LaunchGate> LaunchGate::create(Context& context) {
  LaunchGate gate;
  void* memory = nullptr;
  LLMPROF_TRY(checked(driver()->host_allocate(&memory, 128, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc"));
  gate.context_ = &context;
  gate.flags_ = static_cast<volatile std::uint32_t*>(memory);
  gate.flags_[kGo] = 1;
  gate.flags_[kGaveUp] = 0;
  CUdeviceptr pointer = 0;
  LLMPROF_TRY(checked(driver()->host_pointer(&pointer, memory, 0), "cuMemHostGetDevicePointer"));
  gate.device_flags_ = pointer;
  return gate;
}

LaunchGate::LaunchGate(LaunchGate&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      flags_(std::exchange(other.flags_, nullptr)),
      device_flags_(std::exchange(other.device_flags_, 0)) {}

LaunchGate& LaunchGate::operator=(LaunchGate&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(flags_, other.flags_);
  std::swap(device_flags_, other.device_flags_);
  return *this;
}

LaunchGate::~LaunchGate() {
  if (flags_ == nullptr) return;
  open();
  if (context_->broken()) return;
  static_cast<void>(context_->synchronize());  // the kernel reads the flags to its end
  driver()->host_free(const_cast<std::uint32_t*>(flags_));
}

Result<void> LaunchGate::close() {
  flags_[kGo] = 0;
  flags_[kGaveUp] = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Pointer go = device_flags_ + kGo * sizeof(std::uint32_t);
  const Pointer gave_up = device_flags_ + kGaveUp * sizeof(std::uint32_t);
  return context_->launch("llmprof_timing_wait", {}, {go, gave_up, kDeadlineNs});
}

void LaunchGate::open() {
  if (flags_ == nullptr) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  flags_[kGo] = 1;
}

bool LaunchGate::gave_up() const { return flags_ != nullptr && flags_[kGaveUp] != 0; }

}  // namespace llmprof::bench::cuda
