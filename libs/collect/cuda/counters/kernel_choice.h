#pragma once
// Which launch of a kernel is measured next. Plain decisions, no CUPTI. Launches of the same kernel with the same grid
// and blocks do the same work: a set of several passes is spread over them. A measurement, once begun, stays with its
// signature until all passes were made; then the signature that was tried the fewest times comes next, so that rare
// kernels are not drowned by frequent ones. A signature that is not launched any more is not waited for.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect::counters {

class KernelChoice {
 public:
  static constexpr std::size_t kMost = 1024;  // signatures
  static constexpr std::uint64_t kPatienceNs = 2000000000;
  static constexpr std::uint64_t kPatienceLaunches = 10000;  // of kernels that were asked for
  static constexpr std::size_t kNone = kMost;

  // A launch of a kernel that was asked for: its number; kNone: there are too many. `is_new`: the first of its kind.
  std::size_t saw(std::uint64_t signature, std::uint64_t now_ns, bool* is_new);
  // Whether this launch, the last one seen, is to be measured. `gave_up`: the measurement under way ended without its
  // passes; its signature does not come any more.
  bool wants(std::size_t number, bool* gave_up);
  // A pass of it was made; `all`: the last one.
  void measured(std::size_t number, bool all);
  // A pass of it, and with it all before, are thrown away.
  void threw_away();
  bool is_under_way() const { return current_ != kNone; }
  bool is_under_way(std::size_t number) const { return current_ == number && is_under_way(); }

  std::size_t count() const { return count_; }

 private:
  struct Signature {
    std::uint64_t id;
    std::uint64_t seen_ns;
    std::uint64_t seen_launch;
    std::uint32_t tries;
  };
  bool comes(const Signature& signature) const {
    return now_ns_ <= signature.seen_ns + kPatienceNs && launches_ <= signature.seen_launch + kPatienceLaunches;
  }
  std::uint32_t fewest_tries() const;

  static constexpr std::size_t kSlots = 2 * kMost;
  std::uint16_t slots_[kSlots]{};  // open addressing: number + 1
  Signature signatures_[kMost]{};
  std::size_t count_ = 0;
  std::size_t current_ = kNone;
  std::uint64_t now_ns_ = 0, launches_ = 0;
};

// What is launched, from the arguments of the driver's function; all 0 where they are not known.
struct LaunchShape {
  std::uint32_t grid[3], block[3];
};
LaunchShape shape_of(const char* function, const void* arguments);
std::uint64_t signature_of(const char* symbol, const LaunchShape& shape);

// The values of one kernel from the ranges that were found: one, or one a pass, each with the metrics of its pass.
// False: there is no range, or another kernel was counted too. `ranges` values follow each other, `metrics` of each.
bool merge_ranges(const double* values, std::size_t ranges, std::size_t metrics, double* merged);

}  // namespace llmprof::collect::counters
