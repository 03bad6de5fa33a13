#include "collect/own_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

namespace llmprof::collect {
namespace {

constexpr std::size_t kLargeStackBytes = 64u << 20;

}  // namespace

bool start_own_thread(void* (*main)(void*), std::size_t stack_bytes) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) {
    errno = error;
    return false;
  }
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread: it never runs the program's handlers
  pthread_t thread;
  int result = pthread_create(&thread, &attributes, main, nullptr);
  if (result == EINVAL) {  // the program's thread-local data alone is larger
    pthread_attr_setstacksize(&attributes, kLargeStackBytes);
    result = pthread_create(&thread, &attributes, main, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  errno = result;
  return result == 0;
}

void name_own_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace llmprof::collect
