#pragma once
// CUPTI's buffers: the pool they are lent from, and the watch over whether they still come to us.

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include "collect/list.h"
#include "collect/os.h"

namespace llmprof::collect::cupti {

// The buffers that CUPTI writes its records into: a fixed number of zeroed ones, lent and taken back without a lock,
// since CUPTI asks for them on the program's threads. A buffer that CUPTI has not returned is never reused.

inline constexpr std::size_t kBufferBytes = 1u << 20;      // 4,800 kernels; threads that launch hold one each
inline constexpr std::size_t kSmallestBuffer = 64u << 10;  // of a small pool
inline constexpr std::uint32_t kMaxBuffers = 1024;
inline constexpr std::uint32_t kScrapBuffers = 8;  // what older versions get when none is left; never read

enum class Returned : std::uint8_t {
  kQueued,   // it will be read
  kEmpty,    // nothing in it: free again
  kScrap,    // what was written is lost
  kUnknown,  // not ours, or not lent: nothing is touched
};

class BufferPool {
 public:
  // Takes address space for about `bytes` of buffers, less if there is less. False: none, errno says why.
  bool reserve(std::size_t bytes) {
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

  std::size_t buffer_bytes() const { return buffer_bytes_; }

  // Program's threads. Null: none is free.
  std::uint8_t* lend() {
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

  // for those that must have one
  // Several may hold the same one at a time: nothing in it is ever read.
  std::uint8_t* scrap() {
    const std::uint32_t index = next_scrap_.fetch_add(1, std::memory_order_relaxed) % kScrapBuffers;
    return memory_ + count_ * buffer_bytes_ + index * kSmallestBuffer;
  }

  // `valid` is how much of it holds records: more than a buffer holds is taken as full.
  Returned give_back(std::uint8_t* buffer, std::size_t valid) {
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

  // Our thread: a returned buffer, oldest first; null: none. free() zeroes what was written and makes it available.
  std::uint8_t* next(std::size_t* valid) {
    if (queue_ == 0) queue_ = take_all(done_, buffers_);
    if (queue_ == 0) return nullptr;
    const std::uint32_t index = queue_ - 1;
    queue_ = buffers_[index].next.load(std::memory_order_relaxed);
    *valid = buffers_[index].valid;
    return memory_ + index * buffer_bytes_;
  }

  // CUPTI fills a buffer from its beginning, so what lies behind the records is still zero.
  void free(std::uint8_t* buffer) {
    const std::uint32_t index = index_of(buffer);
    const std::size_t dirty = (buffers_[index].valid + kPage - 1) / kPage * kPage;
    memset(buffer, 0, dirty < buffer_bytes_ ? dirty : buffer_bytes_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    buffers_[index].state.store(State::kFree, std::memory_order_release);
    push(free_, buffers_, index);
  }

  std::uint32_t lent() const { return lent_.load(std::memory_order_relaxed); }
  std::uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  std::uint32_t buffers() const { return count_; }

 private:
  static constexpr std::size_t kScrapBytes = kScrapBuffers * kSmallestBuffer;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kFewest = 4;  // buffers: with fewer there is no use
  enum class State : std::uint8_t { kFree = 0, kLent = 1, kDone = 2 };
  struct Buffer {
    std::atomic<std::uint32_t> next{0};
    std::atomic<State> state{State::kFree};
    std::size_t valid = 0;
  };

  // count_: not ours
  std::uint32_t index_of(const std::uint8_t* buffer) const {
    if (memory_ == nullptr || buffer < memory_) return count_;
    const auto offset = static_cast<std::size_t>(buffer - memory_);
    if (offset >= count_ * buffer_bytes_ || offset % buffer_bytes_ != 0) return count_;
    return static_cast<std::uint32_t>(offset / buffer_bytes_);
  }

  std::uint8_t* memory_ = nullptr;
  std::size_t buffer_bytes_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t queue_ = 0;  // our thread: taken from done_, not read yet
  std::atomic<std::uint32_t> next_scrap_{0};
  std::atomic<std::uint32_t> fresh_{0};
  std::atomic<std::uint32_t> lent_{0};
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint32_t> done_{0};
  std::atomic<std::uint64_t> free_{0};
  Buffer buffers_[kMaxBuffers]{};
};

// CUPTI's buffers belong to whoever registered last. When launches go on and nobody asks us for buffers or returns
// them, another client may have them; or work is in flight in every buffer that CUPTI holds. There is no way to ask, so
// it is a suspicion until the program is quiet: buffers that are ours come back then. Plain arithmetic, no clock.

}  // namespace llmprof::collect::cupti

namespace llmprof::collect {

class BufferWatch {
 public:
  struct Seen {
    bool launched;                       // in the period that ends now, while recording
    std::uint32_t requested, completed;  // buffers so far
    std::uint64_t now_ns;
  };
  enum class Verdict : std::uint8_t {
    kNone,
    kSuspected,  // since buffers_ns()
    kCleared,    // they came: nothing is missing
    kTaken,      // quiet, and they did not come: time to take them back
  };

  Verdict look(const Seen& seen) {
    const bool moved = seen.requested != requested_ || seen.completed != completed_;
    requested_ = seen.requested;
    completed_ = seen.completed;
    if (moved || buffers_ns_ == 0) buffers_ns_ = seen.now_ns;
    quiet_ = seen.launched ? 0 : quiet_ + 1;
    if (moved) return clear(Verdict::kCleared);
    if (suspected_) return quiet_ < patience_ ? Verdict::kNone : take_back();
    silent_ += seen.launched ? 1 : 0;
    // Too few launches for a suspicion, but then nothing came back for longer.
    if (silent_ <= kSilentPeriods && (silent_ == 0 || quiet_ < 2 * patience_)) return Verdict::kNone;
    suspected_ = true;
    suspected_ns_ = buffers_ns_;
    return silent_ > kSilentPeriods ? Verdict::kSuspected : take_back();
  }

  bool suspects() const { return suspected_; }
  std::uint64_t since_ns() const { return suspected_ns_; }  // of the last suspicion

 private:
  static constexpr std::uint32_t kSilentPeriods = 2;
  static constexpr std::uint32_t kFirstPatience = 4;
  static constexpr std::uint32_t kMostPatience = 256;

  Verdict clear(Verdict verdict) {
    silent_ = 0;
    if (!suspected_) return Verdict::kNone;
    suspected_ = false;
    return verdict;
  }

  // In the middle of its session that would break the other one: with more patience each time.
  Verdict take_back() {
    if (patience_ < kMostPatience) patience_ *= 2;
    return clear(Verdict::kTaken);
  }

  std::uint32_t requested_ = 0, completed_ = 0;
  std::uint32_t silent_ = 0;  // periods with launches and without buffers
  std::uint32_t quiet_ = 0;   // periods without launches
  std::uint32_t patience_ = kFirstPatience;
  std::uint64_t buffers_ns_ = 0;  // when they moved last
  std::uint64_t suspected_ns_ = 0;
  bool suspected_ = false;
};

}  // namespace llmprof::collect
