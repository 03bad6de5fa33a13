#include "bench/cuda/launch_gate.h"

#include <atomic>
#include <utility>

#include "bench/cuda/driver.h"

namespace llmprof::bench::cuda {
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
