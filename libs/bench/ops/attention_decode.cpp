// Attention of one new token per sequence against a cache of keys and values, in one piece or in pages.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/ops/attention.h"
#include "bench/ops/attention_loops.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct AttentionDecode : RowOperator {
  static constexpr AxisSpec kAxes[] = {{"batch", "1,16,64", 1, "sequences"},
                                       {"context", "1024,4096", 1, "tokens in the cache, the new one included"},
                                       {"heads", "32", 1, "heads of queries"},
                                       {"kv_heads", "8", 1, "heads of keys and values"},
                                       {"head_dim", "128", 1, "values per head"},
                                       {"page", "0", 0, "tokens per page of the cache; 0: no pages"}};
  static constexpr std::string_view kCpuMethod = "loop, online softmax";
  static constexpr std::int64_t kTokensPerTile = 16, kWarps = 4;  // as attention_decode.cu has them

  static Result<void> check(const Problem& problem) {
    LLMPROF_TRY(check_values(problem, {"batch", "context", "kv_heads", "head_dim"}));
    LLMPROF_TRY(check_values(problem, {"batch", "heads", "head_dim"}));
    LLMPROF_TRY(check_heads(problem));
    return check_pages(problem);
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t batch = problem.at("batch"), dim = problem.at("head_dim");
    const std::int64_t queries = batch * problem.at("heads") * dim;
    const std::int64_t keys = batch * problem.at("context") * problem.at("kv_heads") * dim;
    // q and out: batch, heads, head_dim. k, v: batch, context, kv_heads, head_dim, or pages, page, kv_heads, head_dim.
    std::vector<TensorSpec> specs{{"q", Role::kIn, problem.type, queries},
                                  {"k", Role::kIn, problem.type, keys},
                                  {"v", Role::kIn, problem.type, keys},
                                  {"out", Role::kOut, problem.type, queries}};
    add_page_table(specs, problem);
    return specs;
  }

  static model::KernelWork work(const Problem& problem) {
    return grouped_attention_work(problem, 1, problem.at("context"));
  }

  static Problem small(const Problem& problem) {
    return few_heads(problem).with("context", short_context(problem.at("context"), problem.at("page")));
  }

  // The rows [begin, end) of batch, heads.
  template <class Value, class Entry>
  static void attend_rows(const Problem& problem, const Value* q, const Value* k, const Value* v, const Entry* table,
                          Value* out, std::int64_t begin, std::int64_t end) {
    const std::int64_t heads = problem.at("heads"), kv_heads = problem.at("kv_heads"), dim = problem.at("head_dim");
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t kv_offset = row % heads / (heads / kv_heads) * dim;
      const auto cache = cache_of(problem, row / heads, k + kv_offset, v + kv_offset, table, kv_heads * dim);
      attend(q + row * dim, cache, problem.at("context"), {dim, dim}, out + row * dim);
    }
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    attend_rows(problem, t[0].data(), t[1].data(), t[2].data(), t.back().data(), t[3].data(), 0,
                problem.at("batch") * problem.at("heads"));
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const auto* table = reinterpret_cast<const std::int32_t*>(t.back());
    team.each(problem.at("batch") * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
      attend_rows<float>(problem, floats(t[0]), floats(t[1]), floats(t[2]), table, floats(t[3]), begin, end);
    });
  }

  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
    LLMPROF_TRY(check_decode_kernel(context, problem));
    const std::int64_t dim = problem.at("head_dim"), heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
    if (dim != 64 && dim != 128 && dim != 256) {
      return unsupported_error("attention_decode: the kernel knows head_dim 64, 128 and 256, not {}", dim);
    }
    const std::int64_t group = heads / kv_heads,
                       per_block = group <= 8 || dim == 256 ? 8 : 16;  // heads that a block computes
    const std::int64_t pairs = problem.at("batch") * kv_heads * ((group + per_block - 1) / per_block);
    const std::string kernel = fmt::format("attention_decode_{}_{}_{}", dim, per_block, type_name(problem.type));
    LLMPROF_LET(const int resident, context.blocks_per_multiprocessor(kernel, 32 * kWarps, 0));
    const std::int64_t tiles = (problem.at("context") + kTokensPerTile - 1) / kTokensPerTile;
    const SplitCosts costs{.multiprocessors = context.properties().multiprocessors,
                           .blocks_per_multiprocessor = std::max(resident, 1)};
    const std::int64_t splits = choose_splits(pairs, (tiles + kWarps - 1) / kWarps, costs);
    // Per part and head: sums of `dim` values, the highest score, the sum of weights. Behind them the counters of parts
    // that are done, which the kernel leaves at zero.
    const std::int64_t partial_bytes = splits == 1 ? 0 : pairs * splits * per_block * (dim + 2) * 4;
    const std::int64_t bytes = partial_bytes + pairs * 4;
    LLMPROF_LET(cuda::Buffer buffer, context.allocate(bytes));
    LLMPROF_TRY(context.set_bytes(buffer.pointer(), 0, bytes));
    const auto scratch = std::make_shared<cuda::Buffer>(std::move(buffer));
    const cuda::Launch launch{.grid_x = pairs * splits, .block_x = 32 * kWarps};
    const auto scale = static_cast<float>(score_scale(dim));
    auto enqueue = [=, &context, tokens = static_cast<int>(problem.at("context")),
                    page = static_cast<int>(problem.at("page"))](std::span<const cuda::Pointer> t, cuda::Stream) {
      const cuda::Pointer table = page > 0 ? t[4] : 0,
                          counters = scratch->pointer() + static_cast<cuda::Pointer>(partial_bytes);
      return context.launch(
          kernel, launch,
          {t[0], t[1], t[2], t[3], table, scratch->pointer(), counters, tokens, static_cast<int>(heads),
           static_cast<int>(kv_heads), page, static_cast<int>(splits), scale});
    };
    return CudaCall{.enqueue = std::move(enqueue),
                    .method = fmt::format("kernel {}, context in {} part{}", kernel, splits, splits == 1 ? "" : "s"),
                    .workspace_bytes = bytes};
  }

  static Result<CudaCall> prepare_cudnn(cuda::Context& context, const Problem& problem) {
    if (problem.at("page") > 0) {
      return unsupported_error("attention_decode: cuDNN is asked for caches in one piece only");
    }
    return prepare_cudnn_attention(context, problem, 1, problem.at("context"), false);
  }

  static constexpr CudaImplementation kCuda[] = {{"cudnn", prepare_cudnn}, {"kernel", prepare_kernel}};
};

}  // namespace

const Operator kAttentionDecode =
    describe<AttentionDecode>("attention_decode", "attention of one new token against a cache, grouped heads, pages");

}  // namespace llmprof::bench
