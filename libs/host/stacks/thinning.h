#pragma once
// Which samples are worked on: all of them, or one in n when all would take more CPU time than allowed. One that is
// worked on then stands for n. Chosen by chance: every n-th would favour some of the threads that are sampled in turn.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace llmprof::host {

class Thinning {
 public:
  explicit Thinning(double share) : share_(share) {}  // of one core

  // How many samples this one stands for; 0: it is left out.
  std::uint32_t take() {
    if (one_in_ == 1) return 1;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return (random_ >> 32) % one_in_ == 0 ? one_in_ : 0;
  }

  // What the work took lately.
  void spent(std::uint64_t cpu_ns, std::uint64_t elapsed_ns) {
    if (elapsed_ns == 0) return;
    const double all = static_cast<double>(cpu_ns) / static_cast<double>(elapsed_ns) * one_in_;
    one_in_ = static_cast<std::uint32_t>(std::clamp(std::ceil(all / share_), 1.0, kMost));
  }

  std::uint32_t one_in() const { return one_in_; }

 private:
  static constexpr double kMost = 1000;
  double share_;
  std::uint32_t one_in_ = 1;
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
};

}  // namespace llmprof::host
