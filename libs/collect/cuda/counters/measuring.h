#pragma once
// Profiler calls of a thread of the program: no signal handler may jump out of them, and what CUPTI does with the
// driver in them is not the program's.

#include "collect/state.h"
#include "collect/undisturbed.h"

namespace llmprof::collect::counters {

class Measuring {
 public:
  Measuring() { tl.measuring = true; }
  ~Measuring() { tl.measuring = false; }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

 private:
  Undisturbed undisturbed_;
};

}  // namespace llmprof::collect::counters
