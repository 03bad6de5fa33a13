// Convolution, LSTM, embedding, sampling, quantisation on a GPU against their references, every implementation in every
// type: sizes of models, and sizes that are no multiple of anything. Needs an NVIDIA GPU with cuDNN.
// Usage: build/tests/gpu_operators_test

#include "check_operator.h"

namespace llmprof::bench {
namespace {

struct Case {
  const char* op;
  std::vector<Axes> axes;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.op; }

Axes convolution(std::int64_t batch, std::int64_t channels, std::int64_t out_channels, std::int64_t height,
                 std::int64_t width, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {{"batch", batch},   {"channels", channels}, {"out_channels", out_channels},
          {"height", height}, {"width", width},       {"kernel", kernel},
          {"stride", stride}, {"padding", padding}};
}

Axes lstm(std::int64_t batch, std::int64_t seq, std::int64_t in, std::int64_t hidden, std::int64_t layers) {
  return {{"batch", batch}, {"seq", seq}, {"in", in}, {"hidden", hidden}, {"layers", layers}};
}

Axes rows(std::int64_t seq, std::int64_t hidden, std::int64_t group, std::int64_t format) {
  return {{"seq", seq}, {"hidden", hidden}, {"group", group}, {"format", format}};
}

Axes select(std::int64_t batch, std::int64_t vocab, std::int64_t k) {
  return {{"batch", batch}, {"vocab", vocab}, {"k", k}};
}

Axes look_up(std::int64_t seq, std::int64_t vocab, std::int64_t hidden) {
  return {{"seq", seq}, {"vocab", vocab}, {"hidden", hidden}};
}

const std::vector<Case> kCases{
    {"embedding", {look_up(1, 1, 1), look_up(77, 1000, 4096), look_up(5, 10, 4095), look_up(300, 50, 8)}},
    {"sampling",
     {select(1, 1, 1), select(3, 128256, 1), select(2, 50257, 1), select(70, 5000, 1),   // argmax
      select(1, 2, 2), select(3, 128256, 50), select(2, 50257, 50), select(5, 3000, 7),  // one block, and several
      select(2, 151936, 1024), select(3, 1024, 1024), select(2, 8001, 1000)}},           // more than half, all of it
    {"quantize",
     {rows(1, 1, 0, 0), rows(7, 4096, 0, 0), rows(7, 4096, 0, 1), rows(5, 4095, 0, 1), rows(300, 4096, 128, 0),
      rows(33, 4096, 128, 1), rows(3, 40000, 0, 0), rows(9, 384, 96, 1), rows(9, 1024, 512, 0), rows(9, 64, 8, 1)}},
    {"dequantize",
     {rows(1, 1, 0, 0), rows(7, 4096, 0, 0), rows(7, 4096, 0, 1), rows(7, 4096, 0, 2), rows(300, 4096, 128, 0),
      rows(33, 4096, 128, 1), rows(33, 4096, 128, 2), rows(5, 4095, 0, 1), rows(5, 4098, 0, 2), rows(9, 60, 6, 2),
      rows(9, 64, 4, 0)}},
    {"conv2d",
     {convolution(1, 64, 64, 14, 14, 3, 1, 1), convolution(2, 64, 128, 14, 14, 1, 1, 0),
      convolution(2, 3, 64, 30, 30, 7, 2, 3), convolution(2, 5, 7, 13, 17, 3, 1, 1),
      convolution(1, 8, 16, 9, 9, 3, 2, 0)}},
    {"lstm", {lstm(1, 3, 128, 128, 1), lstm(3, 4, 256, 512, 2), lstm(2, 3, 33, 47, 2)}},
};

class GpuDnn : public testing::TestWithParam<Case> {};

TEST_P(GpuDnn, EqualsItsReference) { check_operator(GetParam().op, GetParam().axes); }

INSTANTIATE_TEST_SUITE_P(Operators, GpuDnn, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.op); });

}  // namespace
}  // namespace llmprof::bench
