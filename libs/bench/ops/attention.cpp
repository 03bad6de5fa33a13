// Attention of whole prompts, and what all operators of attention share.

#include "bench/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/cuda/dnn.h"
#include "bench/ops/attention_loops.h"
#include "bench/ops/rows.h"

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

void add_page_table(std::vector<TensorSpec>& specs, const Problem& problem) {
  if (problem.at("page") == 0) return;
  const std::int64_t pages = problem.at("batch") * (problem.at("context") / problem.at("page"));
  specs.push_back({"page_table", Role::kIn, Type::kInt32, pages, {.kind = Fill::Kind::kPermutation}});
}

Problem few_heads(const Problem& problem) {
  const std::int64_t kv_heads = problem.at("kv_heads"), fewer = std::min<std::int64_t>(kv_heads, 2);
  return problem.with_most("batch", 2).with("heads", problem.at("heads") / kv_heads * fewer).with("kv_heads", fewer);
}

std::int64_t short_context(std::int64_t context, std::int64_t page) {
  constexpr std::int64_t kLong = 512;
  if (page > 0) return page * std::min(context / page, std::max<std::int64_t>(2, kLong / page + 1));
  return context <= kLong ? context : kLong / 2 + context % 128;
}

Result<void> check_tensor_cores(const cuda::Context& context, const Problem& problem) {
  if (problem.type != Type::kBfloat16 && problem.type != Type::kFloat16) {
    return unsupported_error("{}: the kernel knows bfloat16 and float16, not {}", problem.op, type_name(problem.type));
  }
  const cuda::Properties& gpu = context.properties();
  if (gpu.capability() >= 80) return {};
  return unsupported_error("{}: the kernel needs compute capability 8.0, {} has {}.{}", problem.op, gpu.name, gpu.major,
                           gpu.minor);
}

Result<void> check_decode_kernel(const cuda::Context& context, const Problem& problem) {
  LLMPROF_TRY(check_tensor_cores(context, problem));
  if (problem.at("page") % 16 != 0) {
    return unsupported_error("{}: the kernel knows pages of 16 tokens and multiples, not {}", problem.op,
                             problem.at("page"));
  }
  constexpr std::int64_t kMost = 0x7fffffff;  // of the numbers the kernel counts with
  if (problem.at("context") <= kMost && problem.at("batch") <= kMost / problem.at("heads")) return {};
  return unsupported_error("{}: more rows than the kernel counts: {}", problem.op, problem.sizes());
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

model::KernelWork grouped_attention_work(const Problem& problem, std::int64_t tokens, std::int64_t context) {
  const model::Attention attention{.heads = problem.at("heads"),
                                   .kv_heads = problem.at("kv_heads"),
                                   .qk_dim = problem.at("head_dim"),
                                   .v_dim = problem.at("head_dim")};
  return model::attention_work(attention, axis(problem, "batch"), static_cast<double>(tokens),
                               static_cast<double>(context), static_cast<double>(type_bytes(problem.type)));
}

Result<CudaCall> prepare_cudnn_attention(cuda::Context& context, const Problem& problem, std::int64_t queries,
                                         std::int64_t keys, bool causal) {
  return cuda::cudnn_attention(context, {.type = problem.type,
                                         .batch = problem.at("batch"),
                                         .queries = queries,
                                         .keys = keys,
                                         .heads = problem.at("heads"),
                                         .kv_heads = problem.at("kv_heads"),
                                         .head_dim = problem.at("head_dim"),
                                         .causal = causal});
}

Result<CudaCall> prepare_prefill_kernel(cuda::Context& context, const Problem& problem, std::int64_t prior) {
  constexpr std::int64_t kQueriesPerBlock = 128;  // as attention_prefill.cu has it
  LLMPROF_TRY(check_tensor_cores(context, problem));
  const std::int64_t dim = problem.at("head_dim"), seq = problem.at("seq"), heads = problem.at("heads");
  const std::int64_t blocks_per_head = (seq + kQueriesPerBlock - 1) / kQueriesPerBlock;
  const std::int64_t blocks = blocks_per_head * heads * problem.at("batch");
  if (dim != 64 && dim != 128) {
    return unsupported_error("{}: the kernel knows head_dim 64 and 128, not {}", problem.op, dim);
  }
  if (blocks > 0x7fffffff || prior > 0x7fffffff - seq) {
    return unsupported_error("{}: {} blocks over {} keys are more than the kernel counts", problem.op, blocks,
                             prior + seq);
  }
  const std::string kernel = fmt::format("attention_prefill_{}_{}", dim, type_name(problem.type));
  // Two stages of 64 keys and 64 values.
  const cuda::Launch launch{.grid_x = blocks, .block_x = 256, .shared_bytes = 4 * 64 * dim * 2};
  return kernel_call<4>(context, kernel, launch, static_cast<int>(seq), static_cast<int>(prior),
                        static_cast<int>(heads), static_cast<int>(problem.at("kv_heads")),
                        static_cast<float>(score_scale(dim)));
}

namespace {

// Attention of a prompt: every token looks at itself and at those before it. Heads share keys and values in groups.
struct AttentionPrefill : RowOperator {
  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "128,512,2048", 1, "tokens per sequence"},
                                       {"heads", "32", 1, "heads of queries"},
                                       {"kv_heads", "8", 1, "heads of keys and values"},
                                       {"head_dim", "128", 1, "values per head"}};
  static constexpr std::string_view kCpuMethod = "loop, online softmax";

  static Result<void> check(const Problem& problem) {
    LLMPROF_TRY(check_values(problem, {"batch", "seq", "heads", "head_dim"}));
    return check_heads(problem);
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t tokens = row_count(problem), queries = tokens * problem.at("heads") * problem.at("head_dim");
    const std::int64_t keys = tokens * problem.at("kv_heads") * problem.at("head_dim");
    return {{"q", Role::kIn, problem.type, queries},  // batch, seq, heads, head_dim
            {"k", Role::kIn, problem.type, keys},     // batch, seq, kv_heads, head_dim
            {"v", Role::kIn, problem.type, keys},
            {"out", Role::kOut, problem.type, queries}};
  }

  static model::KernelWork work(const Problem& problem) {
    return grouped_attention_work(problem, problem.at("seq"), problem.at("seq"));
  }

  static Problem small(const Problem& problem) {
    return few_heads(problem).with("seq", short_context(problem.at("seq"), 0));
  }

  // The rows [begin, end) of batch, heads, seq.
  template <class Value>
  static void attend_rows(const Problem& problem, const Value* q, const Value* k, const Value* v, Value* out,
                          std::int64_t begin, std::int64_t end) {
    const std::int64_t seq = problem.at("seq"), heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
    const std::int64_t dim = problem.at("head_dim");
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = row % seq, head = row / seq % heads, sequence = row / seq / heads;
      const std::int64_t kv_offset = head / (heads / kv_heads) * dim;
      const std::int64_t offset = ((sequence * seq + token) * heads + head) * dim;
      const CacheRows<Value, std::int32_t> cache{
          .keys = k + kv_offset, .values = v + kv_offset, .step = kv_heads * dim, .first = sequence * seq};
      attend(q + offset, cache, token + 1, {dim, dim}, out + offset);
    }
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    attend_rows(problem, t[0].data(), t[1].data(), t[2].data(), t[3].data(), 0,
                row_count(problem) * problem.at("heads"));
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    team.each(row_count(problem) * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
      attend_rows<float>(problem, floats(t[0]), floats(t[1]), floats(t[2]), floats(t[3]), begin, end);
    });
  }

  static Result<CudaCall> prepare_cudnn(cuda::Context& context, const Problem& problem) {
    return prepare_cudnn_attention(context, problem, problem.at("seq"), problem.at("seq"), true);
  }

  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
    return prepare_prefill_kernel(context, problem, 0);
  }

  static constexpr CudaImplementation kCuda[] = {{"cudnn", prepare_cudnn}, {"kernel", prepare_kernel}};
};

}  // namespace

const Operator kAttentionPrefill =
    describe<AttentionPrefill>("attention_prefill", "causal attention of whole sequences, grouped heads");

}  // namespace llmprof::bench
