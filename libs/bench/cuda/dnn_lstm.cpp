#include "base/dynlib.h"
#include "base/errors.h"
#include "bench/cuda/dnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "bench/cuda/dnn_graph.h"

namespace llmprof::bench::cuda {

namespace {

// clang-format off
#define LLMPROF_RNN_CALLS(X) \
  X(create_rnn, cudnnCreateRNNDescriptor) X(destroy_rnn, cudnnDestroyRNNDescriptor) \
  X(set_rnn, cudnnSetRNNDescriptor_v8) X(create_dropout, cudnnCreateDropoutDescriptor) \
  X(destroy_dropout, cudnnDestroyDropoutDescriptor) X(set_dropout, cudnnSetDropoutDescriptor) \
  X(create_data, cudnnCreateRNNDataDescriptor) X(destroy_data, cudnnDestroyRNNDataDescriptor) \
  X(set_data, cudnnSetRNNDataDescriptor) X(create_tensor, cudnnCreateTensorDescriptor) \
  X(destroy_tensor, cudnnDestroyTensorDescriptor) X(set_tensor, cudnnSetTensorNdDescriptor) \
  X(space_sizes, cudnnGetRNNTempSpaceSizes) X(weight_size, cudnnGetRNNWeightSpaceSize) \
  X(weight_params, cudnnGetRNNWeightParams) X(forward, cudnnRNNForward)
// clang-format on
LLMPROF_API(RnnApi, LLMPROF_RNN_CALLS)

constexpr int kTensors = 7;  // x, h0, c0, weights, y, hn, cn

struct Algorithm {
  cudnnRNNAlgo_t algorithm;
  const char* name;
};
constexpr Algorithm kAlgorithms[] = {{CUDNN_RNN_ALGO_STANDARD, "standard"},
                                     {CUDNN_RNN_ALGO_PERSIST_STATIC, "persistent"},
                                     {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, "persistent, small"}};

void* address(Pointer pointer) { return reinterpret_cast<void*>(pointer); }

// One algorithm, described for one size.
class Rnn {
 public:
  Rnn(Dnn& dnn, const RnnApi& api, const DnnLstm& lstm, const Algorithm& algorithm)
      : dnn_(dnn), api_(api), lstm_(lstm), algorithm_(algorithm) {}
  ~Rnn() {
    if (rnn_ != nullptr) api_.destroy_rnn(rnn_);
    if (dropout_ != nullptr) api_.destroy_dropout(dropout_);
    for (const auto data : {x_, y_}) {
      if (data != nullptr) api_.destroy_data(data);
    }
    for (const auto tensor : {state_, matrix_, bias_}) {
      if (tensor != nullptr) api_.destroy_tensor(tensor);
    }
  }

  Rnn(const Rnn&) = delete;
  Rnn& operator=(const Rnn&) = delete;

  Result<void> describe() {
    LLMPROF_TRY(describe_network());
    LLMPROF_TRY(describe_data());
    LLMPROF_TRY(dnn_.check(api_.weight_size(handle(), rnn_, &weight_bytes_), "cudnnGetRNNWeightSpaceSize"));
    LLMPROF_TRY(check_weights());
    std::size_t reserve_bytes = 0;
    return dnn_.check(api_.space_sizes(handle(), rnn_, CUDNN_FWD_MODE_INFERENCE, x_, &workspace_bytes_, &reserve_bytes),
                      "cudnnGetRNNTempSpaceSizes");
  }

  Result<void> enqueue(std::span<const Pointer> t, Pointer workspace) const {
    return dnn_.check(
        api_.forward(handle(), rnn_, CUDNN_FWD_MODE_INFERENCE, nullptr, x_, address(t[0]), y_, address(t[4]), state_,
                     address(t[1]), address(t[5]), state_, address(t[2]), address(t[6]), weight_bytes_, address(t[3]),
                     workspace_bytes_, address(workspace), 0, nullptr),
        "cudnnRNNForward");
  }

  std::int64_t workspace_bytes() const { return static_cast<std::int64_t>(workspace_bytes_); }
  const char* name() const { return algorithm_.name; }

 private:
  Result<void> describe_network() {
    LLMPROF_TRY(dnn_.check(api_.create_dropout(&dropout_), "cudnnCreateDropoutDescriptor"));
    LLMPROF_TRY(dnn_.check(api_.set_dropout(dropout_, handle(), 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor"));
    LLMPROF_TRY(dnn_.check(api_.create_rnn(&rnn_), "cudnnCreateRNNDescriptor"));
    // float32 is not multiplied as tf32, which is a type of its own.
    const cudnnMathType_t math = lstm_.type == Type::kFloat32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
    const auto hidden = static_cast<std::int32_t>(lstm_.sizes.hidden);
    return dnn_.check(
        api_.set_rnn(rnn_, algorithm_.algorithm, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
                     CUDNN_LINEAR_INPUT, dnn_type(lstm_.type), CUDNN_DATA_FLOAT, math,
                     static_cast<std::int32_t>(lstm_.sizes.in), hidden, hidden,
                     static_cast<std::int32_t>(lstm_.sizes.layers), dropout_, CUDNN_RNN_PADDED_IO_ENABLED),
        "cudnnSetRNNDescriptor_v8");
  }

  Result<void> describe_data() {
    const auto batch = static_cast<int>(lstm_.sizes.batch), steps = static_cast<int>(lstm_.sizes.steps);
    const auto hidden = static_cast<int>(lstm_.sizes.hidden), layers = static_cast<int>(lstm_.sizes.layers);
    const cudnnDataType_t type = dnn_type(lstm_.type);
    const std::vector<int> lengths(static_cast<std::size_t>(batch), steps);
    double padding = 0;
    const auto data = [&](cudnnRNNDataDescriptor_t& descriptor, int values) -> Result<void> {
      LLMPROF_TRY(dnn_.check(api_.create_data(&descriptor), "cudnnCreateRNNDataDescriptor"));
      return dnn_.check(api_.set_data(descriptor, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, steps, batch, values,
                                      lengths.data(), &padding),
                        "cudnnSetRNNDataDescriptor");
    };
    LLMPROF_TRY(data(x_, static_cast<int>(lstm_.sizes.in)));
    LLMPROF_TRY(data(y_, hidden));
    for (cudnnTensorDescriptor_t* tensor : {&state_, &matrix_, &bias_}) {
      LLMPROF_TRY(dnn_.check(api_.create_tensor(tensor), "cudnnCreateTensorDescriptor"));
    }
    const int sizes[] = {layers, batch, hidden}, strides[] = {batch * hidden, hidden, 1};
    return dnn_.check(api_.set_tensor(state_, type, 3, sizes, strides), "cudnnSetTensorNdDescriptor");
  }

  // Our order: of every layer the four gates' matrices for the input, then for the state; then the biases likewise.
  Result<void> check_weights() {
    const std::int64_t hidden = lstm_.sizes.hidden, bytes = type_bytes(lstm_.type);
    std::int64_t matrix = 0, bias = 0;
    const auto width = [&](std::int64_t layer, int id) { return id < 4 && layer == 0 ? lstm_.sizes.in : hidden; };
    for (std::int64_t layer = 0; layer < lstm_.sizes.layers; ++layer) {
      for (int id = 0; id < 8; ++id) bias += hidden * width(layer, id) * bytes;
    }
    auto* const base = reinterpret_cast<char*>(std::uintptr_t{1} << 20);  // any address: only distances are read
    for (std::int64_t layer = 0; layer < lstm_.sizes.layers; ++layer) {
      for (int id = 0; id < 8; ++id) {
        void *at_matrix = nullptr, *at_bias = nullptr;
        LLMPROF_TRY(dnn_.check(api_.weight_params(handle(), rnn_, static_cast<std::int32_t>(layer), weight_bytes_, base,
                                                  id, matrix_, &at_matrix, bias_, &at_bias),
                               "cudnnGetRNNWeightParams"));
        if (at_matrix != base + matrix || at_bias != base + bias) {
          return unsupported_error("cuDNN {} would have the weights in another order", dnn_.version());
        }
        matrix += hidden * width(layer, id) * bytes;
        bias += hidden * bytes;
      }
    }
    if (static_cast<std::int64_t>(weight_bytes_) > bias) {
      return unsupported_error("cuDNN {} wants {} bytes of weights, not {}", dnn_.version(), weight_bytes_, bias);
    }
    return {};
  }

  cudnnHandle_t handle() const { return static_cast<cudnnHandle_t>(dnn_.handle()); }

  Dnn& dnn_;
  RnnApi api_;
  DnnLstm lstm_;
  Algorithm algorithm_;
  cudnnRNNDescriptor_t rnn_ = nullptr;
  cudnnDropoutDescriptor_t dropout_ = nullptr;
  cudnnRNNDataDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnTensorDescriptor_t state_ = nullptr, matrix_ = nullptr, bias_ = nullptr;
  std::size_t weight_bytes_ = 0, workspace_bytes_ = 0;
};

// What is tried, on buffers of its own.
struct Trial {
  std::array<Buffer, kTensors> tensors;
  std::array<Pointer, kTensors> pointers{};
};

Result<Trial> make_trial(Context& context, const DnnLstm& lstm, std::int64_t weight_values) {
  const model::Lstm& s = lstm.sizes;
  const std::int64_t rows = s.batch * s.steps, state = s.layers * s.batch * s.hidden;
  const std::int64_t values[kTensors] = {rows * s.in, state, state, weight_values, rows * s.hidden, state, state};
  Trial trial;
  for (int i = 0; i < kTensors; ++i) {
    const std::int64_t bytes = values[i] * type_bytes(lstm.type);
    LLMPROF_LET(trial.tensors[i], context.allocate(bytes));
    LLMPROF_TRY(context.set_bytes(trial.tensors[i].pointer(), 0x3c, bytes));
    trial.pointers[i] = trial.tensors[i].pointer();
  }
  return trial;
}

// Seconds of one call, the less of two after one that is not counted.
Result<double> try_rnn(Context& context, const Rnn& rnn, const Trial& trial) {
  LLMPROF_LET(const Buffer workspace, context.allocate(rnn.workspace_bytes()));
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    LLMPROF_LET(const double seconds, context.time([&] { return rnn.enqueue(trial.pointers, workspace.pointer()); }));
    if (i > 0) least = std::min(least, seconds);
  }
  return least;
}

Result<std::shared_ptr<Rnn>> fastest(Context& context, Dnn& dnn, const RnnApi& api, const DnnLstm& lstm) {
  const model::Lstm& s = lstm.sizes;
  const std::int64_t weights = 4 * s.hidden * (s.in + s.hidden + (s.layers - 1) * 2 * s.hidden + 2 * s.layers);
  LLMPROF_LET(const Trial trial, make_trial(context, lstm, weights));
  std::shared_ptr<Rnn> best;
  double best_seconds = std::numeric_limits<double>::infinity();
  Error last{ErrorCode::kUnsupported, "", ""};
  for (const Algorithm& algorithm : kAlgorithms) {
    auto rnn = std::make_shared<Rnn>(dnn, api, lstm, algorithm);
    const Result<void> described = rnn->describe();
    const Result<double> seconds = described ? try_rnn(context, *rnn, trial) : Result<double>(described.error());
    if (!seconds) {
      if (context.broken()) return seconds.error();
      if (last.message.empty()) last = seconds.error();  // of the algorithm that takes the most
    } else if (*seconds < best_seconds) {
      best = std::move(rnn);
      best_seconds = *seconds;
    }
  }
  if (best == nullptr) return last;
  return best;
}

}  // namespace

Result<CudaCall> dnn_lstm(Context& context, const DnnLstm& lstm) {
  const model::Lstm& s = lstm.sizes;
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  if (std::max({static_cast<double>(s.batch) * static_cast<double>(s.hidden), static_cast<double>(s.in),
                static_cast<double>(s.steps), static_cast<double>(s.layers)}) > kMost) {
    return Error{ErrorCode::kUnsupported, "cuDNN counts in 32 bits, and these sizes are larger", ""};
  }
  LLMPROF_LET(Dnn* const dnn, context.dnn());
  LLMPROF_LET(const RnnApi api, dnn->api<RnnApi>(RnnApi::symbols()));
  LLMPROF_LET(const std::shared_ptr<Rnn> rnn, fastest(context, *dnn, api, lstm));
  LLMPROF_LET(Buffer buffer, context.allocate(rnn->workspace_bytes()));
  const auto workspace = std::make_shared<Buffer>(std::move(buffer));
  return CudaCall{.enqueue = [rnn, workspace](std::span<const Pointer> tensors,
                                              Stream) { return rnn->enqueue(tensors, workspace->pointer()); },
                  .method = fmt::format("cuDNN {}, {} algorithm, the best of {}", dnn->version(), rnn->name(),
                                        std::size(kAlgorithms)),
                  .workspace_bytes = rnn->workspace_bytes()};
}

}  // namespace llmprof::bench::cuda
