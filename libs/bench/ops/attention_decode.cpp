// Attention of one new token per sequence against a cache of keys and values, in one piece or in pages.

#include <fmt/format.h>

#include <memory>

#include "bench/cuda/dnn.h"
#include "bench/operator.h"
#include "bench/ops/attention.h"
#include "bench/ops/attention_loops.h"

namespace llmprof::bench {

namespace attention_decode {
namespace {

constexpr AxisSpec kAxes[] = {
    {"batch", "1,16,64", 1, "sequences"},      {"context", "1024,4096", 1, "tokens in the cache, the new one included"},
    {"heads", "32", 1, "heads of queries"},    {"kv_heads", "8", 1, "heads of keys and values"},
    {"head_dim", "128", 1, "values per head"}, {"page", "0", 0, "tokens per page of the cache; 0: no pages"}};
constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};
// As attention_decode.cu has them.
constexpr std::int64_t kTokensPerTile = 16, kWarps = 4;

Result<void> check(const Problem& problem) {
  LLMPROF_TRY(check_values(problem, {"batch", "context", "kv_heads", "head_dim"}));
  LLMPROF_TRY(check_values(problem, {"batch", "heads", "head_dim"}));
  LLMPROF_TRY(check_heads(problem));
  return check_pages(problem);
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t batch = problem.at("batch"), context = problem.at("context"), page = problem.at("page");
  const std::int64_t queries = batch * problem.at("heads") * problem.at("head_dim");
  const std::int64_t keys = batch * context * problem.at("kv_heads") * problem.at("head_dim");
  // q and out: batch, heads, head_dim. k and v: batch, context, kv_heads, head_dim, or pages, page, kv_heads, head_dim.
  std::vector<TensorSpec> specs{{.name = "q", .type = problem.type, .elements = queries},
                                {.name = "k", .type = problem.type, .elements = keys},
                                {.name = "v", .type = problem.type, .elements = keys},
                                {.name = "out", .role = Role::kOut, .type = problem.type, .elements = queries}};
  if (page > 0) {
    specs.push_back({.name = "page_table",
                     .type = Type::kInt32,
                     .elements = batch * (context / page),
                     .fill = {.kind = Fill::Kind::kPermutation}});
  }
  return specs;
}

model::KernelWork work(const Problem& problem) {
  const model::Attention attention{.heads = problem.at("heads"),
                                   .kv_heads = problem.at("kv_heads"),
                                   .qk_dim = problem.at("head_dim"),
                                   .v_dim = problem.at("head_dim")};
  return model::attention_work(attention, static_cast<double>(problem.at("batch")), 1,
                               static_cast<double>(problem.at("context")),
                               static_cast<double>(type_bytes(problem.type)));
}

Problem small(const Problem& problem) {
  return few_heads(problem).with("context", short_context(problem.at("context"), problem.at("page")));
}

// Calls attend(query and output offset, cache) for the rows [begin, end) of batch, heads.
template <class Value, class Entry, class Attend>
void each_query(const Problem& problem, const Value* k, const Value* v, const Entry* table, std::int64_t begin,
                std::int64_t end, const Attend& attend) {
  const std::int64_t context = problem.at("context"), heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
  const std::int64_t dim = problem.at("head_dim"), page = problem.at("page");
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t sequence = row / heads, kv_offset = row % heads / (heads / kv_heads) * dim;
    const CacheRows<Value, Entry> cache{.keys = k + kv_offset,
                                        .values = v + kv_offset,
                                        .step = kv_heads * dim,
                                        .first = sequence * context,
                                        .pages = page > 0 ? table + sequence * (context / page) : nullptr,
                                        .page = page};
    attend(row * dim, cache);
  }
}

void reference(const Problem& problem, std::span<std::vector<double>> t) {
  const std::int64_t dim = problem.at("head_dim"), context = problem.at("context");
  each_query(
      problem, t[1].data(), t[2].data(), problem.at("page") > 0 ? t[4].data() : nullptr, 0,
      problem.at("batch") * problem.at("heads"), [&](std::int64_t offset, const auto& cache) {
        attend_reference(t[0].data() + offset, cache, context, {dim, dim}, score_scale(dim), t[3].data() + offset);
      });
}

void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
  const auto* q = reinterpret_cast<const float*>(t[0]);
  const auto* k = reinterpret_cast<const float*>(t[1]);
  const auto* v = reinterpret_cast<const float*>(t[2]);
  auto* out = reinterpret_cast<float*>(t[3]);
  const auto* table = problem.at("page") > 0 ? reinterpret_cast<const std::int32_t*>(t[4]) : nullptr;
  const std::int64_t dim = problem.at("head_dim"), context = problem.at("context");
  const auto scale = static_cast<float>(score_scale(dim));
  team.each(problem.at("batch") * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
    each_query(problem, k, v, table, begin, end, [&](std::int64_t offset, const auto& cache) {
      attend_online(q + offset, cache, context, {dim, dim}, scale, out + offset);
    });
  });
}

Result<void> check_kernel(const cuda::Context& context, const Problem& problem) {
  LLMPROF_TRY(check_tensor_cores(context, problem));
  const std::int64_t dim = problem.at("head_dim"), page = problem.at("page");
  if (dim != 64 && dim != 128 && dim != 256) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("attention_decode: the kernel knows head_dim 64, 128 and 256, not {}", dim), ""};
  }
  if (page % kTokensPerTile != 0) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("attention_decode: the kernel knows pages of {} tokens and multiples, not {}",
                             kTokensPerTile, page),
                 ""};
  }
  const std::int64_t most = 0x7fffffff;  // of the numbers the kernel counts with
  if (problem.at("context") > most || problem.at("batch") > most / problem.at("heads")) {
    return Error{ErrorCode::kUnsupported, "attention_decode: more rows than the kernel counts: " + problem.sizes(), ""};
  }
  return {};
}

Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
  LLMPROF_TRY(check_kernel(context, problem));
  const std::int64_t dim = problem.at("head_dim"), heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
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
    return context.launch(kernel, launch,
                          {t[0], t[1], t[2], t[3], table, scratch->pointer(), counters, tokens, static_cast<int>(heads),
                           static_cast<int>(kv_heads), page, static_cast<int>(splits), scale});
  };
  return CudaCall{.enqueue = std::move(enqueue),
                  .method = fmt::format("kernel {}, context in {} part{}", kernel, splits, splits == 1 ? "" : "s"),
                  .workspace_bytes = bytes};
}

Result<CudaCall> prepare_cudnn(cuda::Context& context, const Problem& problem) {
  if (problem.at("page") > 0)
    return Error{ErrorCode::kUnsupported, "attention_decode: cuDNN is asked for caches in one piece only", ""};
  return cuda::cudnn_attention(context, {.type = problem.type,
                                         .batch = problem.at("batch"),
                                         .queries = 1,
                                         .keys = problem.at("context"),
                                         .heads = problem.at("heads"),
                                         .kv_heads = problem.at("kv_heads"),
                                         .head_dim = problem.at("head_dim"),
                                         .causal = false});
}

constexpr CudaImplementation kCuda[] = {{"cudnn", prepare_cudnn}, {"kernel", prepare_kernel}};

}  // namespace
}  // namespace attention_decode

const Operator kAttentionDecode{.name = "attention_decode",
                                .summary = "attention of one new token against a cache, grouped heads, pages",
                                .axes = attention_decode::kAxes,
                                .types = attention_decode::kTypes,
                                .check = attention_decode::check,
                                .tensors = attention_decode::tensors,
                                .work = attention_decode::work,
                                .small = attention_decode::small,
                                .reference = attention_decode::reference,
                                .cpu = attention_decode::cpu,
                                .cpu_method = "loop, online softmax",
                                .cuda = attention_decode::kCuda};

}  // namespace llmprof::bench
