// For builds without cuDNN's header: everything of dnn*.h, each answering why it is not there.

#include "bench/cuda/dnn.h"

namespace llmprof::bench::cuda {

namespace {

Error missing() {
  return {ErrorCode::kUnsupported, "this llmprof was built without cuDNN's header", "build where cudnn.h can be found"};
}

}  // namespace

Result<std::shared_ptr<Dnn>> open_dnn(Context&) { return missing(); }
Result<CudaCall> dnn_convolution(Context&, const DnnConvolution&) { return missing(); }
Result<CudaCall> dnn_lstm(Context&, const DnnLstm&) { return missing(); }
Result<CudaCall> cudnn_attention(Context&, const CudnnAttention&) { return missing(); }

struct Dnn::State {
  std::string text;
};

Dnn::Dnn(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dnn::~Dnn() = default;
Result<std::unique_ptr<Dnn>> Dnn::open(Stream) { return missing(); }
void* Dnn::handle() const { return nullptr; }
const std::string& Dnn::version() const { return state_->text; }
const std::string& Dnn::path() const { return state_->text; }
void* Dnn::symbol(const char*) const { return nullptr; }
Result<void> Dnn::check(int, const char*) const { return missing(); }

}  // namespace llmprof::bench::cuda
