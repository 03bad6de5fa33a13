#pragma once
// What operators over rows of tokens share: axes batch, seq and hidden, and launches that stream through them.

#include <algorithm>
#include <string>

#include "bench/operator.h"

namespace llmprof::bench {

inline constexpr std::int64_t kGrainValues = 16 * 1024;  // a CPU thread takes no less: waking it costs microseconds

inline std::int64_t row_count(const Problem& problem) { return problem.at("batch") * problem.at("seq"); }

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

}  // namespace llmprof::bench
