#pragma once
// cuDNN, loaded by dlopen: the library, one handle on the context's stream, and any of its functions by name. No cuDNN
// header is needed to include this; the files that call its functions (dnn_*.cpp) include it themselves.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/dynlib.h"
#include "base/result.h"
#include "bench/cuda/context.h"
#include "bench/operator.h"
#include "model/kernel_work.h"

namespace llmprof::bench::cuda {

class Dnn {
 public:
  // With the context current on this thread. kUnsupported if the library is not found (with the names that were tried),
  // is of another major version than the header this was built with, or the build had no header.
  static Result<std::unique_ptr<Dnn>> open(Stream stream);
  ~Dnn();
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  void* handle() const;                // cudnnHandle_t
  const std::string& version() const;  // "9.19.0", of the library that was loaded
  const std::string& path() const;     // as it was opened: "libcudnn.so.9" or a full path

  void* symbol(const char* name) const;  // nullptr if the library has none of this name
  // A table of functions, as base/dynlib.h binds them.
  template <class Api>
  Result<Api> api(std::span<const base::Binding<Api>> symbols) const {
    Api api{};
    for (const base::Binding<Api>& binding : symbols) {
      void* address = symbol(binding.symbol);
      if (address == nullptr && binding.need == base::Need::kRequired) {
        return Error{ErrorCode::kUnsupported, "cuDNN " + version() + " has no " + binding.symbol, ""};
      }
      binding.store(api, address);
    }
    return api;
  }
  // Of a cudnnStatus_t: what cuDNN says of it, and of the last error in its own words. "Not supported" statuses become
  // kUnsupported, so that the next implementation is asked.
  Result<void> check(int status, const char* what) const;

 private:
  struct State;
  explicit Dnn(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Convolution by cuDNN, the fastest of the plans it proposes for one size.

struct DnnConvolution {
  model::Convolution sizes;
  Type type = Type::kFloat32;
  bool channels_last = false;  // NHWC with weights KRSC; else NCHW with weights KCRS
};

// Tensors x, weights, y. kUnsupported without cuDNN, and for what none of its engines takes.
Result<CudaCall> dnn_convolution(Context& context, const DnnConvolution& convolution);

// LSTM by cuDNN, the fastest of its algorithms for one size.

struct DnnLstm {
  model::Lstm sizes;
  Type type = Type::kFloat32;
};

// Tensors x, h0, c0, weights, y, hn, cn as ops/lstm.cpp lays them out. kUnsupported without cuDNN, for what it does not
// take, and where it would have the weights in another order.
Result<CudaCall> dnn_lstm(Context& context, const DnnLstm& lstm);

// Attention by cuDNN: its fused kernel, planned through the backend interface for one size.

// Tensors q, k, v, out, each of tokens, heads, head_dim within a sequence, in this order.
struct CudnnAttention {
  Type type = Type::kBfloat16;  // or float16
  std::int64_t batch = 0, queries = 0, keys = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false;  // query i sees keys 0 … i
};

// kUnsupported without cuDNN, and for what none of its engines takes, with its reason.
Result<CudaCall> cudnn_attention(Context& context, const CudnnAttention& attention);

}  // namespace llmprof::bench::cuda
