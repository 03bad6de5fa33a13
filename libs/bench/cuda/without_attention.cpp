// For builds without cuDNN's header: attention_cudnn.h, answering why it is not there.

#include "bench/cuda/attention_cudnn.h"

namespace llmprof::bench::cuda {

Result<CudaCall> cudnn_attention(Context&, const CudnnAttention&) {
  return Error{ErrorCode::kUnsupported, "this llmprof was built without cuDNN's header",
               "build where cudnn.h can be found"};
}

}  // namespace llmprof::bench::cuda
