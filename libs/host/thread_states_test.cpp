// What threads wait for: by the texts of /proc, and of live threads that wait in known ways.
#include "host/thread_states.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "wire/clock.h"

namespace llmprof::host {
namespace {

TEST(ThreadState, ByTheSystemCall) {
  const auto state = [](long number, const std::string& arguments) {
    return state_of_syscall(std::to_string(number) + " " + arguments + " 0x0 0x0 0x0 0x7ffc 0x7f12\n", ::getpid());
  };
  EXPECT_EQ(state_of_syscall("running\n", 1), ThreadState::kUnseen);
  EXPECT_EQ(state_of_syscall("-1 0x7ffc 0x7f12\n", 1), ThreadState::kIo);
  EXPECT_EQ(state(SYS_futex, "0x7f00 0x80 0x2"), ThreadState::kLock);
  EXPECT_EQ(state(SYS_clock_nanosleep, "0x0 0x0 0x1"), ThreadState::kSleep);
  EXPECT_EQ(state(SYS_wait4, "0xffffffff 0x0 0x0"), ThreadState::kChild);
  EXPECT_EQ(state(SYS_epoll_pwait, "0x4 0x7f00 0x10"), ThreadState::kNetwork);
  EXPECT_EQ(state(SYS_fsync, "0x4 0x0 0x0"), ThreadState::kIo);
  EXPECT_EQ(state(SYS_getpid, "0x0 0x0 0x0"), ThreadState::kOther);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(state(SYS_read, std::to_string(ends[0]) + " 0x0 0x1"), ThreadState::kPipe);
  for (const int end : ends) ::close(end);
  for (const char* bad : {"", "\n", "x", "202", "99999999999999999999999 0x1 0x2 0x3", "0 0xffffffffffffffff 0x0 0x0"})
    EXPECT_EQ(state_of_syscall(bad, ::getpid()), ThreadState::kOther) << bad;
}

TEST(ThreadState, ByFilesAndKernelFunctions) {
  EXPECT_EQ(state_of_file("socket:[123]"), ThreadState::kNetwork);
  EXPECT_EQ(state_of_file("pipe:[123]"), ThreadState::kPipe);
  EXPECT_EQ(state_of_file("/dev/nvidia0"), ThreadState::kGpu);
  EXPECT_EQ(state_of_file("/data/weights.bin"), ThreadState::kIo);
  EXPECT_EQ(state_of_file("anon_inode:[eventfd]"), ThreadState::kLock);
  EXPECT_EQ(state_of_file(""), ThreadState::kOther);
  EXPECT_EQ(state_of_wchan("futex_do_wait"), ThreadState::kLock);
  EXPECT_EQ(state_of_wchan("hrtimer_nanosleep"), ThreadState::kSleep);
  EXPECT_EQ(state_of_wchan("ep_poll"), ThreadState::kNetwork);
  EXPECT_EQ(state_of_wchan("folio_wait_bit_common"), ThreadState::kIo);
  EXPECT_EQ(state_of_wchan("do_wait"), ThreadState::kChild);
  EXPECT_EQ(state_of_wchan("0"), ThreadState::kOther);
}

TEST(CpuGroup, BothVersions) {
  const CpuGroup second = parse_cpu_stat("usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500\n");
  EXPECT_EQ(second.periods, 10u);
  EXPECT_EQ(second.throttled, 4u);
  EXPECT_EQ(second.throttled_ns, 2'500'000u);
  EXPECT_EQ(parse_cpu_stat("nr_periods 1\nnr_throttled 1\nthrottled_time 77\n").throttled_ns, 77u);
  EXPECT_EQ(parse_cpu_stat("").periods, 0u);
  EXPECT_EQ(parse_cpu_stat("nr_periods\nnr_throttled x\n\n").throttled, 0u);
}

// A child that does one thing until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& what) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    what();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

struct Sums {
  std::map<ThreadState, std::uint64_t> ns;
  std::uint64_t all = 0, threads = 0;
  double share(ThreadState state) const {
    const auto found = ns.find(state);
    return found == ns.end() ? 0 : static_cast<double>(found->second) / static_cast<double>(all);
  }
};

Sums watch(ThreadStates& states, int readings) {
  Sums out;
  for (int i = 0; i < readings; ++i) {
    states.read();
    ::usleep(20'000);
  }
  for (const ThreadTimes& thread : states.take()) {
    ++out.threads;
    for (std::size_t i = 0; i < kThreadStates; ++i) {
      out.ns[static_cast<ThreadState>(i)] += thread.ns[i];
      out.all += thread.ns[i];
    }
  }
  return out;
}

TEST(ThreadStates, TellSleepingFromWorking) {
  const Child sleeper([] { ::sleep(100); });
  const Child worker([] {
    static volatile int spins = 0;
    while (spins == 0) {
    }
  });
  {
    ThreadStates states;
    states.follow(sleeper.pid());
    watch(states, 3);  // the fork itself is over then
    const Sums sums = watch(states, 20);
    EXPECT_EQ(sums.threads, 1u);
    EXPECT_GT(sums.share(ThreadState::kSleep), 0.9);
  }
  ThreadStates states;
  states.follow(worker.pid());
  const Sums sums = watch(states, 30);
  // On a CPU, or waiting for one if the machine is busy: never blocked.
  EXPECT_GT(sums.share(ThreadState::kUser) + sums.share(ThreadState::kSystem) + sums.share(ThreadState::kRunQueue),
            0.9);
  EXPECT_GT(sums.share(ThreadState::kUser), 0.0);
}

TEST(ThreadStates, AddUpToTheTimeThatPassed) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Child reader([&] {
    char byte;
    while (true) (void)!::read(ends[0], &byte, 1);
  });
  ::usleep(50'000);
  ThreadStates states;
  states.follow(reader.pid());
  states.read();
  (void)states.take();
  const std::uint64_t begin = wire::now_ns();
  const Sums sums = watch(states, 20);
  const std::uint64_t passed = wire::now_ns() - begin;
  EXPECT_GT(sums.share(ThreadState::kPipe), 0.9);
  EXPECT_LE(sums.all, passed + 50'000'000);
  EXPECT_GE(sums.all * 2, passed);  // the last reading came before the end
  for (const int end : ends) ::close(end);
}

TEST(ThreadStates, AProcessThatEndsComesALastTime) {
  ThreadStates states;
  {
    const Child child([] { ::sleep(100); });
    states.follow(child.pid());
    states.read();
  }
  states.read();  // its thread is gone
  EXPECT_EQ(states.take().size(), 1u);
  EXPECT_TRUE(states.take().empty());
  states.follow(0x7ffffff0);  // no process has this number
  states.read();
  EXPECT_TRUE(states.take().empty());
}

}  // namespace
}  // namespace llmprof::host
