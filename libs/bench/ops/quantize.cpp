// Values to 8 bits and back: rows of batch * seq tokens of `hidden` values, one scale per token or per group of
// consecutive values of it. The file is compiled so that a product is rounded before anything is added to it.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

// The axis `format`.
enum class Format : std::uint8_t { kInt8 = 0, kFloat8 = 1, kInt4 = 2 };

Format format_of(const Problem& problem) { return static_cast<Format>(problem.at("format")); }

std::string_view format_name(Format format) {
  if (format == Format::kInt4) return "int4";
  return type_name(format == Format::kInt8 ? Type::kInt8 : Type::kFloat8E4m3);
}

// int4: two values per byte, so that a tensor of them has half as many bytes as values.
Type stored_type(Format format) { return format == Format::kFloat8 ? Type::kFloat8E4m3 : Type::kInt8; }

// Values that share a scale.
std::int64_t group_size(const Problem& problem) {
  return problem.at("group") == 0 ? problem.at("hidden") : problem.at("group");
}

std::int64_t group_count(const Problem& problem) {
  return row_count(problem) * (problem.at("hidden") / group_size(problem));
}

Result<void> check_groups(const Problem& problem, Format last) {
  if (problem.at("format") > static_cast<std::int64_t>(last)) {
    return Error{ErrorCode::kUsage, fmt::format("{}: there is no format {}", problem.op, problem.at("format")),
                 fmt::format("the last is {}, {}", static_cast<int>(last), format_name(last))};
  }
  if (problem.at("hidden") % group_size(problem) != 0) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: groups of {} do not divide hidden = {}", problem.op, problem.at("group"),
                             problem.at("hidden")),
                 "0 means one scale per token"};
  }
  return check_values(problem, axis(problem, "batch") * axis(problem, "seq") * axis(problem, "hidden"));
}

// Activations to 8 bits, as they are before a product of 8-bit numbers. For each group of values (a token, or `group`
// consecutive values of it), in float32:
//   most  = max(max |x|, 1e-12)
//   scale = most / Q              Q = 127 for int8, 448 for float8_e4m3: the largest the format holds
//   q     = rounded(x * (Q / most))   to the nearest, ties to even, saturated
// so that x is about q * scale. Scales are float32. What is written is defined to the last bit: tests want equality.
struct Quantize : RowOperator {
  static constexpr std::optional<double> kTolerance = 0;

  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence"},
                                       {"hidden", "4096", 1, "values per token"},
                                       {"group", "0,128", 0, "values per scale; 0: one scale per token"},
                                       {"format", "0,1", 0, "0: int8, 1: float8_e4m3"}};

  static Result<void> check(const Problem& problem) { return check_groups(problem, Format::kFloat8); }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t values = row_count(problem) * problem.at("hidden");
    return {{"x", Role::kIn, problem.type, values},
            {"q", Role::kOut, stored_type(format_of(problem)), values},
            {"scale", Role::kOut, Type::kFloat32, group_count(problem)}};
  }

  static float largest(Format format) { return format == Format::kInt8 ? 127.0f : 448.0f; }

  // The largest |x|: sixteen side by side, so that a compiler may use vectors.
  template <class At>
  static float largest_size(std::int64_t size, const At& at) {
    float most[16] = {};
    std::int64_t i = 0;
    for (; i + 16 <= size; i += 16) {
      for (int j = 0; j < 16; ++j) most[j] = std::max(most[j], std::abs(at(i + j)));
    }
    for (; i < size; ++i) most[0] = std::max(most[0], std::abs(at(i)));
    return *std::max_element(most, most + 16);
  }

  // `at` gives the values of a group one by one. Returns the scale and stores each q by `put`.
  template <class At, class Put>
  static float quantize_group(std::int64_t size, float q_most, const At& at, const Put& put) {
    const float most = std::max(largest_size(size, at), 1e-12f);
    const float inverse = q_most / most;
    for (std::int64_t i = 0; i < size; ++i) put(i, at(i) * inverse);
    return most / q_most;
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const std::int64_t size = group_size(problem);
    const Type stored = stored_type(format_of(problem));
    for (std::int64_t group = 0; group < group_count(problem); ++group) {
      const double* x = t[0].data() + group * size;
      double* q = t[1].data() + group * size;
      t[2][group] = static_cast<double>(quantize_group(
          size, largest(format_of(problem)), [&](std::int64_t i) { return static_cast<float>(x[i]); },
          [&](std::int64_t i, float value) { q[i] = rounded(static_cast<double>(value), stored); }));
    }
  }

  // Nearest, ties to even, without a call or a branch per value: adding 1.5 * 2^23 leaves no bits for a fraction.
  static std::int8_t to_int8(float value) { return static_cast<std::int8_t>((value + 0x1.8p23f) - 0x1.8p23f); }

  // float8_e4m3 has three bits after the first, so 20 of float32's 23 are rounded away; a carry goes into the exponent
  // as it should. Below 2^-6 its steps are all 2^-9: adding 1.5 * 2^14 leaves their number in the lowest bits.
  static std::uint8_t to_float8(float value) {
    const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 31 << 7;
    const float size = std::min(std::abs(value), 448.0f);
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(size);
    const std::uint32_t normal = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - ((127 - 7) << 3);
    const std::uint32_t small = std::bit_cast<std::uint32_t>(size + 0x1.8p14f) & 15;
    return static_cast<std::uint8_t>(sign | (size < 0x1p-6f ? small : normal));
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t size = group_size(problem);
    const float* x = floats(t[0]);
    float* scale = floats(t[2]);
    const bool is_int8 = format_of(problem) == Format::kInt8;
    team.each(group_count(problem), kGrainValues / size + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) {
        const float* from = x + group * size;
        auto* q = reinterpret_cast<std::uint8_t*>(t[1]) + group * size;
        const auto at = [&](std::int64_t i) { return from[i]; };
        if (is_int8) {
          scale[group] = quantize_group(
              size, 127.0f, at, [&](std::int64_t i, float value) { q[i] = static_cast<std::uint8_t>(to_int8(value)); });
        } else {
          scale[group] =
              quantize_group(size, 448.0f, at, [&](std::int64_t i, float value) { q[i] = to_float8(value); });
        }
      }
    });
  }

  // Short groups are the business of a few lanes of a warp; a block takes a longer one, or one of awkward size.
  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::int64_t size = group_size(problem), groups = group_count(problem);
    const std::int64_t pack = 16 / type_bytes(problem.type), lanes = size / pack;
    const bool by_lanes = size % pack == 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0;
    const std::string kernel = fmt::format("quantize_{}_{}_{}", by_lanes ? "lanes" : "block", type_name(problem.type),
                                           format_name(format_of(problem)));
    const cuda::Launch launch =
        by_lanes ? streaming_launch(groups * lanes, 4 * 256) : cuda::Launch{.grid_x = groups, .block_x = 256};
    return kernel_call<3>(context, kernel, launch, size, groups);
  }
};

// Quantised values back to floating point, in float32: y = q * scale for int8 and float8_e4m3 (scales are float32, as
// quantize writes them), y = (q - 8) * scale for int4 (q of 0 … 15, two to a byte, the first in the lower bits; scales
// of y's type): weights as GPTQ stores them symmetrically. A scale belongs to a row or to `group` consecutive values of
// it.
struct Dequantize : RowOperator {
  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence, or rows of weights"},
                                       {"hidden", "4096", 1, "values per row"},
                                       {"group", "0,128", 0, "values per scale; 0: one scale per row"},
                                       {"format", "0,1,2", 0, "0: int8, 1: float8_e4m3, 2: int4"}};

  static Result<void> check(const Problem& problem) {
    LLMPROF_TRY(check_groups(problem, Format::kInt4));
    if (format_of(problem) == Format::kInt4 && group_size(problem) % 2 != 0) {
      return usage_error("dequantize: groups of {} values of int4 end inside a byte", group_size(problem));
    }
    return {};
  }

  static Type scale_type(const Problem& problem) {
    return format_of(problem) == Format::kInt4 ? problem.type : Type::kFloat32;
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t values = row_count(problem) * problem.at("hidden");
    const Format format = format_of(problem);
    return {{"q", Role::kIn, stored_type(format), format == Format::kInt4 ? values / 2 : values, {.scale = 50}},
            {"scale", Role::kIn, scale_type(problem), group_count(problem)},
            {"y", Role::kOut, problem.type, values}};
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const std::int64_t size = group_size(problem);
    const bool is_int4 = format_of(problem) == Format::kInt4;
    for (std::size_t i = 0; i < t[2].size(); ++i) {
      double q = t[0][is_int4 ? i / 2 : i];
      if (is_int4) {
        const int byte = static_cast<int>(q) & 0xff;
        q = (i % 2 == 0 ? byte & 15 : byte >> 4) - 8;
      }
      t[2][i] = q * t[1][static_cast<std::int64_t>(i) / size];
    }
  }

  // float32 by position in a table of what a byte means: 256 values of 8 bits.
  static std::vector<float> meanings(Format format) {
    std::vector<float> values(256);
    for (int byte = 0; byte < 256; ++byte) {
      const auto raw = static_cast<std::byte>(byte);
      double value = 0;
      decode(&raw, stored_type(format), {&value, 1});
      values[byte] = static_cast<float>(value);
    }
    return values;
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t size = group_size(problem);
    const Format format = format_of(problem);
    const auto* q = reinterpret_cast<const std::uint8_t*>(t[0]);
    const float* scale = floats(t[1]);
    float* y = floats(t[2]);
    static const std::vector<float> kFloat8 = meanings(Format::kFloat8);
    team.each(group_count(problem), kGrainValues / size + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) {
        const float by = scale[group];
        const std::int64_t first = group * size;
        if (format == Format::kInt8) {
          for (std::int64_t i = first; i < first + size; ++i)
            y[i] = static_cast<float>(static_cast<std::int8_t>(q[i])) * by;
        } else if (format == Format::kFloat8) {
          for (std::int64_t i = first; i < first + size; ++i) y[i] = kFloat8[q[i]] * by;
        } else {
          for (std::int64_t i = first; i < first + size; i += 2) {
            y[i] = static_cast<float>((q[i / 2] & 15) - 8) * by;
            y[i + 1] = static_cast<float>((q[i / 2] >> 4) - 8) * by;
          }
        }
      }
    });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::int64_t size = group_size(problem), values = row_count(problem) * problem.at("hidden");
    const std::int64_t pack = 16 / type_bytes(problem.type);
    const bool by_packs = size % pack == 0;  // a pack lies in one group
    const std::string kernel = fmt::format("dequantize_{}_{}_{}", by_packs ? "packs" : "pairs", type_name(problem.type),
                                           format_name(format_of(problem)));
    const cuda::Launch launch = streaming_launch(values, 4 * 256 * (by_packs ? pack : 2));
    return kernel_call<3>(context, kernel, launch, size, values);
  }
};

}  // namespace

const Operator kQuantize = describe<Quantize>("quantize", "q, scale = x to 8 bits, a scale per token or group");
const Operator kDequantize = describe<Dequantize>("dequantize", "y = int8, float8 or int4 values times their scales");

}  // namespace llmprof::bench
