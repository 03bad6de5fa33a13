#pragma once
// The times of kernels, copies and memsets of this process, by CUPTI's activity records. One client per process, as
// CUPTI wants it; used by one thread. No CUDA header is needed to include this.

#include <memory>
#include <vector>

#include "base/result.h"
#include "bench/cuda/activity.h"

namespace llmprof::bench::cuda {

struct CuptiApi;

class Cupti {
 public:
  // Opened with the first call, then the same answer every time. kUnsupported, and why, when the library is missing or
  // another tool (ncu, nsys, a debugger) holds CUPTI.
  static Result<Cupti*> get();
  // Of these functions: for get(), and for tests, which have functions of their own.
  static Result<std::unique_ptr<Cupti>> open(const CuptiApi& api);
  ~Cupti();
  Cupti(const Cupti&) = delete;
  Cupti& operator=(const Cupti&) = delete;

  Result<void> start();                  // records from here on
  Result<std::vector<Activity>> stop();  // all since start(); the device must be idle. Records nothing afterwards
 private:
  explicit Cupti(const CuptiApi& api);
  Result<void> disable();
  Result<void> flush();
  std::unique_ptr<CuptiApi> api_;
};

}  // namespace llmprof::bench::cuda
