#pragma once
// Convolution by cuDNN, the fastest of the plans it proposes for one size.

#include "base/result.h"
#include "bench/operator.h"
#include "model/kernel_work.h"

namespace llmprof::bench::cuda {

struct DnnConvolution {
  model::Convolution sizes;
  Type type = Type::kFloat32;
  bool channels_last = false;  // NHWC with weights KRSC; else NCHW with weights KCRS
};

// Tensors x, weights, y. kUnsupported without cuDNN, and for what none of its engines takes.
Result<CudaCall> dnn_convolution(Context& context, const DnnConvolution& convolution);

}  // namespace llmprof::bench::cuda
