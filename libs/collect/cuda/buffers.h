#pragma once
// The buffers that CUPTI writes its records into: a fixed number of zeroed ones, lent and taken back without a lock,
// since CUPTI asks for them on the program's threads. A buffer that CUPTI has not returned is never reused.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace llmprof::collect::cupti {

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
  bool reserve(std::size_t bytes);

  std::size_t buffer_bytes() const { return buffer_bytes_; }

  // Program's threads. Null: none is free.
  std::uint8_t* lend();
  std::uint8_t* scrap();  // for those that must have one
  // `valid` is how much of it holds records: more than a buffer holds is taken as full.
  Returned give_back(std::uint8_t* buffer, std::size_t valid);

  // Our thread: a returned buffer, oldest first; null: none. free() zeroes what was written and makes it available.
  std::uint8_t* next(std::size_t* valid);
  void free(std::uint8_t* buffer);

  std::uint32_t lent() const { return lent_.load(std::memory_order_relaxed); }
  std::uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  std::uint32_t buffers() const { return count_; }

 private:
  enum class State : std::uint8_t { kFree = 0, kLent = 1, kDone = 2 };
  struct Buffer {
    std::atomic<std::uint32_t> next{0};
    std::atomic<State> state{State::kFree};
    std::size_t valid = 0;
  };

  std::uint32_t index_of(const std::uint8_t* buffer) const;  // count_: not ours

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

}  // namespace llmprof::collect::cupti
