#include "hw/peaks.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <system_error>
#include <thread>

#include "base/human.h"
#include "hw/cpu.h"
#include "hw/peak_kernels.h"

namespace llmprof::hw {
namespace {

using Clock = std::chrono::steady_clock;

// About 2 s in all when the machine is idle, 3 s when it is not: the best of many short rounds, each part within its
// time.
constexpr auto kComputeRound = std::chrono::milliseconds(10);
constexpr int kComputeRounds = 24;                             // per instruction set, after one of warm-up
constexpr auto kComputeTime = std::chrono::milliseconds(260);  // per instruction set
constexpr auto kReadTime = std::chrono::milliseconds(700);
constexpr double kEnoughCpu = 0.95;
constexpr int kMinReadPasses = 3, kMaxReadPasses = 40;

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// How much was done between the first thread's begin and the last thread's end.
struct Work {
  double amount = 0;
  double cpu_seconds = 0;
  Clock::time_point begin, end;
  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

// The best round of several, and the share of its CPU time that it got: less than all of it on a busy machine.
struct Best {
  double per_second = 0;
  double cpu_share = 0;
  std::string_view isa;
  int rounds = 0;

  void offer(const Work& work, std::int64_t threads, std::string_view with_isa) {
    ++rounds;
    const double seconds = std::max(work.seconds(), 1e-9);
    if (work.amount / seconds <= per_second) return;
    per_second = work.amount / seconds;
    cpu_share = work.cpu_seconds / seconds / static_cast<double>(threads);
    isa = with_isa;
  }
};

// One thread per usable CPU, each on its own CPU when there is one for each: the scheduler never stacks two.
class Team {
 public:
  explicit Team(const Device& device)
      : size_(std::max<std::int64_t>(1, device.units)), cpus_(read_cpu(SystemFiles()).allowed) {}

  std::int64_t size() const { return size_; }

  // Runs work(thread) on all at once; the threads meet before they begin.
  Result<Work> run(const std::function<double(std::int64_t)>& work) const {
    std::vector<Work> parts(static_cast<std::size_t>(size_));
    std::atomic<std::int64_t> missing{size_};
    std::vector<std::thread> threads;
    const auto body = [&](std::int64_t index) {
      pin(index);
      meet(missing);
      Work& part = parts[static_cast<std::size_t>(index)];
      const double cpu_before = thread_cpu_seconds();
      part.begin = Clock::now();
      part.amount = work(index);
      part.end = Clock::now();
      part.cpu_seconds = thread_cpu_seconds() - cpu_before;
    };
    try {
      for (std::int64_t index = 0; index < size_; ++index) threads.emplace_back(body, index);
    } catch (const std::system_error&) {  // the limit on threads
    }
    const bool complete = static_cast<std::int64_t>(threads.size()) == size_;
    if (!complete) missing = 0;  // let those that wait go
    for (std::thread& thread : threads) thread.join();
    if (!complete)
      return Error{ErrorCode::kUnsupported, fmt::format("cannot start {} threads", size_), "raise `ulimit -u`"};
    return together(parts);
  }

 private:
  // Spins: threads woken by the kernel one after the other would begin milliseconds apart.
  static void meet(std::atomic<std::int64_t>& missing) {
    missing.fetch_sub(1);
    for (int spins = 0; missing.load(std::memory_order_acquire) > 0; ++spins) {
      if (spins % 1024 == 1023) std::this_thread::yield();
    }
  }

  void pin(std::int64_t index) const {
    if (static_cast<std::int64_t>(cpus_.size()) != size_) return;
    const int cpu = cpus_[static_cast<std::size_t>(index)];
    if (cpu >= CPU_SETSIZE) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  }

  static Work together(const std::vector<Work>& parts) {
    Work all = parts.front();
    all.amount = all.cpu_seconds = 0;
    for (const Work& part : parts) {
      all.amount += part.amount;
      all.cpu_seconds += part.cpu_seconds;
      all.begin = std::min(all.begin, part.begin);
      all.end = std::max(all.end, part.end);
    }
    return all;
  }

  std::int64_t size_;
  std::vector<int> cpus_;
};

std::string method_text(std::string_view what, const Best& best, const Team& team, std::string_view unit) {
  std::string text = fmt::format("{}, {}, {} thread{}, best of {} {}", what, best.isa, team.size(),
                                 team.size() == 1 ? "" : "s", best.rounds, unit);
  if (best.cpu_share < kEnoughCpu) text += fmt::format(", {} {:.0f} %", kShortOfCpu, best.cpu_share * 100);
  return text;
}

Result<void> report(const base::Progress& progress, std::string_view what, int done, int total) {
  if (progress({what, static_cast<double>(done), static_cast<double>(total), "rounds"})) return {};
  return Error{ErrorCode::kInterrupted, "interrupted while measuring peaks", ""};
}

using MultiplyAdd = std::int64_t (*)(std::int64_t, double*);

double multiply_add_for(MultiplyAdd kernel, Clock::duration time) {
  constexpr std::int64_t kRoundsPerLook = 20'000;  // 50 to 150 µs: the clock reads in between cost nothing
  double sink[2] = {0.999, 0};
  double flops = 0;
  for (const auto deadline = Clock::now() + time; Clock::now() < deadline;) {
    flops += static_cast<double>(kernel(kRoundsPerLook, sink));
  }
  static std::atomic<double> kept;
  kept.store(sink[1], std::memory_order_relaxed);
  return flops;
}

// Instruction sets worth trying. The widest is not always the fastest: some CPUs lower their clock for AVX-512.
std::vector<const PeakKernels*> candidates() {
  std::vector<const PeakKernels*> found;
  for (const PeakKernels& kernels : peak_kernels()) {
    const bool last = &kernels == &peak_kernels().back();
    if (kernels.supported() && (!last || found.empty())) found.push_back(&kernels);
  }
  return found;
}

Result<Peak> measure_flops(const Team& team, const char* type, MultiplyAdd PeakKernels::*kernel,
                           const base::Progress& progress) {
  Best best;
  for (const PeakKernels* kernels : candidates()) {
    const auto deadline = Clock::now() + kComputeTime;
    for (int round = 0; round <= kComputeRounds && (round < 3 || Clock::now() < deadline); ++round) {
      LLMPROF_TRY(report(progress, "measuring peak FLOP/s", round, kComputeRounds));
      LLMPROF_LET(const Work work,
                  team.run([&](std::int64_t) { return multiply_add_for(kernels->*kernel, kComputeRound); }));
      if (round > 0) best.offer(work, team.size(), kernels->isa);  // the first one woke the clocks
    }
  }
  return Peak{.quantity = "flops",
              .type = type,
              .value = best.per_second,
              .unit = "FLOP/s",
              .source = "measured",
              .method = method_text("multiply-add loop", best, team, "rounds")};
}

// A private mapping, freed at the end. Large pages where the system gives them, so that page walks are not measured.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(address);
    ::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Buffer() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

// Per thread: much larger than the caches together, no more than a quarter of the memory.
std::size_t slice_bytes(const Device& device, std::int64_t threads) {
  constexpr std::int64_t kLeast = 512ll << 20, kMost = 8ll << 30;
  std::int64_t total = std::clamp(4 * device.cache_bytes, kLeast, kMost);
  if (device.memory_bytes > 0) total = std::min(total, device.memory_bytes / 4);
  const auto slice = static_cast<std::size_t>(total / threads);
  return std::max(slice / kReadBlockBytes, std::size_t{1}) * kReadBlockBytes;
}

Result<Peak> measure_read(const Team& team, const Device& device, const base::Progress& progress) {
  const std::size_t slice = slice_bytes(device, team.size());
  const std::size_t total = slice * static_cast<std::size_t>(team.size());
  const Buffer buffer(total);
  if (buffer.data() == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("no {} of memory for the bandwidth measurement", base::human_bytes(total)), ""};
  }
  const auto part = [&](std::int64_t index) { return buffer.data() + static_cast<std::size_t>(index) * slice; };
  // Each thread touches what it will read: page faults happen now, and pages lie near the thread's memory.
  LLMPROF_TRY(team.run([&](std::int64_t index) {
    std::fill_n(part(index), slice, std::byte{1});
    return 0.0;
  }));
  Best best;
  const auto deadline = Clock::now() + kReadTime;
  while (best.rounds < kMinReadPasses || (best.rounds < kMaxReadPasses && Clock::now() < deadline)) {
    LLMPROF_TRY(report(progress, "measuring peak bandwidth", best.rounds, kMaxReadPasses));
    LLMPROF_LET(const Work work, team.run([&](std::int64_t index) {
      static std::atomic<std::uint64_t> kept;
      kept.store(best_kernels().sum(part(index), slice), std::memory_order_relaxed);
      return static_cast<double>(slice);
    }));
    best.offer(work, team.size(), best_kernels().isa);
  }
  return Peak{.quantity = "bandwidth",
              .type = "read",
              .value = best.per_second,
              .unit = "B/s",
              .source = "measured",
              .method = method_text("sum of " + base::human_bytes(static_cast<double>(total)), best, team, "passes")};
}

}  // namespace

Result<std::vector<Peak>> measure_cpu_peaks(const Device& device, const base::Progress& progress) {
  const Team team(device);
  LLMPROF_LET(const Peak float32, measure_flops(team, "float32", &PeakKernels::multiply_add_float32, progress));
  LLMPROF_LET(const Peak float64, measure_flops(team, "float64", &PeakKernels::multiply_add_float64, progress));
  LLMPROF_LET(const Peak read, measure_read(team, device, progress));
  return std::vector<Peak>{float32, float64, read};
}

}  // namespace llmprof::hw
