#pragma once
// LSTM by cuDNN, the fastest of its algorithms for one size.

#include "base/result.h"
#include "bench/operator.h"
#include "model/kernel_work.h"

namespace llmprof::bench::cuda {

struct DnnLstm {
  model::Lstm sizes;
  Type type = Type::kFloat32;
};

// Tensors x, h0, c0, weights, y, hn, cn as ops/lstm.cpp lays them out. kUnsupported without cuDNN, for what it does not
// take, and where it would have the weights in another order.
Result<CudaCall> dnn_lstm(Context& context, const DnnLstm& lstm);

}  // namespace llmprof::bench::cuda
