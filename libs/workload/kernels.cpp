#include "workload/kernels.h"

namespace llmprof::workload {

const RowKernels& kernels() {
  static const bool modern = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return modern ? kAvx2Kernels : kBaselineKernels;
}

}  // namespace llmprof::workload
