#include "collect/cuda/kernel_sampling.h"

#include "collect/os.h"

namespace llmprof::collect {

void KernelSampling::begin(std::uint64_t now_ns, std::uint64_t first_ns) {
  if (why_not() != nullptr || is_in_force()) return;
  until_ns_.store(now_ns + first_ns, std::memory_order_relaxed);
  regular_ns_ = now_ns + first_ns + kNotedNs;
  in_force_.store(true, std::memory_order_release);
}

void KernelSampling::end(const char* why) {
  const char* none = nullptr;
  why_not_.compare_exchange_strong(none, why, std::memory_order_relaxed);
  in_force_.store(false);
}

// Another thread may be switching, which takes moments: it looks again when it has.
bool KernelSampling::give_up(const char* why) {
  constexpr int kLongestMs = 50;
  end(why);
  for (int i = 0; i < kLongestMs && deciding_.load() != 0; ++i) futex_wait(deciding_, 1, 1);
  return deciding_.load() == 0 && state_.exchange(State::kRecorded) == State::kNoted;
}

std::uint32_t KernelSampling::find(std::uint64_t key) {
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

KernelSampling::Action KernelSampling::next(bool is_new, std::uint64_t now_ns) {
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

KernelSampling::Decision KernelSampling::launch_begins(std::uint64_t key, std::uint64_t now_ns) {
  Decision decision;
  const std::uint32_t at = find(key);
  bool is_new = true;
  if (at < kSlots) {
    decision.number = static_cast<std::uint16_t>(at + 1);
    is_new = slots_[at].recorded.load(std::memory_order_relaxed) < kFew;
  }
  const bool over = now_ns >= until_ns_.load(std::memory_order_relaxed);
  if ((over || is_new) && deciding_.exchange(1) == 0) {
    if (is_in_force()) decision.action = next(is_new, now_ns);
    if (decision.action == Action::kNone) deciding_.store(0, std::memory_order_release);
  }
  const bool recorded = decision.action == Action::kRecord || (decision.action == Action::kNone && is_recording());
  if (recorded && is_new && at < kSlots) slots_[at].recorded.fetch_add(1, std::memory_order_relaxed);
  return decision;
}

bool KernelSampling::switched(Action action) {
  state_.store(action == Action::kNote ? State::kNoted : State::kRecorded);
  if (action == Action::kRecord && short_ones_ > kMostShort) end("its launches do not repeat");
  deciding_.store(0);
  return !in_force_.load() && state_.exchange(State::kRecorded) == State::kNoted;
}

}  // namespace llmprof::collect
