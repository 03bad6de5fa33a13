#pragma once
// CUPTI's buffers belong to whoever registered last. When launches go on and nobody asks us for buffers or returns
// them, another client may have them; or work is in flight in every buffer that CUPTI holds. There is no way to ask, so
// it is a suspicion until the program is quiet: buffers that are ours come back then. Plain arithmetic, no clock.

#include <cstdint>

namespace llmprof::collect {

class TheftWatch {
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
