// A stack of LSTM layers over whole sequences, one direction. For each step t of a layer, with gates in the order
// input, forget, cell, output, as cuDNN and PyTorch order them:
//   a = W x[t] + b + R h + d       four gates of `hidden` values each
//   c = sigmoid(a_f) * c + sigmoid(a_i) * tanh(a_c)
//   h = sigmoid(a_o) * tanh(c)
// The next layer's input is h. x is seq, batch, in; y is seq, batch, hidden; states are layer, batch, hidden. Weights
// are one block: of every layer W (4 hidden x in) and R (4 hidden x hidden), then of every layer b and d. FLOPs are
// those of the products with W and R.

#include <cmath>

#include "bench/cuda/dnn.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct LstmStack : RowOperator {
  static constexpr std::string_view kCpuMethod = "loop, a step at a time";

  static constexpr AxisSpec kAxes[] = {{"batch", "1,64", 1, "sequences"},
                                       {"seq", "128", 1, "steps"},
                                       {"in", "512", 1, "values of an input"},
                                       {"hidden", "512", 1, "values of a state"},
                                       {"layers", "1", 1, "layers, one over the other"}};
  static constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kTf32, Type::kFloat32};

  enum Tensor : std::uint8_t { kX, kH0, kC0, kWeights, kY, kHn, kCn };

  static model::Lstm sizes(const Problem& problem) {
    return {.batch = problem.at("batch"),
            .steps = problem.at("seq"),
            .in = problem.at("in"),
            .hidden = problem.at("hidden"),
            .layers = problem.at("layers"),
            .value_bytes = static_cast<double>(type_bytes(problem.type))};
  }

  static Result<void> check(const Problem& problem) {
    const double rows = axis(problem, "batch") * axis(problem, "seq"), in = axis(problem, "in");
    const double hidden = axis(problem, "hidden"), layers = axis(problem, "layers");
    LLMPROF_TRY(check_values(problem, rows * std::max(in, hidden)));
    LLMPROF_TRY(check_values(problem, layers * axis(problem, "batch") * hidden));
    return check_values(problem, layers * 4 * hidden * (std::max(in, hidden) + hidden + 2));
  }

  static std::int64_t layer_width(const model::Lstm& s, std::int64_t layer) { return layer == 0 ? s.in : s.hidden; }

  // Where the parts of a layer begin in the block of weights.
  struct LayerWeights {
    std::int64_t input, state, input_bias, state_bias;
  };
  static LayerWeights layer_weights(const model::Lstm& s, std::int64_t layer) {
    const std::int64_t gates = 4 * s.hidden;
    const auto matrices = [&](std::int64_t layers) {  // of the first `layers`
      return layers == 0 ? 0 : gates * (s.in + s.hidden + (layers - 1) * 2 * s.hidden);
    };
    const std::int64_t begin = matrices(layer), biases = matrices(s.layers) + layer * 2 * gates;
    return {begin, begin + gates * layer_width(s, layer), biases, biases + gates};
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const model::Lstm s = sizes(problem);
    const std::int64_t rows = s.batch * s.steps, states = s.layers * s.batch * s.hidden;
    const std::int64_t weights = layer_weights(s, s.layers - 1).state_bias + 4 * s.hidden;
    const Fill spread{.scale = 1 / std::sqrt(static_cast<double>(s.hidden))};  // gates neither open nor shut
    return {{"x", Role::kIn, problem.type, rows * s.in},      {"h0", Role::kIn, problem.type, states},
            {"c0", Role::kIn, problem.type, states},          {"weights", Role::kIn, problem.type, weights, spread},
            {"y", Role::kOut, problem.type, rows * s.hidden}, {"hn", Role::kOut, problem.type, states},
            {"cn", Role::kOut, problem.type, states}};
  }

  static model::KernelWork work(const Problem& problem) { return model::lstm_work(sizes(problem)); }

  static Problem small(const Problem& problem) {
    const auto narrow = [&](const char* name) { return std::min(problem.at(name), 256 + problem.at(name) % 64); };
    return problem.with_most("batch", 3)
        .with_most("seq", 4)
        .with("in", narrow("in"))
        .with("hidden", narrow("hidden"))
        .with_most("layers", 2);
  }

  template <class T>
  static T sigmoid(T value) {
    return 1 / (1 + std::exp(-value));
  }

  // Sixteen sums side by side, so that a compiler may use vectors without reordering what anyone wrote.
  template <class T>
  static T dot(const T* a, const T* b, std::int64_t count) {
    T sums[16] = {};
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      for (int j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
    }
    T sum = 0;
    for (; i < count; ++i) sum += a[i] * b[i];
    for (const T part : sums) sum += part;
    return sum;
  }

  // One layer. `input` is seq, batch, width; states and outputs are of this layer. h is read whole while a step writes
  // its own, so the state before the step stands in y of the step before it, or in h0.
  template <class T>
  struct Layer {
    const T *input, *h0, *c0, *weights;
    T *y, *c;  // y: seq, batch, hidden; c: batch, hidden

    void step(const model::Lstm& s, const LayerWeights& at, std::int64_t width, std::int64_t t, std::int64_t n,
              std::int64_t unit) const {
      const T* x = input + (t * s.batch + n) * width;
      const T* h = t == 0 ? h0 + n * s.hidden : y + ((t - 1) * s.batch + n) * s.hidden;
      T gate[4];
      for (std::int64_t g = 0; g < 4; ++g) {
        const std::int64_t row = g * s.hidden + unit;
        gate[g] = dot(weights + at.input + row * width, x, width) +
                  dot(weights + at.state + row * s.hidden, h, s.hidden) + weights[at.input_bias + row] +
                  weights[at.state_bias + row];
      }
      const T before = t == 0 ? c0[n * s.hidden + unit] : c[n * s.hidden + unit];
      const T now = sigmoid(gate[1]) * before + sigmoid(gate[0]) * std::tanh(gate[2]);
      c[n * s.hidden + unit] = now;
      y[(t * s.batch + n) * s.hidden + unit] = sigmoid(gate[3]) * std::tanh(now);
    }
  };

  // Steps wait for each other; within one, `each(count, part)` hands out units of the state for all sequences.
  template <class T, class Each>
  static void run(const model::Lstm& s, std::span<T* const> tensors, const Each& each) {
    const std::int64_t state = s.batch * s.hidden;
    std::vector<T> between;  // what a layer gives to the next
    const T* input = tensors[kX];
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
      std::vector<T> output(static_cast<std::size_t>(s.steps * state));
      const Layer<T> here{.input = input,
                          .h0 = tensors[kH0] + layer * state,
                          .c0 = tensors[kC0] + layer * state,
                          .weights = tensors[kWeights],
                          .y = output.data(),
                          .c = tensors[kCn] + layer * state};
      const LayerWeights at = layer_weights(s, layer);
      for (std::int64_t t = 0; t < s.steps; ++t) {
        each(s.hidden, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t unit = begin; unit < end; ++unit) {
            for (std::int64_t n = 0; n < s.batch; ++n) here.step(s, at, layer_width(s, layer), t, n, unit);
          }
        });
      }
      std::copy_n(output.end() - state, state, tensors[kHn] + layer * state);
      between = std::move(output);
      input = between.data();
    }
    std::copy(between.begin(), between.end(), tensors[kY]);
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
    std::vector<double*> pointers;
    for (std::vector<double>& tensor : tensors) pointers.push_back(tensor.data());
    run<double>(sizes(problem), pointers, [](std::int64_t count, const auto& part) { part(0, count); });
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
    const model::Lstm s = sizes(problem);
    std::vector<float*> pointers;
    for (std::byte* tensor : tensors) pointers.push_back(reinterpret_cast<float*>(tensor));
    const std::int64_t per_unit = 4 * s.batch * (s.in + s.hidden);
    run<float>(s, pointers,
               [&](std::int64_t count, const auto& part) { team.each(count, kGrainValues / per_unit + 1, part); });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    return cuda::dnn_lstm(context, {.sizes = sizes(problem), .type = problem.type});
  }

  static constexpr CudaImplementation kCuda[] = {{"cudnn", prepare}};
};

}  // namespace

const Operator kLstm = describe<LstmStack>("lstm", "a stack of LSTM layers over whole sequences");

}  // namespace llmprof::bench
