#pragma once
// What is measured, and how often: the budget, the choice of ranges, the choice of kernels. No CUPTI, no clock.

#include <stdio.h>
#include <string.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/cuda/counters/plan.h"
#include "collect/names.h"

namespace llmprof::collect::counters {

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

// "cuLaunchKernel", or that with what the driver appends: "_ptsz".
inline bool is_call(const char* function, const char* name) {
  const std::size_t length = strlen(name);
  return strncmp(function, name, length) == 0 && (function[length] == '\0' || function[length] == '_');
}

// How much of the program's time measuring may take. A measured window pays for itself: the next one waits until the
// time since the set-up has grown enough. Plain arithmetic, no clock.
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

// Which occurrences of which ranges are measured. Plain arithmetic: no clock, no CUPTI.
//
// The first times a name is seen it is measured at once, out of a credit, so that rare work is known even in short
// programs. After that every window is earned: time passes, and a share of it may be spent; what came out of the credit
// is paid back first, so in the long run it costs nothing more. Of two names the one that
// was measured more often leaves room for one more window, so the other, coming later, is not crowded out.
//
// A set of several passes needs many windows of one name: one is chosen and kept until it is through, or until it no
// longer comes. It has to have come before: what comes once cannot be measured in several passes.
class WindowChoice {
 public:
  static constexpr std::uint32_t kMostNames = 256;
  static constexpr std::uint64_t kCreditNs = 30'000'000;
  static constexpr std::uint32_t kEarly = 3;                // measurements of a name out of it
  static constexpr std::uint64_t kFirstCostNs = 1'200'000;  // until one was measured
  static constexpr std::uint32_t kSeenBefore = 2;           // several passes: so often before it is chosen
  static constexpr std::uint32_t kEmptyEnough = 2;          // windows without any work

  // The set-up is over: time counts from here.
  void begin(std::uint64_t now_ns, std::uint64_t ppm, std::uint32_t passes) {
    budget_.begin(now_ns, ppm, kCreditNs);
    passes_ = passes;
  }

  // A range of this name opens: whether it is to be measured. Names are any number but 0.
  bool wants(std::uint64_t key, std::uint64_t now_ns) {
    Name* name = find(key);
    if (name == nullptr) return false;
    ++name->seen;
    if (name->outer || name->empty >= kEmptyEnough) return false;
    if (passes_ > 1 && !has_its_turn(*name)) return false;
    std::uint64_t needed_ns = cost_ns_;
    if (name->measured >= kEarly)
      needed_ns += kCreditNs + (name->measured > fewest() ? cost_ns_ : 0);  // without the credit
    return budget_.allows(now_ns, needed_ns);
  }

  bool is_first(std::uint64_t key) {
    const Name* name = find(key);
    return name == nullptr || name->measured == 0;
  }

  // It is about to be measured: several passes go on with it.
  void chose(std::uint64_t key) {
    current_ = passes_ > 1 ? key : 0;
    others_ = 0;
  }

  // One window was made. `worked`: the device got work in it.
  void measured(std::uint64_t key, std::uint64_t cost_ns, bool worked) {
    budget_.spend(cost_ns);
    cost_ns_ = known_ ? (cost_ns_ * 7 + cost_ns) / 8 : cost_ns;
    known_ = true;
    Name* name = find(key);
    if (name == nullptr) return;
    name->empty = worked ? 0 : name->empty + 1;
    if (passes_ <= 1) ++name->measured;
  }

  // What else measuring took: starting, reading.
  void spent(std::uint64_t cost_ns) { budget_.spend(cost_ns); }

  // Another range that matches opened inside of it: the inner one is what was meant.
  void is_outer(std::uint64_t key) {
    if (Name* name = find(key)) name->outer = true;
  }

  // Several passes: all of them were made.
  void completed() {
    if (Name* name = current_ != 0 ? find(current_) : nullptr) ++name->measured;
    current_ = 0;
  }

  // Several passes: the chosen name does not come, the others do; or it is not to be measured any more.
  bool is_stuck() {
    const Name* name = current_ != 0 ? find(current_) : nullptr;
    if (name == nullptr) return false;
    return name->outer || name->empty >= kEmptyEnough || others_ > 16 + 8 * std::uint64_t{name->seen};
  }

  void give_up() {
    if (Name* name = current_ != 0 ? find(current_) : nullptr) name->not_before = 4 * name->seen;
    current_ = 0;
  }

  std::uint64_t current() const { return current_; }
  std::uint64_t spent_ns() const { return budget_.spent_ns(); }
  std::uint32_t names() const { return count_; }

 private:
  struct Name {
    std::uint64_t key;
    std::uint32_t seen, measured, empty;
    std::uint32_t not_before;  // several passes: seen so often
    bool outer;
  };

  Name* find(std::uint64_t key) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (names_[i].key == key) return &names_[i];
    }
    if (count_ == kMostNames) return nullptr;
    names_[count_] = {key, 0, 0, 0, 0, false};
    return &names_[count_++];
  }

  bool has_its_turn(const Name& name) {
    if (current_ == name.key) {
      others_ = 0;
      return true;
    }
    if (current_ != 0) ++others_;
    return current_ == 0 && name.seen > kSeenBefore && name.seen > name.not_before;
  }

  std::uint32_t fewest() const {
    std::uint32_t least = ~std::uint32_t{0};
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Name& name = names_[i];
      if (!name.outer && name.empty < kEmptyEnough && name.measured < least) least = name.measured;
    }
    return least;
  }

  Budget budget_;
  std::uint32_t passes_ = 0;
  std::uint64_t cost_ns_ = kFirstCostNs;
  bool known_ = false;
  std::uint64_t current_ = 0;  // several passes: the name that is being measured
  std::uint64_t others_ = 0;   // ranges of other names since it came
  std::uint32_t count_ = 0;
  Name names_[kMostNames]{};
};

// Which launch of a kernel is measured next. Plain decisions, no CUPTI. Launches of the same kernel with the same grid
// and blocks do the same work: a set of several passes is spread over them. A measurement, once begun, stays with its
// signature until all passes were made; then the signature that was tried the fewest times comes next, so that rare
// kernels are not drowned by frequent ones. A signature that is not launched any more is not waited for.
class KernelChoice {
 public:
  static constexpr std::size_t kMost = 1024;  // signatures
  static constexpr std::uint64_t kPatienceNs = 2000000000;
  static constexpr std::uint64_t kPatienceLaunches = 10000;  // of kernels that were asked for
  static constexpr std::size_t kNone = kMost;

  // A launch of a kernel that was asked for: its number; kNone: there are too many. `is_new`: the first of its kind.
  std::size_t saw(std::uint64_t signature, std::uint64_t now_ns, bool* is_new) {
    now_ns_ = now_ns;
    ++launches_;
    std::size_t at = mix(0, signature) % kSlots;
    while (slots_[at] != 0 && signatures_[slots_[at] - 1].id != signature) at = (at + 1) % kSlots;
    *is_new = slots_[at] == 0;
    if (*is_new) {
      if (count_ == kMost) return kNone;
      slots_[at] = static_cast<std::uint16_t>(++count_);
      signatures_[count_ - 1] = {signature, 0, 0, 0};
    }
    Signature& seen = signatures_[slots_[at] - 1];
    seen.seen_ns = now_ns;
    seen.seen_launch = launches_;
    return slots_[at] - 1u;
  }

  // Whether this launch, the last one seen, is to be measured. `gave_up`: the measurement under way ended without its
  // passes; its signature does not come any more.
  bool wants(std::size_t number, bool* gave_up) {
    *gave_up = false;
    if (current_ == number) return true;
    if (current_ != kNone) {
      if (comes(signatures_[current_])) return false;
      *gave_up = true;
      threw_away();
    }
    return signatures_[number].tries <= fewest_tries();
  }

  // A pass of it was made; `all`: the last one.
  void measured(std::size_t number, bool all) {
    current_ = all ? kNone : number;
    if (all) ++signatures_[number].tries;
  }

  // A pass of it, and with it all before, are thrown away.
  void threw_away() {
    if (current_ != kNone) ++signatures_[current_].tries;
    current_ = kNone;
  }
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

  std::uint32_t fewest_tries() const {
    std::uint32_t fewest = ~0u;
    for (std::size_t i = 0; i < count_; ++i) {
      if (comes(signatures_[i]) && signatures_[i].tries < fewest) fewest = signatures_[i].tries;
    }
    return fewest;
  }

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
inline LaunchShape shape_of(const char* function, const void* arguments) {
  LaunchShape shape{};
  if (function == nullptr || arguments == nullptr) return shape;
  const char* at = static_cast<const char*>(arguments);
  if (is_call(function, "cuLaunchKernelEx")) {  // the first argument points to the configuration, which begins with it
    memcpy(&at, at, sizeof(void*));
    if (at != nullptr) memcpy(&shape, at, sizeof(shape));
  } else if (is_call(function, "cuLaunchKernel") || is_call(function, "cuLaunchCooperativeKernel")) {
    memcpy(&shape, at + sizeof(void*), sizeof(shape));  // after the function
  }

  return shape;
}
inline std::uint64_t signature_of(const char* symbol, const LaunchShape& shape) {
  std::uint64_t hash = mix(0x6b65726e, reinterpret_cast<std::uintptr_t>(symbol));
  for (int i = 0; i < 3; ++i) hash = mix(hash, std::uint64_t{shape.grid[i]} << 32 | shape.block[i]);
  return hash;
}

// The values of one kernel from the ranges that were found: one, or one a pass, each with the metrics of its pass.
// False: there is no range, or another kernel was counted too. `ranges` values follow each other, `metrics` of each.
inline bool merge_ranges(const double* values, std::size_t ranges, std::size_t metrics, double* merged) {
  for (std::size_t metric = 0; metric < metrics; ++metric) {
    merged[metric] = __builtin_nan("");
    for (std::size_t range = 0; range < ranges; ++range) {
      const double value = values[range * metrics + metric];
      if (value != value) continue;
      if (merged[metric] == merged[metric]) return false;
      merged[metric] = value;
    }
  }

  return ranges != 0;
}

// Which kernels were asked for, remembered by the address of their name: other launches cost one look. And which
// patterns no launch has met: kernels that only ever run inside graphs cannot be counted one by one.
class KernelVerdicts {
 public:
  // No pattern: all are. From any thread.
  bool is_asked_for(const List& patterns, const char* symbol) {
    const auto address = reinterpret_cast<std::uintptr_t>(symbol);
    std::atomic<std::uint64_t>& slot = slots_[(address ^ address >> 12) % kSlots];
    const std::uint64_t known = slot.load(std::memory_order_relaxed);
    if (known >> 2 == address && known != 0) return (known & 2) != 0;
    const bool asked = patterns.count == 0 || matches(patterns, symbol);
    slot.store(std::uint64_t{address} << 2 | (asked ? 2u : 0u) | 1u, std::memory_order_relaxed);
    return asked;
  }

  // A launch that could be counted. One thread at a time, as unseen() and say_unseen().
  void was_launched(const List& patterns, const char* symbol) {
    List one{};
    one.count = 1;
    for (std::size_t i = 0; i < patterns.count; ++i) {
      one.words[0] = patterns.words[i];
      seen_[i] = seen_[i] || matches(one, symbol);
    }
  }

  // Names that no launch has met in any of their spellings: how many, and the first of them (null: none).
  struct Unseen {
    const char* first;
    std::size_t count;
  };
  // Spellings of one name stand one after the other.
  Unseen unseen(const List& patterns) const {
    Unseen found{nullptr, 0};
    for (std::size_t i = 0; i < patterns.count;) {
      const char* const name = patterns.names[i] != nullptr ? patterns.names[i] : patterns.words[i];
      bool seen = false;
      do seen = seen || seen_[i];
      while (++i < patterns.count && patterns.names[i] == name);
      if (!seen && found.count++ == 0) found.first = name;
    }
    return found;
  }

  void say_unseen(const List& patterns) const {
    const Unseen names = unseen(patterns);
    if (names.count == 0) return;
    char others[48] = "";
    if (names.count > 1) snprintf(others, sizeof(others), " (and %zu more)", names.count - 1);
    note("counters",
         "no kernel %.256s%s was launched by itself. Kernels of CUDA graphs are counted with "
         "--counters-method sampled.",
         names.first, others);
  }

 private:
  static constexpr std::size_t kSlots = 4096;
  std::atomic<std::uint64_t> slots_[kSlots]{};  // address << 2 | asked for << 1 | 1
  bool seen_[List::kMost]{};                    // by pattern
};

}  // namespace llmprof::collect::counters
