#include "hw/cpu_team.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <system_error>
#include <thread>

#include "hw/cpu.h"
#include "hw/peaks.h"

namespace llmprof::hw {
namespace {

constexpr double kEnoughCpu = 0.95;

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

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

PeakBuffer::PeakBuffer(std::size_t bytes) : bytes_(bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(address);
  ::madvise(data_, bytes, MADV_HUGEPAGE);
}

PeakBuffer::~PeakBuffer() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace llmprof::hw
