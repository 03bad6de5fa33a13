#include "bench/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "hw/cpu/cpu.h"

namespace llmprof::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Part = std::function<void(std::int64_t, std::int64_t)>;

// Longer than the pause between two calls of a benchmark, shorter than what a waiting core costs others.
constexpr auto kSpinTime = std::chrono::microseconds(50);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until `value` is no longer `old`: with the core at first (waking a thread costs microseconds), then without.
void await_change(std::atomic<std::uint32_t>& value, std::uint32_t old, Clock::duration spin) {
  if (spin > Clock::duration::zero()) {
    for (const auto deadline = Clock::now() + spin; Clock::now() < deadline;) {
      for (int i = 0; i < 64; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        relax();
      }
    }
  }
  value.wait(old, std::memory_order_acquire);
}

void pin_this_thread(int cpu) {
  if (cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

}  // namespace

struct Team::State {
  std::vector<std::thread> workers;
  std::vector<int> cpus;  // allowed ones; a worker is pinned when there is one for each thread
  Clock::duration spin = kSpinTime;

  // One job at a time. `round` begins it; the last worker to finish it changes `finished`. Each on a cache line of its
  // own: those that spin on one do not slow down those that count on another.
  alignas(64) std::atomic<std::uint32_t> round{0};
  alignas(64) std::atomic<std::uint32_t> finished{0};
  alignas(64) std::atomic<std::int64_t> running{0};
  alignas(64) bool stop = false;
  const Part* part = nullptr;
  std::int64_t count = 0, pieces = 0;

  void run_piece(std::int64_t index) const {
    if (index >= pieces) return;
    const std::int64_t each = count / pieces, rest = count % pieces;
    const std::int64_t begin = each * index + std::min(index, rest);
    (*part)(begin, begin + each + (index < rest ? 1 : 0));
  }

  void work(std::int64_t index, bool pinned) {
    if (pinned) pin_this_thread(cpus[static_cast<std::size_t>(index)]);
    for (std::uint32_t seen = 0;;) {
      await_change(round, seen, spin);
      seen = round.load(std::memory_order_acquire);
      if (stop) return;
      run_piece(index);
      if (running.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      finished.fetch_add(1, std::memory_order_release);
      finished.notify_one();
    }
  }

  void begin_round() {
    running.store(static_cast<std::int64_t>(workers.size()), std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
  }
};

// The caller is not pinned: threads that a library starts from it later (a BLAS) would inherit its one CPU.
Team::Team(std::int64_t threads) : state_(std::make_unique<State>()) {
  state_->cpus = hw::read_cpu(hw::SystemFiles()).allowed;
  const auto cpus = static_cast<std::int64_t>(state_->cpus.size());
  const bool pinned = threads == cpus;
  if (threads > cpus) state_->spin = Clock::duration::zero();  // would only keep others from their work
  try {
    for (std::int64_t index = 1; index < threads; ++index) {
      state_->workers.emplace_back([state = state_.get(), index, pinned] { state->work(index, pinned); });
    }
  } catch (const std::system_error&) {  // the limit on threads: fewer, then
  }
}

Team::~Team() {
  state_->stop = true;
  state_->begin_round();
  for (std::thread& worker : state_->workers) worker.join();
}

std::int64_t Team::size() const { return static_cast<std::int64_t>(state_->workers.size()) + 1; }

void Team::each(std::int64_t count, std::int64_t grain, const Part& part) const {
  if (count <= 0) return;
  const std::int64_t pieces = std::min(size(), std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain)));
  if (pieces == 1) return part(0, count);
  State& state = *state_;
  state.part = &part;
  state.count = count;
  state.pieces = pieces;
  const std::uint32_t before = state.finished.load(std::memory_order_relaxed);
  state.begin_round();
  state.run_piece(0);
  await_change(state.finished, before, state.spin);
}

}  // namespace llmprof::bench
