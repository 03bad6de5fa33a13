#pragma once
// When to read samples, and when to rest, by what reading took of a core. Longer between two readings costs less a
// sample; where even the longest costs too much, sampling rests in between. Plain arithmetic, no clock.

#include <algorithm>
#include <cstdint>

namespace llmprof::record {

class CounterPacer {
 public:
  CounterPacer(double share, std::uint64_t shortest_ns, std::uint64_t longest_ns)
      : share_(share),
        shortest_ns_(std::min(shortest_ns, longest_ns)),
        longest_ns_(longest_ns),
        wait_ns_(shortest_ns_) {}

  // A reading of what was sampled in `sampled_ns` took so much CPU time.
  void took(std::uint64_t sampled_ns, std::uint64_t cpu_ns) {
    const auto cpu = static_cast<double>(cpu_ns);
    const auto sampled = static_cast<double>(sampled_ns);
    const double used = sampled > 0 ? cpu / sampled : 1;
    rest_ns_ = 0;
    if (used > share_) {
      if (wait_ns_ == longest_ns_) rest_ns_ = static_cast<std::uint64_t>(std::min(cpu / share_ - sampled, kMostRestNs));
      wait_ns_ = std::min(longest_ns_, wait_ns_ + wait_ns_ / 2);
    } else if (used < share_ / 2) {
      wait_ns_ = std::max(shortest_ns_, wait_ns_ - wait_ns_ / 3);
    }
  }
  std::uint64_t wait_ns() const { return wait_ns_; }  // until the next reading
  std::uint64_t rest_ns() const { return rest_ns_; }  // before it, without sampling

 private:
  static constexpr double kMostRestNs = 30e9;  // one odd reading must not end the sampling

  double share_;
  std::uint64_t shortest_ns_, longest_ns_, wait_ns_, rest_ns_ = 0;
};

}  // namespace llmprof::record
