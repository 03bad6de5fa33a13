#include "collect/cuda/buffers.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "collect/list.h"
#include "collect/os.h"

namespace llmprof::collect::cupti {
namespace {

constexpr std::size_t kScrapBytes = kScrapBuffers * kSmallestBuffer;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kFewest = 4;

}  // namespace

bool BufferPool::reserve(std::size_t bytes) {
  buffer_bytes_ = kBufferBytes;
  while (buffer_bytes_ > kSmallestBuffer && bytes / buffer_bytes_ < 16) buffer_bytes_ /= 2;
  std::size_t count = bytes / buffer_bytes_;
  if (count > kMaxBuffers) count = kMaxBuffers;
  for (; count >= kFewest; count /= 2) {
    const std::size_t size = count * buffer_bytes_ + kScrapBytes;
    void* memory = map_memory(size);
    if (memory == nullptr) continue;
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, memory, size, "llmprof-gpu");  // shown in /proc/self/maps; may fail
    madvise(memory, size, MADV_WIPEONFORK);                                // a child has no use for them
    memory_ = static_cast<std::uint8_t*>(memory);
    count_ = static_cast<std::uint32_t>(count);
    return true;
  }
  return false;
}

std::uint8_t* BufferPool::lend() {
  std::int64_t index = pop(free_, buffers_);
  if (index < 0) {
    if (fresh_.load(std::memory_order_relaxed) >= count_) return nullptr;
    index = fresh_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) {
      fresh_.store(count_, std::memory_order_relaxed);  // a race went past the end
      return nullptr;
    }
  }
  lent_.fetch_add(1, std::memory_order_relaxed);
  buffers_[index].state.store(State::kLent, std::memory_order_release);
  return memory_ + static_cast<std::size_t>(index) * buffer_bytes_;
}

// Several may hold the same one at a time: nothing in it is ever read.
std::uint8_t* BufferPool::scrap() {
  const std::uint32_t index = next_scrap_.fetch_add(1, std::memory_order_relaxed) % kScrapBuffers;
  return memory_ + count_ * buffer_bytes_ + index * kSmallestBuffer;
}

std::uint32_t BufferPool::index_of(const std::uint8_t* buffer) const {
  if (memory_ == nullptr || buffer < memory_) return count_;
  const auto offset = static_cast<std::size_t>(buffer - memory_);
  if (offset >= count_ * buffer_bytes_ || offset % buffer_bytes_ != 0) return count_;
  return static_cast<std::uint32_t>(offset / buffer_bytes_);
}

Returned BufferPool::give_back(std::uint8_t* buffer, std::size_t valid) {
  const std::uint32_t index = index_of(buffer);
  if (index == count_) {
    const std::uint8_t* scraps = memory_ + count_ * buffer_bytes_;
    return memory_ != nullptr && buffer >= scraps && buffer < scraps + kScrapBytes ? Returned::kScrap
                                                                                   : Returned::kUnknown;
  }
  State lent = State::kLent;
  if (!buffers_[index].state.compare_exchange_strong(lent, State::kDone, std::memory_order_acq_rel))
    return Returned::kUnknown;  // returned twice
  lent_.fetch_sub(1, std::memory_order_relaxed);
  buffers_[index].valid = valid < buffer_bytes_ ? valid : buffer_bytes_;
  if (valid == 0) {
    buffers_[index].state.store(State::kFree, std::memory_order_release);
    push(free_, buffers_, index);
    return Returned::kEmpty;
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  push_full(done_, buffers_, index);
  return Returned::kQueued;
}

std::uint8_t* BufferPool::next(std::size_t* valid) {
  if (queue_ == 0) queue_ = take_all(done_, buffers_);
  if (queue_ == 0) return nullptr;
  const std::uint32_t index = queue_ - 1;
  queue_ = buffers_[index].next.load(std::memory_order_relaxed);
  *valid = buffers_[index].valid;
  return memory_ + index * buffer_bytes_;
}

// CUPTI fills a buffer from its beginning, so what lies behind the records is still zero.
void BufferPool::free(std::uint8_t* buffer) {
  const std::uint32_t index = index_of(buffer);
  const std::size_t dirty = (buffers_[index].valid + kPage - 1) / kPage * kPage;
  memset(buffer, 0, dirty < buffer_bytes_ ? dirty : buffer_bytes_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  buffers_[index].state.store(State::kFree, std::memory_order_release);
  push(free_, buffers_, index);
}

}  // namespace llmprof::collect::cupti
