#include "bench/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace llmprof::bench {

Result<void> check_heads(const Problem& problem) {
  const std::int64_t heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
  if (heads % kv_heads == 0) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} heads cannot share {} kv_heads evenly", problem.op, heads, kv_heads),
               "heads must be a multiple of kv_heads"};
}

Result<void> check_pages(const Problem& problem) {
  const std::int64_t context = problem.at("context"), page = problem.at("page");
  if (page == 0 || context % page == 0) return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("{}: a context of {} tokens is not a whole number of pages of {}", problem.op, context, page),
      "page must divide context; 0 means a cache without pages"};
}

Result<void> check_values(const Problem& problem, std::initializer_list<std::string_view> axes) {
  double values = 1;
  for (const std::string_view axis : axes) values *= static_cast<double>(problem.at(axis));
  constexpr double kMost = 1e15;  // a petabyte and more: no machine has it, and sums of a few of them fit 64 bits
  if (values <= kMost) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} would need a tensor of {:.3g} values", problem.op, problem.sizes(), values),
               "smaller axes"};
}

Problem few_heads(const Problem& problem) {
  const std::int64_t kv_heads = problem.at("kv_heads"), fewer = std::min<std::int64_t>(kv_heads, 2);
  return problem.with("batch", std::min<std::int64_t>(problem.at("batch"), 2))
      .with("heads", problem.at("heads") / kv_heads * fewer)
      .with("kv_heads", fewer);
}

std::int64_t short_context(std::int64_t context, std::int64_t page) {
  constexpr std::int64_t kLong = 512;
  if (page > 0) return page * std::min(context / page, std::max<std::int64_t>(2, kLong / page + 1));
  return context <= kLong ? context : kLong / 2 + context % 128;
}

Result<void> check_tensor_cores(const cuda::Context& context, const Problem& problem) {
  if (problem.type != Type::kBfloat16 && problem.type != Type::kFloat16) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: the kernel knows bfloat16 and float16, not {}", problem.op, type_name(problem.type)),
                 ""};
  }
  const cuda::Properties& gpu = context.properties();
  if (gpu.capability() >= 80) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: the kernel needs compute capability 8.0, {} has {}.{}", problem.op, gpu.name, gpu.major,
                           gpu.minor),
               ""};
}

std::int64_t choose_splits(std::int64_t pairs, std::int64_t tiles, const SplitCosts& costs) {
  const auto slots = static_cast<double>(costs.multiprocessors * costs.blocks_per_multiprocessor);
  std::int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  const std::int64_t most = std::min<std::int64_t>(tiles, 256);
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const double blocks = static_cast<double>(pairs) * static_cast<double>(splits);
    // Blocks share the memory's bandwidth: fewer of them on a multiprocessor are each faster, if not by as much.
    const double together = std::ceil(blocks / static_cast<double>(costs.multiprocessors)) /
                            static_cast<double>(costs.blocks_per_multiprocessor);
    const double waves = blocks > slots ? std::ceil(blocks / slots) : 0.17 + 0.83 * together;
    const double part = std::ceil(static_cast<double>(tiles) / static_cast<double>(splits));
    const double time = waves * (part + costs.start) + costs.merge * static_cast<double>(splits);
    if (time < least) {
      least = time;
      best = splits;
    }
  }
  return best;
}

}  // namespace llmprof::bench
