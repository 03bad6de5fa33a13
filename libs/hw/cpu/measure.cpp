#include "hw/cpu/measure.h"

#include <fmt/format.h>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "base/human.h"
#include "hw/cpu/cpu.h"
#include "hw/cpu/peak_kernels.h"
#include "hw/peaks.h"
#include "wire/clock.h"

namespace llmprof::hw {

namespace {

constexpr auto kComputeRound = std::chrono::milliseconds(10);
constexpr int kComputeRounds = 24;  // per instruction set, after one of warm-up
constexpr auto kCacheRound = std::chrono::milliseconds(4);
constexpr std::size_t kBytesPerLook = 4 << 20;  // between two looks at the clock: over 10 µs in any cache
constexpr int kLeastRounds = 3, kMostRounds = 60;

Error interrupted() { return {ErrorCode::kInterrupted, "interrupted while measuring peaks", ""}; }

using MultiplyAdd = std::int64_t (*)(std::int64_t, double*);

double multiply_add_for(MultiplyAdd kernel, PeakClock::duration time) {
  constexpr std::int64_t kRoundsPerLook = 20'000;  // 50 to 150 µs: the clock reads in between cost nothing
  double sink[2] = {0.999, 0};
  double flops = 0;
  for (const auto deadline = PeakClock::now() + time; PeakClock::now() < deadline;) {
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

// One thread's part of a stream: arrays behind each other, as many as the stream has.
struct Slice {
  std::byte* begin = nullptr;
  std::size_t array_bytes = 0;  // of each array
  std::size_t arrays = 1;
  std::byte* array(std::size_t index) const { return begin + index * array_bytes; }
  double bytes() const { return static_cast<double>(array_bytes * arrays); }
};

std::size_t array_count(Stream stream) {
  if (stream == Stream::kCopy) return 2;
  return stream == Stream::kTriad ? 3 : 1;
}

struct StreamLoop {
  Stream stream;
  const StoreKernels* stores;
  std::string_view how;  // "AVX-512", "AVX-512, streaming stores"

  void pass(const Slice& slice, std::int64_t passes) const {
    static std::atomic<std::uint64_t> kept;
    const StoreKernels& s = *stores;
    switch (stream) {
      case Stream::kRead:
        kept.store(best_kernels().sum(slice.begin, slice.array_bytes, passes), std::memory_order_relaxed);
        break;
      case Stream::kWrite:
        s.write(slice.begin, nullptr, nullptr, slice.array_bytes, passes);
        break;
      case Stream::kCopy:
        s.copy(slice.array(0), slice.array(1), nullptr, slice.array_bytes, passes);
        break;
      case Stream::kTriad:
        s.triad(slice.array(0), slice.array(1), slice.array(2), slice.array_bytes, passes);
        break;
    }
  }
};

// Streaming stores only pay, and only make sense, where the data does not fit a cache.
std::vector<StreamLoop> loops_of(Stream stream, bool memory) {
  const PeakKernels& best = best_kernels();
  std::vector<StreamLoop> loops{{stream, &best.plain, ""}};
  if (memory && stream != Stream::kRead) loops.push_back({stream, &best.streaming, ", streaming stores"});
  return loops;
}

// In a cache: passes for the time of a round. In memory: one pass.
double stream_round(const StreamLoop& loop, const Slice& slice, bool memory) {
  if (memory) {
    loop.pass(slice, 1);
    return slice.bytes();
  }
  const auto passes = static_cast<std::int64_t>(std::max<std::size_t>(1, kBytesPerLook / slice.array_bytes));
  double bytes = 0;
  for (const auto deadline = PeakClock::now() + kCacheRound; PeakClock::now() < deadline;) {
    loop.pass(slice, passes);
    bytes += slice.bytes() * static_cast<double>(passes);
  }
  return bytes;
}

std::string_view verb_of(Stream stream) {
  constexpr std::string_view kVerbs[] = {"sum", "fill", "copy", "triad"};
  return kVerbs[static_cast<std::size_t>(stream)];
}

constexpr double kEnoughCpu = 0.95;

double thread_cpu_seconds() { return static_cast<double>(wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID)) * 1e-9; }

// Spins: threads woken by the kernel one after the other would begin milliseconds apart.
void meet(std::atomic<std::int64_t>& missing) {
  missing.fetch_sub(1);
  for (int spins = 0; missing.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins % 1024 == 1023) std::this_thread::yield();
  }
}

Work together(const std::vector<Work>& parts) {
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

}  // namespace

Result<Peak> measure_multiply_add(const CpuTeam& team, std::string_view type, std::chrono::milliseconds time,
                                  const GoOn& go_on) {
  const auto kernel = type == "float64" ? &PeakKernels::multiply_add_float64 : &PeakKernels::multiply_add_float32;
  BestRound best;
  for (const PeakKernels* kernels : candidates()) {
    const auto deadline = PeakClock::now() + time;
    for (int round = 0; round <= kComputeRounds && (round < kLeastRounds || PeakClock::now() < deadline); ++round) {
      if (!go_on()) return interrupted();
      LLMPROF_LET(const Work work,
                  team.run([&](std::int64_t) { return multiply_add_for(kernels->*kernel, kComputeRound); }));
      if (round > 0) best.offer(work, team.size(), kernels->isa);  // the first one woke the clocks
    }
  }
  return measured_peak("flops", std::string(type), best.per_second, "FLOP/s",
                       fmt::format("multiply-add loop, {}, {}", best.how, best.text(team.size(), "rounds")));
}

std::string stream_type(Stream stream, const StreamLevel& level, bool one_core) {
  constexpr std::string_view kNames[] = {"read", "write", "copy", "triad"};
  std::string type(kNames[static_cast<std::size_t>(stream)]);
  if (!level.name.empty()) type += ", " + level.name;
  return type + (one_core ? ", one core" : "");
}

Result<void> touch(const CpuTeam& team, const PeakBuffer& buffer) {
  const std::size_t slice = buffer.bytes() / static_cast<std::size_t>(team.size());
  LLMPROF_TRY(team.run([&](std::int64_t index) {
    std::fill_n(buffer.data() + static_cast<std::size_t>(index) * slice, slice, std::byte{1});
    return 0.0;
  }));
  return {};
}

Result<Peak> measure_stream(const CpuTeam& team, Stream stream, const StreamLevel& level, const PeakBuffer& buffer,
                            std::chrono::milliseconds time, const GoOn& go_on) {
  const bool memory = level.name.empty();
  const std::size_t arrays = array_count(stream);
  const std::size_t array_bytes = level.bytes_per_thread / arrays / kReadBlockBytes * kReadBlockBytes;
  if (array_bytes == 0 || level.bytes_per_thread * static_cast<std::size_t>(team.size()) > buffer.bytes())
    return Error{ErrorCode::kUnsupported, level.why.empty() ? "the data are too small" : level.why, ""};
  const auto slice = [&](std::int64_t index) {
    return Slice{buffer.data() + static_cast<std::size_t>(index) * level.bytes_per_thread, array_bytes, arrays};
  };
  BestRound best;
  const std::vector<StreamLoop> loops = loops_of(stream, memory);
  const auto deadline = PeakClock::now() + time;
  while (best.rounds < kLeastRounds || (best.rounds < kMostRounds && PeakClock::now() < deadline)) {
    if (!go_on()) return interrupted();
    const StreamLoop& loop = loops[static_cast<std::size_t>(best.rounds) % loops.size()];
    LLMPROF_LET(const Work work,
                team.run([&](std::int64_t index) { return stream_round(loop, slice(index), memory); }));
    best.offer(work, team.size(), loop.how);
  }
  const double total = static_cast<double>(array_bytes * arrays) * static_cast<double>(team.size());
  return measured_peak("bandwidth", stream_type(stream, level, false), best.per_second, "B/s",
                       fmt::format("{} of {}, {}{}, {}", verb_of(stream), base::human_bytes(total), best_kernels().isa,
                                   best.how, best.text(team.size(), memory ? "passes" : "rounds")));
}

void BestRound::offer(const Work& work, std::int64_t threads, std::string_view with) {
  ++rounds;
  const double seconds = std::max(work.seconds(), 1e-9);
  if (work.amount / seconds <= per_second) return;
  per_second = work.amount / seconds;
  cpu_share = work.cpu_seconds / seconds / static_cast<double>(threads);
  how = with;
}

std::string BestRound::text(std::int64_t threads, std::string_view unit) const {
  std::string out = fmt::format("{} thread{}, best of {} {}", threads, threads == 1 ? "" : "s", rounds, unit);
  if (cpu_share < kEnoughCpu) out += fmt::format(", {} {:.0f} %", kShortOfCpu, cpu_share * 100);
  return out;
}

CpuTeam::CpuTeam(std::int64_t threads)
    : size_(std::max<std::int64_t>(1, threads)), cpus_(read_cpu(SystemFiles()).allowed) {}

void CpuTeam::pin(std::int64_t index) const {
  if (static_cast<std::int64_t>(cpus_.size()) != size_) return;
  const int cpu = cpus_[static_cast<std::size_t>(index)];
  if (cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

Result<Work> CpuTeam::run(const std::function<double(std::int64_t)>& work) const {
  std::vector<Work> parts(static_cast<std::size_t>(size_));
  std::atomic<std::int64_t> missing{size_};
  std::vector<std::thread> threads;
  const auto body = [&](std::int64_t index) {
    pin(index);
    meet(missing);
    Work& part = parts[static_cast<std::size_t>(index)];
    const double cpu_before = thread_cpu_seconds();
    part.begin = PeakClock::now();
    part.amount = work(index);
    part.end = PeakClock::now();
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

PeakBuffer::PeakBuffer(std::size_t bytes) : data_(nullptr, Unmap{bytes}) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return;
  data_.reset(static_cast<std::byte*>(address));
  ::madvise(address, bytes, MADV_HUGEPAGE);
}

void Unmap::operator()(std::byte* data) const { ::munmap(data, bytes); }

}  // namespace llmprof::hw
