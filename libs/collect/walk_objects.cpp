#include "collect/walk_objects.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "collect/futex.h"

namespace llmprof::collect {
namespace {

std::atomic<std::uint32_t> walks{0}, forks{0};  // under way
std::atomic<bool> handlers{false};

// A fork inside a walk (a signal handler may do that) must not wait for itself for ever.
template <class Done>
void wait_briefly(Done done) {
  constexpr int kTimes = 1000;
  constexpr timespec kPause = {0, 50'000};
  for (int i = 0; i < kTimes && !done(); ++i) nanosleep(&kPause, nullptr);
}

void before_fork() {
  const KeepErrno keep;
  forks.fetch_add(1);
  wait_briefly([] { return walks.load() == 0; });
}

void in_parent() { forks.fetch_sub(1); }

// Only the forking thread lives on, and it does not walk.
void in_child() {
  walks.store(0);
  forks.store(0);
}

void begin_walk() {
  walks.fetch_add(1);
  if (forks.load() == 0) return;
  walks.fetch_sub(1);  // the fork came first
  wait_briefly([] { return forks.load() == 0; });
  walks.fetch_add(1);
}

}  // namespace

void walk_objects(int (*visit)(dl_phdr_info* info, std::size_t size, void* context), void* context) {
  if (!handlers.exchange(true)) pthread_atfork(before_fork, in_parent, in_child);
  begin_walk();
  dl_iterate_phdr(visit, context);
  walks.fetch_sub(1);
}

}  // namespace llmprof::collect
