// Quantised values back to floating point, in float32: y = q * scale for int8 and float8_e4m3 (scales are float32, as
// quantize writes them), y = (q - 8) * scale for int4 (q of 0 … 15, two to a byte, the first in the lower bits; scales
// of y's type): weights as GPTQ stores them symmetrically. A scale belongs to a row or to `group` consecutive values of
// it.

#include "bench/operator.h"
#include "bench/ops/quantize.h"

namespace llmprof::bench {

namespace dequantize {
namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                              {"seq", "1,128,2048", 1, "tokens per sequence, or rows of weights"},
                              {"hidden", "4096", 1, "values per row"},
                              {"group", "0,128", 0, "values per scale; 0: one scale per row"},
                              {"format", "0,1,2", 0, "0: int8, 1: float8_e4m3, 2: int4"}};
constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};

Result<void> check(const Problem& problem) {
  LLMPROF_TRY(check_groups(problem, Format::kInt4));
  if (format_of(problem) == Format::kInt4 && group_size(problem) % 2 != 0) {
    return Error{ErrorCode::kUsage,
                 fmt::format("dequantize: groups of {} values of int4 end inside a byte", group_size(problem)), ""};
  }
  return {};
}

Type scale_type(const Problem& problem) { return format_of(problem) == Format::kInt4 ? problem.type : Type::kFloat32; }

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  const Format format = format_of(problem);
  return {{.name = "q",
           .type = stored_type(format),
           .elements = format == Format::kInt4 ? values / 2 : values,
           .fill = {.scale = 50}},
          {.name = "scale", .type = scale_type(problem), .elements = group_count(problem)},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto values = static_cast<double>(row_count(problem)) * axis(problem, "hidden");
  model::KernelWork work = model::streaming_work(0, values, static_cast<double>(type_bytes(problem.type)));
  work.read_bytes = values * (format_of(problem) == Format::kInt4 ? 0.5 : 1) +
                    static_cast<double>(group_count(problem) * type_bytes(scale_type(problem)));
  return work;
}

void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  const std::int64_t size = group_size(problem);
  const bool is_int4 = format_of(problem) == Format::kInt4;
  for (std::size_t i = 0; i < tensors[2].size(); ++i) {
    double q = tensors[0][is_int4 ? i / 2 : i];
    if (is_int4) {
      const int byte = static_cast<int>(q) & 0xff;
      q = (i % 2 == 0 ? byte & 15 : byte >> 4) - 8;
    }
    tensors[2][i] = q * tensors[1][static_cast<std::int64_t>(i) / size];
  }
}

// float32 by position in a table of what a byte means: 256 values of 8 bits.
std::vector<float> meanings(Format format) {
  std::vector<float> values(256);
  for (int byte = 0; byte < 256; ++byte) {
    const auto raw = static_cast<std::byte>(byte);
    double value = 0;
    decode(&raw, stored_type(format), {&value, 1});
    values[byte] = static_cast<float>(value);
  }
  return values;
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t size = group_size(problem);
  const Format format = format_of(problem);
  const auto* q = reinterpret_cast<const std::uint8_t*>(tensors[0]);
  const auto* scale = reinterpret_cast<const float*>(tensors[1]);
  auto* y = reinterpret_cast<float*>(tensors[2]);
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

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::int64_t size = group_size(problem), values = row_count(problem) * problem.at("hidden");
  const std::int64_t pack = 16 / type_bytes(problem.type);
  const bool by_packs = size % pack == 0;  // a pack lies in one group
  const std::string kernel = fmt::format("dequantize_{}_{}_{}", by_packs ? "packs" : "pairs", type_name(problem.type),
                                         format_name(format_of(problem)));
  const cuda::Launch launch = streaming_launch(values, 4 * 256 * (by_packs ? pack : 2));
  return kernel_call<3>(context, kernel, launch, size, values);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace dequantize

const Operator kDequantize{.name = "dequantize",
                           .summary = "y = int8, float8 or int4 values times their scales",
                           .axes = dequantize::kAxes,
                           .types = dequantize::kTypes,
                           .check = dequantize::check,
                           .tensors = dequantize::tensors,
                           .work = dequantize::work,
                           .small = small_rows,
                           .reference = dequantize::reference,
                           .cpu = dequantize::cpu,
                           .cpu_method = "loop",
                           .cuda = dequantize::kCuda};

}  // namespace llmprof::bench
