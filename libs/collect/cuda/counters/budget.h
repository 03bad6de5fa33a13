#pragma once
// How much of the program's time measuring may take. A measured window pays for itself: the next one waits until the
// time since the set-up has grown enough. Plain arithmetic, no clock.

#include <cstdint>

namespace llmprof::collect::counters {

class Budget {
 public:
  // `credit_ns` may be spent at once: rare work (a prefill) is seen even in short programs.
  void begin(std::uint64_t now_ns, std::uint64_t ppm, std::uint64_t credit_ns) {
    begin_ns_ = now_ns, ppm_ = ppm, credit_ns_ = credit_ns, spent_ns_ = 0;
  }
  // Whether something that costs about `cost_ns` may be done now.
  bool allows(std::uint64_t now_ns, std::uint64_t cost_ns) const {
    if (ppm_ == 0) return true;
    const std::uint64_t elapsed_us = now_ns > begin_ns_ ? (now_ns - begin_ns_) / 1000 : 0;
    return spent_ns_ + cost_ns <= credit_ns_ + elapsed_us * ppm_ / 1000;
  }
  void spend(std::uint64_t ns) { spent_ns_ += ns; }
  std::uint64_t spent_ns() const { return spent_ns_; }

 private:
  std::uint64_t begin_ns_ = 0, ppm_ = 0, credit_ns_ = 0, spent_ns_ = 0;
};

}  // namespace llmprof::collect::counters
