#pragma once
// Which samples are worked on: all of them, or one in n when all would take more CPU time than allowed. One that is
// worked on then stands for n. Chosen by chance: every n-th would favour some of the threads that are sampled in turn.
// Main threads come first: they mostly launch the work, and pools of spinning threads must not take their place.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace llmprof::host {

class Thinning {
 public:
  explicit Thinning(double share) : share_(share) {}  // of one core

  // How many samples this one stands for; 0: it is left out.
  std::uint32_t take(bool main_thread) {
    Kind& kind = kinds_[main_thread ? 0 : 1];
    ++kind.seen;
    if (kind.one_in != 1) {
      random_ ^= random_ << 13;
      random_ ^= random_ >> 7;
      random_ ^= random_ << 17;
      if ((random_ >> 32) % kind.one_in != 0) return ++left_out_, 0;
    }
    ++worked_;
    return kind.one_in;
  }

  // What the work took since the last time.
  void spent(std::uint64_t cpu_ns, std::uint64_t elapsed_ns) {
    if (elapsed_ns == 0) return;
    if (worked_ > 0) cost_ns_ = static_cast<double>(cpu_ns) / static_cast<double>(worked_);
    const double budget_ns = share_ * static_cast<double>(elapsed_ns);
    double left_ns = budget_ns;
    for (Kind& kind : kinds_) {
      const double wanted_ns = cost_ns_ * static_cast<double>(kind.seen);
      kind.one_in = static_cast<std::uint32_t>(std::clamp(std::ceil(wanted_ns / left_ns), 1.0, kMost));
      left_ns = std::max(budget_ns / 4, left_ns - wanted_ns / kind.one_in);  // nobody is left out altogether
      kind.seen = 0;
    }
    worked_ = 0;
  }

  std::uint32_t one_in(bool main_thread) const { return kinds_[main_thread ? 0 : 1].one_in; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  static constexpr double kMost = 1000;
  struct Kind {
    std::uint32_t one_in = 1;
    std::uint64_t seen = 0;  // since the last time
  };
  double share_;
  double cost_ns_ = 0;         // of one sample
  std::array<Kind, 2> kinds_;  // main threads, others
  std::uint64_t worked_ = 0;   // since the last time
  std::uint64_t left_out_ = 0;
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
};

}  // namespace llmprof::host
