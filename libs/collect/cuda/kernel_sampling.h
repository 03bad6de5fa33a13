#pragma once
// Which kernels are timed, where a program launches so many that timing each would slow it. All launches are noted; of
// those that repeat, a stretch of time in eight is recorded with what the device did, and the recorder estimates the
// others from the same launches in these. Launches that did not repeat yet are always recorded.
//
// Plain decisions, no CUPTI. Kinds of activity are switched from inside a launch (12 us on an H200), so that the launch
// itself is recorded already.

#include <atomic>
#include <cstdint>
#include "collect/os.h"

namespace llmprof::collect {

// What tells a launch from others on its thread: the kernel, about how large it is, and what was launched before it.
// The same product of another layer is the same launch; a kernel that serves several products is several.
struct LaunchTrace {
  std::uint64_t before[2];

  struct Size {
    const std::uint32_t (&grid)[3];
    const std::uint32_t (&block)[3];
  };
  std::uint64_t next(const void* symbol, const Size& size) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(symbol) * kOdd;
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t length = std::uint64_t{rough(size.grid[i])} << 32 | size.block[i];
      hash = ((hash >> 32 | hash << 32) ^ length) * kOdd;
    }
    const std::uint64_t key = ((before[0] * 3) ^ (before[1] * 5) ^ hash) * kOdd;
    before[0] = before[1];
    before[1] = hash;
    return key;
  }

  // Three leading bits: sizes that grow with every token are the same most of the time.
  static std::uint32_t rough(std::uint32_t length) {
    const int bits = length < 8 ? 0 : 29 - __builtin_clz(length);
    return length >> bits << bits;
  }
};

class KernelSampling {
 public:
  enum class Action : std::uint8_t { kNone, kRecord, kNote };
  struct Decision {
    Action action = Action::kNone;  // kRecord, kNote: the caller switches, and then calls switched()
    std::uint16_t number = 0;       // of the launch among those that are told apart; 0: it is one of too many
  };

  // From here on. Before, everything is recorded and launches have no numbers.
  void begin(std::uint64_t now_ns, std::uint64_t first_ns = kRecordedNs) {
    if (why_not() != nullptr || is_in_force()) return;
    until_ns_.store(now_ns + first_ns, std::memory_order_relaxed);
    regular_ns_ = now_ns + first_ns + kNotedNs;
    in_force_.store(true, std::memory_order_release);
  }

  bool is_in_force() const { return in_force_.load(std::memory_order_relaxed); }
  bool is_recording() const { return state_.load(std::memory_order_relaxed) == State::kRecorded; }
  // Everything is recorded for the rest of the program. True: the caller switches recording on.
  // Another thread may be switching, which takes moments: it looks again when it has.
  bool give_up(const char* why) {
    constexpr int kLongestMs = 50;
    end(why);
    for (int i = 0; i < kLongestMs && deciding_.load() != 0; ++i) futex_wait(deciding_, 1, 1);
    return deciding_.load() == 0 && state_.exchange(State::kRecorded) == State::kNoted;
  }

  const char* why_not() const { return why_not_.load(std::memory_order_relaxed); }  // null: it was not given up

  // At the begin of every launch of a kernel while it is in force.
  Decision launch_begins(std::uint64_t key, std::uint64_t now_ns) {
    Decision decision;
    const std::uint32_t at = find(key);
    bool is_new = true;
    if (at < kSlots) {
      decision.number = static_cast<std::uint16_t>(at + 1);
      is_new = slots_[at].recorded.load(std::memory_order_relaxed) < kFew;
    }
    const bool over = now_ns >= until_ns_.load(std::memory_order_relaxed);
    if ((over || is_new) && deciding_.exchange(1) == 0) {
      if (is_in_force()) {
        decision.action = next(is_new, now_ns);
      } else if (!is_recording()) {
        decision.action = Action::kRecord;  // whoever gave it up did not wait any longer for this thread
      }
      if (decision.action == Action::kNone) deciding_.store(0, std::memory_order_release);
    }
    const bool recorded = decision.action == Action::kRecord || (decision.action == Action::kNone && is_recording());
    if (recorded && is_new && at < kSlots) slots_[at].recorded.fetch_add(1, std::memory_order_relaxed);
    return decision;
  }

  // True: it was given up meanwhile, and the caller switches recording on again.
  bool switched(Action action) {
    state_.store(action == Action::kNote ? State::kNoted : State::kRecorded);
    if (action == Action::kRecord && short_ones_ > kMostShort) end("its launches do not repeat");
    deciding_.store(0);
    return !in_force_.load() && state_.exchange(State::kRecorded) == State::kNoted;
  }

  static constexpr std::uint64_t kRecordedNs = 300'000'000, kNotedNs = 2'100'000'000;
  static constexpr std::uint64_t kShortNs = 2'000'000;  // for a launch that is new: others may follow
  static constexpr std::uint32_t kFew = 8;              // a launch repeats when it was recorded so often
  static constexpr std::uint32_t kMostShort = 64;       // stretches for new launches between two regular ones

 private:
  enum class State : std::uint8_t { kRecorded = 0, kNoted };
  static constexpr std::uint32_t kSlots = 1u << 13, kProbes = 8;
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint32_t> recorded{0};
  };
  std::uint32_t find(std::uint64_t key) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    if (key == 0) key = 1;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      const std::uint32_t at = static_cast<std::uint32_t>((key * kOdd >> 48) + probe) % kSlots;
      std::uint64_t found = slots_[at].key.load(std::memory_order_relaxed);
      if (found == 0 && slots_[at].key.compare_exchange_strong(found, key, std::memory_order_relaxed)) return at;
      if (found == key) return at;
    }
    return kSlots;
  }

  Action next(bool is_new, std::uint64_t now_ns) {
    const bool is_over = now_ns >= until_ns_.load(std::memory_order_relaxed);
    if (state_.load(std::memory_order_relaxed) == State::kRecorded) {
      if (!is_over || is_new) return Action::kNone;
      until_ns_.store(regular_ns_, std::memory_order_relaxed);
      return Action::kNote;
    }
    if (is_over) {
      until_ns_.store(now_ns + kRecordedNs, std::memory_order_relaxed);
      regular_ns_ = now_ns + kRecordedNs + kNotedNs;
      short_ones_ = 0;
      return Action::kRecord;
    }
    if (!is_new) return Action::kNone;
    ++short_ones_;
    until_ns_.store(now_ns + kShortNs, std::memory_order_relaxed);
    return Action::kRecord;
  }

  void end(const char* why) {
    const char* none = nullptr;
    why_not_.compare_exchange_strong(none, why, std::memory_order_relaxed);
    in_force_.store(false);
  }

  std::atomic<bool> in_force_{false};
  std::atomic<State> state_{State::kRecorded};
  std::atomic<std::uint32_t> deciding_{0};  // what follows belongs to one thread at a time
  std::atomic<const char*> why_not_{nullptr};
  std::atomic<std::uint64_t> until_ns_{0};
  std::uint64_t regular_ns_ = 0;  // when the next regular stretch begins
  std::uint32_t short_ones_ = 0;
  Slot slots_[kSlots]{};
};

}  // namespace llmprof::collect
