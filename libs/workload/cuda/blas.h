#pragma once
// Matrix products by cuBLASLt, with their exact shapes. Its functions are looked up in the scope of the whole program,
// where a library loaded before it, such as a profiler's, may stand in front of cuBLASLt's own.

#include <cuda.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "workload/cuda/device.h"

namespace llmprof::workload::cuda {

class Blas {
 public:
  virtual ~Blas() = default;
  // The device's context is current. kUnsupported if the library is not found.
  static Result<std::unique_ptr<Blas>> open(Device& device, CUstream stream);
  virtual const std::string& version() const = 0;             // "cuBLASLt 13.1.0"
  virtual Result<void> multiply(const Product& product) = 0;  // enqueued
};

}  // namespace llmprof::workload::cuda
