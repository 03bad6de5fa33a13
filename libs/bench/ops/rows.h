#pragma once
// What operators over rows of tokens share: axes batch, seq and hidden, their check, and launches that stream through
// them.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "base/result.h"
#include "bench/operator.h"

namespace llmprof::bench {

// Axes are what a user typed: sizes are formed in float64 and held against this before anything multiplies them in
// int64.

inline constexpr double kMostValues = 0x1p48;  // of one tensor: a petabyte of float32

inline double axis(const Problem& problem, std::string_view name) { return static_cast<double>(problem.at(name)); }

// `values` are those of the problem's largest tensor.
inline Result<void> check_values(const Problem& problem, double values) {
  if (values <= kMostValues) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} makes a tensor of {:.3g} values", problem.op, problem.sizes(), values),
               fmt::format("at most {:.3g} are counted, let alone stored", kMostValues)};
}

inline constexpr std::int64_t kGrainValues = 16 * 1024;  // a CPU thread takes no less: waking it costs microseconds

inline constexpr AxisSpec kRowAxes[] = {{"batch", "1", 1, "sequences"},
                                        {"seq", "1,128,2048", 1, "tokens per sequence"},
                                        {"hidden", "4096", 1, "values per token"}};
inline constexpr Type kRowTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};

inline std::int64_t row_count(const Problem& problem) { return problem.at("batch") * problem.at("seq"); }

// Products of axes stay in 64 bits, and columns of a row in 32. `row` is the axis of a row's values.
inline Result<void> check_sizes(const Problem& problem, std::string_view row) {
  LLMPROF_TRY(check_values(problem, axis(problem, "batch") * axis(problem, "seq") * axis(problem, row)));
  if (problem.at(row) <= std::int64_t{1} << 30) return {};
  return Error{ErrorCode::kUsage, fmt::format("{}: {} = {} is more than 2^30", problem.op, row, problem.at(row)), ""};
}
inline Result<void> check_rows(const Problem& problem) { return check_sizes(problem, "hidden"); }

// "rmsnorm_bfloat16": how the kernels of ops/*.cu are named.
inline std::string kernel_name(std::string_view op, Type type) {
  return std::string(op) + '_' + std::string(type_name(type));
}

// Few rows of full width: kernels branch by width, not by the number of rows.
inline Problem small_rows(const Problem& problem) {
  return problem.with("batch", std::min<std::int64_t>(problem.at("batch"), 2))
      .with("seq", std::min<std::int64_t>(problem.at("seq"), 7));
}

// One block of 256 threads per `per_block` items.
inline cuda::Launch streaming_launch(std::int64_t items, std::int64_t per_block) {
  return {.grid_x = (items + per_block - 1) / per_block, .block_x = 256};
}

// For stream() of rows.cuh: 16 bytes per thread, or twice that of values of two bytes.
inline cuda::Launch stream_launch(std::int64_t values, Type type) {
  return streaming_launch(values, 256 * (type_bytes(type) == 2 ? 16 : 4));
}

inline constexpr std::int64_t kRowThreads = 640;  // as in rows.cuh

// For Row of rows.cuh: a row is shared by lanes of a warp or by a block. Many rows: as few threads as keep the row in
// registers (4 accesses of 16 bytes each, 8 of single values). Few rows: fewer accesses per thread, to be done sooner.
inline cuda::Launch row_launch(const cuda::Context& context, std::int64_t rows, std::int64_t width, Type type) {
  const std::int64_t pack = 16 / type_bytes(type), multiprocessors = context.properties().multiprocessors;
  const bool packed = width % pack == 0;
  const std::int64_t accesses = packed ? width / pack : width, kept = packed ? 4 : 8;
  const std::int64_t each = rows <= 2 * multiprocessors ? 1 : (rows <= 4 * multiprocessors ? 2 : kept);
  const std::int64_t wanted = std::min((accesses + each - 1) / each, kRowThreads);
  if (wanted > 32) return {.grid_x = rows, .block_x = (wanted + 31) / 32 * 32};
  const auto lanes = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
  return {.grid_x = (rows * lanes + 127) / 128, .block_x = lanes, .block_y = 128 / lanes};
}

// What a CPU's threads share: whole rows, f(row) for each.
template <class F>
void each_row(const Team& team, std::int64_t rows, std::int64_t width, F f) {
  team.each(rows, std::max<std::int64_t>(1, kGrainValues / width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) f(row);
  });
}

}  // namespace llmprof::bench
