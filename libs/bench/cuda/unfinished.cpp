// Until blas.cpp and dnn.cpp are there: whoever writes one deletes its line here.
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

Result<std::shared_ptr<Blas>> open_blas(Context&) { return Error{ErrorCode::kUnsupported, "no cuBLAS yet", ""}; }
Result<std::shared_ptr<Dnn>> open_dnn(Context&) { return Error{ErrorCode::kUnsupported, "no cuDNN yet", ""}; }

}  // namespace llmprof::bench::cuda
