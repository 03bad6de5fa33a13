// What sampled_test.py records: a small GPT in plain C++, trained on the CPU, with its matrix products compiled in.
// There is no BLAS call and no annotation to see, unless asked for; that is how people write such programs to learn
// from.
//   cpp_train STEPS [validate] [ranges]     forward, backward and update, STEPS times
//   cpp_train STEPS infer                   forward alone
//   cpp_train STEPS split                   functions that are called as if they trained, but do not alternate
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "collect/testing/nvtx_client.h"

namespace {
constexpr int kRows = 16, kWidth = 128, kLayers = 16, kTokens = 8;
constexpr int kHidden = 4 * kWidth;
bool annotated = false;

struct Range {  // with the names of the program's own functions, as people do it
  explicit Range(const char* name, int number = -1) {
    if (!annotated) return;
    char text[64];
    std::snprintf(text, sizeof text, number < 0 ? "%s" : "%s %d", name, number);
    nvtxRangePushA(text);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    if (annotated) nvtxRangePop();
  }
};
}  // namespace

// Not static, as in the programs this stands for: they have a name of their own in the binary.
struct Model {
  std::vector<float> weights, gradients, moments, variances;
  std::vector<float> activations, hidden, upstream;
};

__attribute__((noinline)) void matmul_forward(float* out, const float* in, const float* weight, int rows, int from,
                                              int to) {
  const Range range("matmul_forward");
  for (int r = 0; r < rows; ++r) {
    float* line = out + static_cast<long>(r) * to;
    std::memset(line, 0, sizeof(float) * static_cast<unsigned long>(to));
    for (int k = 0; k < from; ++k) {
      const float x = in[static_cast<long>(r) * from + k];
      const float* w = weight + static_cast<long>(k) * to;
      for (int c = 0; c < to; ++c) line[c] += x * w[c];
    }
  }
}

__attribute__((noinline)) void matmul_backward(float* in_gradient, float* weight_gradient, const float* gradient,
                                               const float* in, const float* weight, int rows, int from, int to) {
  const Range range("matmul_backward");
  for (int r = 0; r < rows; ++r) {
    const float* g = gradient + static_cast<long>(r) * to;
    for (int k = 0; k < from; ++k) {
      const float* w = weight + static_cast<long>(k) * to;
      float* d = weight_gradient + static_cast<long>(k) * to;
      const float x = in[static_cast<long>(r) * from + k];
      float sum = 0;
      for (int c = 0; c < to; ++c) {
        sum += w[c] * g[c];
        d[c] += x * g[c];
      }
      in_gradient[static_cast<long>(r) * from + k] = sum;
    }
  }
}

__attribute__((noinline)) void gelu_forward(float* values, int count) {
  for (int i = 0; i < count; ++i) {
    const float x = values[i];
    values[i] = 0.5f * x * (1.0f + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  }
}

__attribute__((noinline)) void attention_forward(float* values, int rows, int width) {
  for (int r = 0; r < rows; ++r) {
    float scores[kTokens], sum = 0;
    const int first = r - r % kTokens;
    for (int t = first; t <= r; ++t) {
      float dot = 0;
      for (int c = 0; c < width; ++c)
        dot += values[static_cast<long>(r) * width + c] * values[static_cast<long>(t) * width + c];
      sum += scores[t - first] = std::exp(dot / static_cast<float>(width) - 1.0f);
    }
    for (int c = 0; c < width; ++c) values[static_cast<long>(r) * width + c] *= scores[r - first] / sum;
  }
}

float* layer(std::vector<float>& of, int i) { return of.data() + static_cast<long>(i) * 2 * kWidth * kHidden; }

__attribute__((noinline)) void gpt2_forward(Model& model) {
  const Range range("gpt2_forward");
  for (int i = 0; i < kLayers; ++i) {
    const Range block("Layer", i);
    attention_forward(model.activations.data(), kRows, kWidth);
    matmul_forward(model.hidden.data(), model.activations.data(), layer(model.weights, i), kRows, kWidth, kHidden);
    gelu_forward(model.hidden.data(), kRows * kHidden);
    matmul_forward(model.activations.data(), model.hidden.data(), layer(model.weights, i) + kWidth * kHidden, kRows,
                   kHidden, kWidth);
  }
}

__attribute__((noinline)) void gpt2_backward(Model& model) {
  const Range range("gpt2_backward");
  for (int i = kLayers; i-- > 0;) {
    const Range block("Layer", i);
    matmul_backward(model.hidden.data(), layer(model.gradients, i) + kWidth * kHidden, model.upstream.data(),
                    model.hidden.data(), layer(model.weights, i) + kWidth * kHidden, kRows, kHidden, kWidth);
    matmul_backward(model.upstream.data(), layer(model.gradients, i), model.hidden.data(), model.activations.data(),
                    layer(model.weights, i), kRows, kWidth, kHidden);
  }
}

__attribute__((noinline)) void gpt2_update(Model& model, int step) {
  const Range range("gpt2_update");
  const float first = 1 - std::pow(0.9f, static_cast<float>(step + 1));
  const float second = 1 - std::pow(0.95f, static_cast<float>(step + 1));
  for (unsigned long i = 0; i < model.weights.size(); ++i) {
    const float g = model.gradients[i];
    model.moments[i] = 0.9f * model.moments[i] + 0.1f * g;
    model.variances[i] = 0.95f * model.variances[i] + 0.05f * g * g;
    model.weights[i] -= 1e-4f * (model.moments[i] / first / (std::sqrt(model.variances[i] / second) + 1e-8f));
    model.gradients[i] = 0;
  }
}

__attribute__((noinline)) void random_batch(Model& model, unsigned& seed) {
  for (float& value : model.activations) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / 16777216.0f - 0.5f;
  }
  for (float& value : model.upstream) value = 1e-3f;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 40;
  bool validate = false, infer = false, split = false;
  for (int i = 2; i < argc; ++i) {
    validate = validate || std::strcmp(argv[i], "validate") == 0;
    infer = infer || std::strcmp(argv[i], "infer") == 0;
    split = split || std::strcmp(argv[i], "split") == 0;
    annotated = annotated || std::strcmp(argv[i], "ranges") == 0;
  }
  Model model;
  for (std::vector<float>* each : {&model.weights, &model.gradients, &model.moments, &model.variances})
    each->assign(2UL * kLayers * kWidth * kHidden, each == &model.weights ? 0.001f : 0.0f);
  for (std::vector<float>* each : {&model.activations, &model.upstream}) each->assign(1UL * kRows * kWidth, 0.0f);
  model.hidden.assign(1UL * kRows * kHidden, 0.0f);
  unsigned seed = 1;
  for (int i = 0; split && i < steps; ++i) gpt2_forward(model);
  for (int i = 0; split && i < steps; ++i) gpt2_backward(model);
  for (int step = 0; !split && step < steps; ++step) {
    const Range range("Train step", step);
    if (validate && step % 10 == 0) {
      const Range validation("validation");
      for (int i = 0; i < 5; ++i) {
        random_batch(model, seed);
        gpt2_forward(model);
      }
    }
    random_batch(model, seed);
    gpt2_forward(model);
    if (infer) continue;
    gpt2_backward(model);
    gpt2_update(model, step);
  }
  std::printf("%g\n", static_cast<double>(model.weights[0]));
}
