// Activations to 8 bits, as they are before a product of 8-bit numbers. For each group of values (a token, or `group`
// consecutive values of it), in float32:
//   most  = max(max |x|, 1e-12)
//   scale = most / Q              Q = 127 for int8, 448 for float8_e4m3: the largest the format holds
//   q     = rounded(x * (Q / most))   to the nearest, ties to even, saturated
// so that x is about q * scale. Scales are float32. What is written is defined to the last bit: tests want equality.

#include "bench/ops/quantize.h"

#include <bit>
#include <cmath>

#include "bench/operator.h"

namespace llmprof::bench {

namespace quantize {
namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                              {"seq", "1,128,2048", 1, "tokens per sequence"},
                              {"hidden", "4096", 1, "values per token"},
                              {"group", "0,128", 0, "values per scale; 0: one scale per token"},
                              {"format", "0,1", 0, "0: int8, 1: float8_e4m3"}};
constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};

Result<void> check(const Problem& problem) { return check_groups(problem, Format::kFloat8); }

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  return {{.name = "x", .type = problem.type, .elements = values},
          {.name = "q", .role = Role::kOut, .type = stored_type(format_of(problem)), .elements = values},
          {.name = "scale", .role = Role::kOut, .type = Type::kFloat32, .elements = group_count(problem)}};
}

model::KernelWork work(const Problem& problem) {
  const auto values = static_cast<double>(row_count(problem)) * axis(problem, "hidden");
  model::KernelWork work = model::streaming_work(values, 0, static_cast<double>(type_bytes(problem.type)));
  work.write_bytes = values + 4 * static_cast<double>(group_count(problem));
  return work;
}

float largest(Format format) { return format == Format::kInt8 ? 127.0f : 448.0f; }

// The largest |x|: sixteen side by side, so that a compiler may use vectors.
template <class At>
float largest_size(std::int64_t size, const At& at) {
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
float quantize_group(std::int64_t size, float q_most, const At& at, const Put& put) {
  const float most = std::max(largest_size(size, at), 1e-12f);
  const float inverse = q_most / most;
  for (std::int64_t i = 0; i < size; ++i) put(i, at(i) * inverse);
  return most / q_most;
}

void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  const std::int64_t size = group_size(problem);
  const Type stored = stored_type(format_of(problem));
  for (std::int64_t group = 0; group < group_count(problem); ++group) {
    const double* x = tensors[0].data() + group * size;
    double* q = tensors[1].data() + group * size;
    tensors[2][group] = static_cast<double>(quantize_group(
        size, largest(format_of(problem)), [&](std::int64_t i) { return static_cast<float>(x[i]); },
        [&](std::int64_t i, float value) { q[i] = rounded(static_cast<double>(value), stored); }));
  }
}

// Nearest, ties to even, without a call or a branch per value: adding 1.5 * 2^23 leaves no bits for a fraction.
std::int8_t to_int8(float value) { return static_cast<std::int8_t>((value + 0x1.8p23f) - 0x1.8p23f); }

// float8_e4m3 has three bits after the first, so 20 of float32's 23 are rounded away; a carry goes into the exponent as
// it should. Below 2^-6 its steps are all 2^-9: adding 1.5 * 2^14 leaves their number in the lowest bits.
std::uint8_t to_float8(float value) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 31 << 7;
  const float size = std::min(std::abs(value), 448.0f);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(size);
  const std::uint32_t normal = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - ((127 - 7) << 3);
  const std::uint32_t small = std::bit_cast<std::uint32_t>(size + 0x1.8p14f) & 15;
  return static_cast<std::uint8_t>(sign | (size < 0x1p-6f ? small : normal));
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t size = group_size(problem);
  const auto* x = reinterpret_cast<const float*>(tensors[0]);
  auto* scale = reinterpret_cast<float*>(tensors[2]);
  const bool is_int8 = format_of(problem) == Format::kInt8;
  team.each(group_count(problem), kGrainValues / size + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      const float* from = x + group * size;
      auto* q = reinterpret_cast<std::uint8_t*>(tensors[1]) + group * size;
      const auto at = [&](std::int64_t i) { return from[i]; };
      if (is_int8) {
        scale[group] = quantize_group(
            size, 127.0f, at, [&](std::int64_t i, float value) { q[i] = static_cast<std::uint8_t>(to_int8(value)); });
      } else {
        scale[group] = quantize_group(size, 448.0f, at, [&](std::int64_t i, float value) { q[i] = to_float8(value); });
      }
    }
  });
}

// Short groups are the business of a few lanes of a warp; a block takes a longer one, or one of awkward size.
Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::int64_t size = group_size(problem), groups = group_count(problem);
  const std::int64_t pack = 16 / type_bytes(problem.type), lanes = size / pack;
  const bool by_lanes = size % pack == 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0;
  const std::string kernel = fmt::format("quantize_{}_{}_{}", by_lanes ? "lanes" : "block", type_name(problem.type),
                                         format_name(format_of(problem)));
  const cuda::Launch launch =
      by_lanes ? streaming_launch(groups * lanes, 4 * 256) : cuda::Launch{.grid_x = groups, .block_x = 256};
  return kernel_call<3>(context, kernel, launch, size, groups);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace quantize

const Operator kQuantize{.name = "quantize",
                         .summary = "q, scale = x to 8 bits, a scale per token or group",
                         .axes = quantize::kAxes,
                         .types = quantize::kTypes,
                         .check = quantize::check,
                         .tensors = quantize::tensors,
                         .work = quantize::work,
                         .small = small_rows,
                         .reference = quantize::reference,
                         .cpu = quantize::cpu,
                         .cpu_method = "loop",
                         .cuda = quantize::kCuda,
                         .tolerance = 0};

}  // namespace llmprof::bench
