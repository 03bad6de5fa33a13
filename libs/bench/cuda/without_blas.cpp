// For builds without CUDA's headers: everything of blas.h. No Context can be opened there, so none of it is reached.

#include "bench/cuda/blas.h"

namespace llmprof::bench::cuda {

struct BlasState {
  std::string text;
};

namespace {

Error missing() { return {ErrorCode::kUnsupported, "this llmprof was built without CUDA", ""}; }

}  // namespace

Blas::Blas(std::unique_ptr<BlasState> state) : state_(std::move(state)) {}
Blas::~Blas() = default;
const std::string& Blas::version() const { return state_->text; }
Result<PreparedMatmul> Blas::prepare(const Matmul&, const Search&) { return missing(); }
Result<PreparedMatmul> Blas::prepare_grouped(const GroupedMatmul&) { return missing(); }

}  // namespace llmprof::bench::cuda
