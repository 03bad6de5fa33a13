#pragma once
// CUPTI's buffers belong to whoever registered last. When launches go on and nobody asks us for buffers or returns
// them, another client has them. There is no way to ask, so this is a judgement; plain arithmetic, no clock.

#include <cstdint>

namespace llmprof::collect {

class TheftWatch {
 public:
  struct Seen {
    bool launched;                       // in the period that ends now, while recording
    std::uint32_t requested, completed;  // buffers so far
    std::uint32_t lent;                  // buffers that CUPTI has
    std::uint64_t now_ns;
  };
  enum class Verdict : std::uint8_t {
    kNone,
    kTaken,   // from gap_begin_ns() on
    kResume,  // quiet since: time to take them back
  };

  Verdict look(const Seen& seen) {
    const bool moved = seen.requested != requested_ || seen.completed != completed_;
    requested_ = seen.requested;
    completed_ = seen.completed;
    if (taken_) return look_taken(seen, moved);
    if (moved || !seen.launched) {
      silent_ = moved ? 0 : silent_;
      if (moved) moved_ns_ = seen.now_ns;
      return Verdict::kNone;
    }
    if (moved_ns_ == 0) moved_ns_ = seen.now_ns;
    // A buffer that CUPTI holds may wait for one long kernel in it.
    const std::uint32_t limit = seen.lent == 0 ? kSilentPeriods : kLongKernelPeriods;
    if (++silent_ <= limit) return Verdict::kNone;
    taken_ = true;
    taken_periods_ = 0;
    return Verdict::kTaken;
  }

  std::uint64_t gap_begin_ns() const { return moved_ns_; }

 private:
  static constexpr std::uint32_t kSilentPeriods = 2;
  static constexpr std::uint32_t kLongKernelPeriods = 16;
  static constexpr std::uint32_t kFirstPatience = 4;
  static constexpr std::uint32_t kMostPatience = 256;

  // Taking them back in the middle of its session would break the other one: only when nothing is launched, and with
  // more patience each time.
  Verdict look_taken(const Seen& seen, bool moved) {
    ++taken_periods_;
    if (!moved && (seen.launched || taken_periods_ < patience_)) return Verdict::kNone;
    taken_ = false;
    silent_ = 0;
    if (patience_ < kMostPatience) patience_ *= 2;
    return Verdict::kResume;
  }

  std::uint32_t requested_ = 0, completed_ = 0;
  std::uint32_t silent_ = 0;
  std::uint32_t taken_periods_ = 0;
  std::uint32_t patience_ = kFirstPatience;
  std::uint64_t moved_ns_ = 0;
  bool taken_ = false;
};

}  // namespace llmprof::collect
