// What sampling CPU stacks costs llmprof: CPU time of the sampling thread per sample, unwinding, names, Python frames
// and log included. Usage: unwind_cost SECONDS HZ PROGRAM [ARGUMENT…]; the program should be busy for longer than that.
// Budget: 2 % of one core for one busy thread at 99 Hz, which is 202 us per sample.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "host/host_log.h"
#include "host/stacks/stack_sampler.h"

namespace {

using llmprof::host::HostLog;
using llmprof::host::StackSampler;
using llmprof::host::StackStats;
using Clock = std::chrono::steady_clock;

double thread_cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

void drain_for(StackSampler& sampler, double seconds) {
  std::vector<pollfd> polled;
  for (const int descriptor : sampler.descriptors()) polled.push_back({descriptor, POLLIN, 0});
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    ::poll(polled.data(), polled.size(), 100);
    sampler.drain();
  }
}

struct Cost {
  double cpu_us;
  StackStats stats;
};

Cost measure(StackSampler& sampler, double seconds) {
  const double before_us = thread_cpu_us();
  const StackStats before = sampler.stats();
  drain_for(sampler, seconds);
  Cost cost{thread_cpu_us() - before_us, sampler.stats()};
  cost.stats.samples -= before.samples;
  return cost;
}

pid_t start(char** command, int& go) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte = 0;
    if (::read(ends[0], &byte, 1) == 1) ::execvp(command[0], command);
    ::_exit(127);
  }
  ::close(ends[0]);
  go = ends[1];
  return pid;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: unwind_cost SECONDS HZ PROGRAM [ARGUMENT…]\n");
    return 2;
  }
  const double seconds = std::atof(arguments[1]);
  const auto hz = static_cast<std::uint32_t>(std::atoi(arguments[2]));
  const std::string path = "/tmp/unwind_cost." + std::to_string(::getpid());
  HostLog log = std::move(HostLog::create(path).value());
  ::unlink(path.c_str());
  int go = -1;
  const pid_t pid = start(arguments + 3, go);
  auto sampler = StackSampler::open(pid, {.hz = hz}, log);
  if (!sampler) {
    std::fprintf(stderr, "%s. %s\n", sampler.error().message.c_str(), sampler.error().hint.c_str());
    ::kill(pid, SIGKILL);
    return 2;
  }
  if (::write(go, "g", 1) != 1) return 2;
  const Cost first = measure(**sampler, 1);  // files are opened, symbols read, names made
  const Cost then = measure(**sampler, seconds);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  const StackStats& stats = then.stats;
  if (then.stats.samples == 0) return 2;
  const double per_sample_us = then.cpu_us / static_cast<double>(then.stats.samples);
  std::printf("first second   %.1f ms CPU, %llu samples\n", first.cpu_us / 1e3,
              static_cast<unsigned long long>(first.stats.samples));
  std::printf("then           %.1f us CPU per sample, %llu samples, %llu lost\n", per_sample_us,
              static_cast<unsigned long long>(stats.samples), static_cast<unsigned long long>(stats.lost));
  std::printf("at 99 Hz       %.2f %% of a core for one busy thread (budget 2 %%)\n", per_sample_us * 99 / 1e4);
  if (stats.python_samples + stats.python_failed > 0) {
    std::printf("Python frames  read in %llu of %llu samples\n", static_cast<unsigned long long>(stats.python_samples),
                static_cast<unsigned long long>(stats.python_samples + stats.python_failed));
  }
  return 0;
}
