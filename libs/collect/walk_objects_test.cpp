#include "collect/images.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace llmprof::collect {
namespace {

int look(dl_phdr_info*, std::size_t, void*) { return 0; }

// The lock is held for a while, so that most forks find it held.
int linger(dl_phdr_info*, std::size_t, void*) {
  usleep(500);
  return 1;
}

TEST(WalkObjects, AChildForkedInTheMiddleOfAWalkCanWalk) {
  std::atomic<bool> stop = false;
  std::thread walker([&] {
    while (!stop) walk_objects(linger, nullptr);
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // without the handlers the child waits for a lock that nobody holds any more
      dl_iterate_phdr(look, nullptr);
      walk_objects(look, nullptr);
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "fork " << i;
  }
  stop = true;
  walker.join();
}

}  // namespace
}  // namespace llmprof::collect
