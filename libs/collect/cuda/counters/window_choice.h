#pragma once
// Which occurrences of which ranges are measured. Plain arithmetic: no clock, no CUPTI.
//
// The first times a name is seen it is measured at once, out of a credit, so that rare work is known even in short
// programs. After that every window is earned: time passes, and a share of it may be spent; what came out of the credit
// is paid back first, so in the long run it costs nothing more. Of two names the one that
// was measured more often leaves room for one more window, so the other, coming later, is not crowded out.
//
// A set of several passes needs many windows of one name: one is chosen and kept until it is through, or until it no
// longer comes. It has to have come before: what comes once cannot be measured in several passes.

#include <cstdint>

#include "collect/cuda/counters/budget.h"

namespace llmprof::collect::counters {

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

}  // namespace llmprof::collect::counters
