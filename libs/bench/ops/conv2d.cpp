// y = x convolved with square kernels (cross-correlation, as frameworks mean it), without bias:
//   y[n, k, p, q] = sum over c, r, s of x[n, c, p * stride - padding + r, q * stride - padding + s] * w[k, c, r, s]
// with zeros outside the image. In memory: NCHW with weights KCRS for float32 and tf32; for the half types NHWC with
// weights KRSC, which tensor cores read without a transposition.

#include "base/errors.h"
#include "bench/cuda/dnn.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct Conv2d : RowOperator {
  static constexpr std::string_view kCpuMethod = "direct loop over rows";

  static constexpr AxisSpec kAxes[] = {{"batch", "1,32", 1, "images"},
                                       {"channels", "64", 1, "channels of an image"},
                                       {"out_channels", "64", 1, "channels of a result"},
                                       {"height", "56", 1, "rows of an image"},
                                       {"width", "56", 1, "columns of an image"},
                                       {"kernel", "3", 1, "rows and columns of a kernel"},
                                       {"stride", "1", 1, "rows and columns between results"},
                                       {"padding", "1", 0, "zeros on every side of an image"}};
  static constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kTf32, Type::kFloat32};

  static bool is_channels_last(Type type) { return type == Type::kFloat16 || type == Type::kBfloat16; }

  static model::Convolution sizes(const Problem& problem) {
    return {.batch = problem.at("batch"),
            .in_channels = problem.at("channels"),
            .out_channels = problem.at("out_channels"),
            .height = problem.at("height"),
            .width = problem.at("width"),
            .kernel = problem.at("kernel"),
            .stride = problem.at("stride"),
            .padding = problem.at("padding"),
            .value_bytes = static_cast<double>(type_bytes(problem.type))};
  }

  static Result<void> check(const Problem& problem) {
    const double padding = 2 * axis(problem, "padding"), kernel = axis(problem, "kernel");
    for (const char* side : {"height", "width"}) {
      if (kernel > axis(problem, side) + padding) {
        return usage_error("conv2d: a kernel of {} does not fit into {} = {} with {} zeros on each side",
                           problem.at("kernel"), side, problem.at(side), problem.at("padding"));
      }
    }
    // Results are at most as many as positions of the padded image; all of these bounds are loose but finite.
    const double image = (axis(problem, "height") + padding) * (axis(problem, "width") + padding);
    LLMPROF_TRY(check_values(problem, axis(problem, "batch") * axis(problem, "channels") * image));
    LLMPROF_TRY(check_values(problem, axis(problem, "batch") * axis(problem, "out_channels") * image));
    return check_values(problem, axis(problem, "channels") * axis(problem, "out_channels") * kernel * kernel);
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const model::Convolution c = sizes(problem);
    const std::int64_t outputs = c.batch * c.out_channels * c.out_height() * c.out_width();
    return {{"x", Role::kIn, problem.type, c.batch * c.in_channels * c.height * c.width},
            {"weights", Role::kIn, problem.type, c.out_channels * c.in_channels * c.kernel * c.kernel},
            {"y", Role::kOut, problem.type, outputs}};
  }

  static model::KernelWork work(const Problem& problem) { return model::convolution_work(sizes(problem)); }

  // Fewer channels with the same alignment (still fewer under large kernels), and an image of a few results.
  static Problem small(const Problem& problem) {
    const std::int64_t kernel = problem.at("kernel");
    Problem shrunk = problem.with_most("batch", 2).with("padding", std::min(problem.at("padding"), kernel));
    for (const char* channels : {"channels", "out_channels"}) {
      const std::int64_t value = problem.at(channels);
      shrunk = shrunk.with(channels, std::min(value, kernel <= 7 ? 64 + value % 8 : 8));
    }
    for (const char* side : {"height", "width"}) {
      const std::int64_t value = problem.at(side);
      shrunk = shrunk.with(side, std::min(value, kernel + 9 * std::min(problem.at("stride"), value)));
    }
    return shrunk;
  }

  // Where a value lies, in either layout.
  struct Layout {
    std::int64_t outer, channel, row, column;
    Layout(bool channels_last, std::int64_t channels, std::int64_t height, std::int64_t width)
        : outer(channels * height * width),
          channel(channels_last ? 1 : height * width),
          row(channels_last ? width * channels : width),
          column(channels_last ? channels : 1) {}
    std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
      return n * outer + c * channel + h * row + w * column;
    }
  };

  static void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
    const model::Convolution s = sizes(problem);
    const bool last = is_channels_last(problem.type);
    const Layout x(last, s.in_channels, s.height, s.width), w(last, s.in_channels, s.kernel, s.kernel),
        y(last, s.out_channels, s.out_height(), s.out_width());
    const auto one = [&](std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) {
      double sum = 0;
      for (std::int64_t r = 0; r < s.kernel; ++r) {
        for (std::int64_t t = 0; t < s.kernel; ++t) {
          const std::int64_t row = p * s.stride - s.padding + r, column = q * s.stride - s.padding + t;
          if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
          for (std::int64_t c = 0; c < s.in_channels; ++c)
            sum += tensors[0][x.at(n, c, row, column)] * tensors[1][w.at(k, c, r, t)];
        }
      }
      return sum;
    };
    for (std::int64_t n = 0; n < s.batch; ++n) {
      for (std::int64_t k = 0; k < s.out_channels; ++k) {
        for (std::int64_t p = 0; p < s.out_height(); ++p) {
          for (std::int64_t q = 0; q < s.out_width(); ++q) tensors[2][y.at(n, k, p, q)] = one(n, k, p, q);
        }
      }
    }
  }

  // y += weight * a row of x, where kernel column t meets it.
  static void add_row(const model::Convolution& s, std::int64_t t, float weight, const float* x, float* y) {
    // The first and the past-the-last q whose column q * stride - padding + t lies inside the image.
    const std::int64_t shift = t - s.padding;
    const std::int64_t first = shift >= 0 ? 0 : (-shift + s.stride - 1) / s.stride;
    const std::int64_t past =
        std::min(s.out_width(), s.width - 1 - shift < 0 ? 0 : (s.width - 1 - shift) / s.stride + 1);
    if (s.stride == 1) {
      for (std::int64_t q = first; q < past; ++q) y[q] += weight * x[q + shift];
    } else {
      for (std::int64_t q = first; q < past; ++q) y[q] += weight * x[q * s.stride + shift];
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
    const model::Convolution s = sizes(problem);
    const float* x = floats(tensors[0]);
    const float* w = floats(tensors[1]);
    float* y = floats(tensors[2]);
    const std::int64_t out_height = s.out_height(), out_width = s.out_width();
    // An item is one row of results: (n, k, p).
    team.each(s.batch * s.out_channels * out_height, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t p = item % out_height, k = item / out_height % s.out_channels,
                           n = item / out_height / s.out_channels;
        float* row = y + item * out_width;
        std::fill_n(row, out_width, 0.0f);
        for (std::int64_t c = 0; c < s.in_channels; ++c) {
          for (std::int64_t r = 0; r < s.kernel; ++r) {
            const std::int64_t h = p * s.stride - s.padding + r;
            if (h < 0 || h >= s.height) continue;
            const float* from = x + ((n * s.in_channels + c) * s.height + h) * s.width;
            const float* weights = w + ((k * s.in_channels + c) * s.kernel + r) * s.kernel;
            for (std::int64_t t = 0; t < s.kernel; ++t) add_row(s, t, weights[t], from, row);
          }
        }
      }
    });
  }

  static Result<CudaCall> prepare_cudnn(cuda::Context& context, const Problem& problem) {
    return cuda::dnn_convolution(
        context, {.sizes = sizes(problem), .type = problem.type, .channels_last = is_channels_last(problem.type)});
  }

  // A thread per result: right everywhere, fast nowhere. tf32 is float32 to it.
  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
    const model::Convolution s = sizes(problem);
    const std::string kernel = kernel_name("conv2d", problem.type == Type::kTf32 ? Type::kFloat32 : problem.type);
    const std::int64_t outputs = s.batch * s.out_channels * s.out_height() * s.out_width();
    const auto enqueue = [&context, kernel, s, outputs](std::span<const cuda::Pointer> t, cuda::Stream) {
      return context.launch(kernel, streaming_launch(outputs, 256),
                            {t[0], t[1], t[2], outputs, s.in_channels, s.out_channels, s.height, s.width,
                             s.out_height(), s.out_width(), s.kernel, s.stride, s.padding});
    };
    return CudaCall{.enqueue = enqueue, .method = "kernel " + kernel + ", direct"};
  }

  static constexpr CudaImplementation kCuda[] = {{"cudnn", prepare_cudnn}, {"kernel", prepare_kernel}};
};

}  // namespace

const Operator kConv2d = describe<Conv2d>("conv2d", "images convolved with square kernels; NCHW, NHWC for half types");

}  // namespace llmprof::bench
