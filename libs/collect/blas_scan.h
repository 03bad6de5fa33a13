#pragma once
// The writer's search for BLAS libraries that are not hooked: once a second when objects were loaded since, and at the
// end. A library must be found twice (or at the end), because a program may be about to load what uses it.

#include <cstdint>

namespace llmprof::collect {

class BlasScan {
 public:
  void run(bool final);

 private:
  std::uint64_t objects_ = 0;  // loaded and unloaded so far, at the last look
  bool look_again_ = false;
};

}  // namespace llmprof::collect
