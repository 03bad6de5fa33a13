#pragma once
// For what we do on a thread of the program and must finish: no signal handler runs (it could jump out, or raise an
// event and wait for itself), a cancelled thread does not end here (open, write and close are places where it may), and
// errno stays as the program left it.

#include <pthread.h>
#include <signal.h>

#include "collect/futex.h"

namespace llmprof::collect {

class Undisturbed {
 public:
  Undisturbed() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~Undisturbed() {
    pthread_setcancelstate(cancel_state_, nullptr);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  KeepErrno keep_;
  sigset_t signals_{};
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace llmprof::collect
