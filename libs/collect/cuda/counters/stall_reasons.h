#pragma once
// What CUPTI's numbers of stall reasons mean. Each reason comes twice: "…stalled_wait" counts all samples of warps that
// waited for it, "…stalled_wait_not_issued" those of them in which their scheduler issued nothing at all. (CUPTI's
// pages say so of its older interface: samples include latency samples.) We keep the two parts apart: with and without
// an issue. Plain memory, no CUPTI.

#include <cstddef>
#include <cstdint>

#include "collect/cuda/counters/pc_abi.h"

namespace llmprof::collect::counters {

// "smsp__pcsamp_warps_issue_stalled_wait_not_issued" is "wait", not issued. Names of another form stay as they are.
struct ReasonName {
  const char* text;  // in the name that was given
  std::size_t length;
  bool not_issued;
};
ReasonName read_reason(const char* name);

class StallReasons {
 public:
  static constexpr std::size_t kMost = 128;  // numbers of CUPTI; H200: 40
  static constexpr std::size_t kNameBytes = 64;

  // False: no room.
  bool add(std::uint32_t index, const char* name);
  std::size_t count() const { return count_; }
  const char* name(std::size_t reason) const { return names_[reason]; }

  // Samples of one place, by reason.
  struct Samples {
    std::uint64_t issued[kMost];
    std::uint64_t not_issued[kMost];
    std::uint64_t unknown;  // of numbers that nobody announced
  };
  // Sorts what CUPTI counted. False: a reason has more samples without an issue than it has in all.
  bool sort(const pc::Reason* reasons, std::size_t count, Samples* samples) const;

 private:
  struct Number {
    std::uint32_t index;
    std::uint16_t reason;
    bool not_issued;
  };
  const Number* find(std::uint32_t index) const;

  std::size_t numbers_count_ = 0;
  std::size_t count_ = 0;
  Number numbers_[kMost]{};
  char names_[kMost][kNameBytes]{};
};

}  // namespace llmprof::collect::counters
