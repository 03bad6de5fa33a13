#pragma once
// What one operator alone must compute and move, for benchmarks: the conventions of model.h (matrix products only;
// element-wise work counts bytes), each input read once, each output written once.

#include <cstdint>

#include "model/config.h"

namespace llmprof::model {

struct KernelWork {
  double flops = 0;  // operations, for integer types
  double read_bytes = 0, write_bytes = 0;
  double bytes() const { return read_bytes + write_bytes; }
};

// `count` products of m x k by k x n. Bytes per value of the operands and of the result.
struct Product {
  double count = 1, m = 0, n = 0, k = 0;
  double a_bytes = 0, b_bytes = 0, c_bytes = 0;
};
KernelWork product_work(const Product& product);

// Element-wise and row-wise operators: values read and written, of one size, and parameters read once.
KernelWork streaming_work(double read_values, double written_values, double value_bytes, double parameters = 0);

// The core of attention: `count` sequences of `tokens` new tokens whose context (of `context`, with them) lies in a
// cache. Queries and results are read and written; a latent cache is read as it is (absorbed).
KernelWork attention_work(const Attention& attention, double count, double tokens, double context, double value_bytes);

// A layer of experts on `tokens` tokens: gate, up and down of those that any token is sent to, expected with even
// routing; the activations between them are counted, as they go through memory.
struct ExpertLayer {
  std::int64_t tokens = 0, hidden = 0, intermediate = 0, experts = 0, per_token = 0;
  double value_bytes = 0;
};
KernelWork experts_work(const ExpertLayer& layer);

struct Convolution {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, height = 0, width = 0;  // of the input
  std::int64_t kernel = 0, stride = 1, padding = 0;
  double value_bytes = 0;
  std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};
KernelWork convolution_work(const Convolution& convolution);

// One direction, `layers` deep: four gates each of input and state.
struct Lstm {
  std::int64_t batch = 0, steps = 0, in = 0, hidden = 0, layers = 1;
  double value_bytes = 0;
};
KernelWork lstm_work(const Lstm& lstm);

}  // namespace llmprof::model
