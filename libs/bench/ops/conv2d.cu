// Convolution where cuDNN is missing: a thread per result, the formula of conv2d.cpp as it stands.

#include "bench/cuda/vector.cuh"

namespace llmprof {

template <class T, bool kChannelsLast>
__device__ void convolve(const T* x, const T* w, T* y, std::int64_t outputs, std::int64_t channels,
                         std::int64_t out_channels, std::int64_t height, std::int64_t width, std::int64_t out_height,
                         std::int64_t out_width, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (at >= outputs) return;
  y += at;
  std::int64_t k, p, q;
  if (kChannelsLast) {
    k = at % out_channels, at /= out_channels;
    q = at % out_width, at /= out_width;
    p = at % out_height, at /= out_height;
  } else {
    q = at % out_width, at /= out_width;
    p = at % out_height, at /= out_height;
    k = at % out_channels, at /= out_channels;
  }
  x += at * channels * height * width;
  w += k * channels * kernel * kernel;
  const std::int64_t x_channel = kChannelsLast ? 1 : height * width, w_channel = kChannelsLast ? 1 : kernel * kernel;
  const std::int64_t column_step = kChannelsLast ? channels : 1;
  float sum = 0;
  for (std::int64_t r = 0; r < kernel; ++r) {
    const std::int64_t row = p * stride - padding + r;
    if (row < 0 || row >= height) continue;
    for (std::int64_t s = 0; s < kernel; ++s) {
      const std::int64_t column = q * stride - padding + s;
      if (column < 0 || column >= width) continue;
      const T* from = x + (row * width + column) * column_step;
      const T* weights = w + (r * kernel + s) * column_step;
      for (std::int64_t c = 0; c < channels; ++c)
        sum += to_float(from[c * x_channel]) * to_float(weights[c * w_channel]);
    }
  }
  *y = from_float<T>(sum);
}

#define LLMPROF_CONV2D(name, T, channels_last)                                                                         \
  extern "C" __global__ void conv2d_##name(const T* x, const T* w, T* y, std::int64_t outputs, std::int64_t channels,  \
                                           std::int64_t out_channels, std::int64_t height, std::int64_t width,         \
                                           std::int64_t out_height, std::int64_t out_width, std::int64_t kernel,       \
                                           std::int64_t stride, std::int64_t padding) {                                \
    convolve<T, channels_last>(x, w, y, outputs, channels, out_channels, height, width, out_height, out_width, kernel, \
                               stride, padding);                                                                       \
  }

LLMPROF_CONV2D(float32, float, false)
LLMPROF_CONV2D(float16, __half, true)
LLMPROF_CONV2D(bfloat16, __nv_bfloat16, true)

}  // namespace llmprof
