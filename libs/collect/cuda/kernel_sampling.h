#pragma once
// Which kernels are timed, where a program launches so many that timing each would slow it. All launches are noted; of
// those that repeat, a stretch of time in eight is recorded with what the device did, and the recorder estimates the
// others from the same launches in these. Launches that did not repeat yet are always recorded.
//
// Plain decisions, no CUPTI. Kinds of activity are switched from inside a launch (12 us on an H200), so that the launch
// itself is recorded already.

#include <atomic>
#include <cstdint>

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
  void begin(std::uint64_t now_ns, std::uint64_t first_ns = kRecordedNs);
  bool is_in_force() const { return in_force_.load(std::memory_order_relaxed); }
  bool is_recording() const { return state_.load(std::memory_order_relaxed) == State::kRecorded; }
  // Everything is recorded for the rest of the program. True: the caller switches recording on.
  bool give_up(const char* why);
  const char* why_not() const { return why_not_.load(std::memory_order_relaxed); }  // null: it was not given up

  // At the begin of every launch of a kernel while it is in force.
  Decision launch_begins(std::uint64_t key, std::uint64_t now_ns);
  // True: it was given up meanwhile, and the caller switches recording on again.
  bool switched(Action action);

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
  std::uint32_t find(std::uint64_t key);
  Action next(bool is_new, std::uint64_t now_ns);
  void end(const char* why);

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
