#pragma once
// CUPTI's buffers: the pool they are lent from, and the watch over whether they still come to us.

#include <atomic>
#include <cstddef>
#include <cstdint>

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

namespace llmprof::collect::cupti {}  // namespace llmprof::collect::cupti
