// Multi-head latent attention of one new token per sequence, absorbed: all heads look at the same cached rows of `rank`
// values and `rope` rotary ones; the result is a mean of the first `rank`. Each row is read once.

#include <fmt/format.h>

#include <memory>

#include "bench/operator.h"
#include "bench/ops/attention.h"
#include "bench/ops/attention_loops.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace mla_decode {
namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1,16,64", 1, "sequences"},
                              {"context", "4096", 1, "tokens in the cache, the new one included"},
                              {"heads", "128", 1, "heads of queries"},
                              {"rank", "512", 1, "values of the latent"},
                              {"rope", "64", 0, "values of the rotary key behind the latent"},
                              {"page", "0", 0, "tokens per page of the cache; 0: no pages"}};
constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};
// As mla_decode.cu and mla_decode_hopper.cu have them.
constexpr std::int64_t kHeadsPerBlock = 64, kTokensPerTile = 64, kRank = 512, kRope = 64;
// Queries, two stages of rows, weights, per head what the halves of a tile tell each other, and 1024 to align.
constexpr std::int64_t kSharedBytes = (kHeadsPerBlock + 2 * kTokensPerTile) * (kRank + kRope) * 2 +
                                      kHeadsPerBlock * kTokensPerTile * 2 + kHeadsPerBlock * 4 * 4 + 1024;

std::int64_t row_values(const Problem& problem) { return problem.at("rank") + problem.at("rope"); }

Result<void> check(const Problem& problem) {
  LLMPROF_TRY(check_values(problem, {"batch", "context", "rank"}));
  LLMPROF_TRY(check_values(problem, {"batch", "heads", "rank"}));
  if (problem.at("rope") > 0) {
    LLMPROF_TRY(check_values(problem, {"batch", "context", "rope"}));
    LLMPROF_TRY(check_values(problem, {"batch", "heads", "rope"}));
  }
  return check_pages(problem);
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t batch = problem.at("batch"), context = problem.at("context"), page = problem.at("page");
  const std::int64_t heads = batch * problem.at("heads");
  // q: batch, heads, rank + rope. cache: batch, context, rank + rope. out: batch, heads, rank.
  std::vector<TensorSpec> specs{
      {.name = "q", .type = problem.type, .elements = heads * row_values(problem)},
      {.name = "cache", .type = problem.type, .elements = batch * context * row_values(problem)},
      {.name = "out", .role = Role::kOut, .type = problem.type, .elements = heads * problem.at("rank")}};
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
                                   .kv_heads = problem.at("heads"),
                                   .qk_dim = row_values(problem),
                                   .v_dim = problem.at("rank"),
                                   .kv_rank = problem.at("rank"),
                                   .rope_dim = problem.at("rope")};
  return model::attention_work(attention, static_cast<double>(problem.at("batch")), 1,
                               static_cast<double>(problem.at("context")),
                               static_cast<double>(type_bytes(problem.type)));
}

Problem small(const Problem& problem) {
  return problem.with("batch", std::min<std::int64_t>(problem.at("batch"), 2))
      .with("heads", std::min<std::int64_t>(problem.at("heads"), kHeadsPerBlock + problem.at("heads") % kHeadsPerBlock))
      .with("context", short_context(problem.at("context"), problem.at("page")));
}

// Calls attend(row of q and out, cache) for the rows [begin, end) of batch, heads.
template <class Value, class Entry, class Attend>
void each_query(const Problem& problem, const Value* rows, const Entry* table, std::int64_t begin, std::int64_t end,
                const Attend& attend) {
  const std::int64_t context = problem.at("context"), heads = problem.at("heads"), page = problem.at("page");
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t sequence = row / heads;
    attend(row, CacheRows<Value, Entry>{.keys = rows,
                                        .values = rows,
                                        .step = row_values(problem),
                                        .first = sequence * context,
                                        .pages = page > 0 ? table + sequence * (context / page) : nullptr,
                                        .page = page});
  }
}

void reference(const Problem& problem, std::span<std::vector<double>> t) {
  const std::int64_t width = row_values(problem), rank = problem.at("rank"), context = problem.at("context");
  each_query(problem, t[1].data(), problem.at("page") > 0 ? t[3].data() : nullptr, 0,
             problem.at("batch") * problem.at("heads"), [&](std::int64_t row, const auto& cache) {
               attend_reference(t[0].data() + row * width, cache, context, {width, rank}, score_scale(width),
                                t[2].data() + row * rank);
             });
}

void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
  const auto* q = reinterpret_cast<const float*>(t[0]);
  const auto* rows = reinterpret_cast<const float*>(t[1]);
  auto* out = reinterpret_cast<float*>(t[2]);
  const auto* table = problem.at("page") > 0 ? reinterpret_cast<const std::int32_t*>(t[3]) : nullptr;
  const std::int64_t width = row_values(problem), rank = problem.at("rank"), context = problem.at("context");
  const auto scale = static_cast<float>(score_scale(width));
  team.each(problem.at("batch") * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
    each_query(problem, rows, table, begin, end, [&](std::int64_t row, const auto& cache) {
      attend_online(q + row * width, cache, context, {width, rank}, scale, out + row * rank);
    });
  });
}

Result<void> check_kernel(const cuda::Context& context, const Problem& problem) {
  LLMPROF_TRY(check_tensor_cores(context, problem));
  const std::int64_t rank = problem.at("rank"), rope = problem.at("rope"), page = problem.at("page");
  if (rank != kRank || rope != kRope) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("mla_decode: the kernel knows rank {} with rope {}, not {} with {}", kRank, kRope, rank, rope), ""};
  }
  if (page % 16 != 0) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("mla_decode: the kernel knows pages of 16 tokens and multiples, not {}", page), ""};
  }
  const cuda::Properties& gpu = context.properties();
  if (kSharedBytes > gpu.shared_bytes_per_block) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("mla_decode: the kernel needs {} bytes of shared memory per block, {} has {}",
                             kSharedBytes, gpu.name, gpu.shared_bytes_per_block),
                 ""};
  }
  const std::int64_t most = 0x7fffffff;  // of the numbers the kernel counts with
  if (problem.at("context") > most || problem.at("batch") > most / problem.at("heads")) {
    return Error{ErrorCode::kUnsupported, "mla_decode: more rows than the kernel counts: " + problem.sizes(), ""};
  }
  return {};
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem, const std::string& kernel,
                         std::int64_t threads) {
  LLMPROF_TRY(check_kernel(context, problem));
  const std::int64_t heads = problem.at("heads"), width = row_values(problem);
  const std::int64_t pairs = problem.at("batch") * ((heads + kHeadsPerBlock - 1) / kHeadsPerBlock);
  const std::int64_t tiles = (problem.at("context") + kTokensPerTile - 1) / kTokensPerTile;
  // A part is written and read as float32, almost twice what a tile of rows is.
  const std::int64_t multiprocessors = context.properties().multiprocessors;
  const double merge_tiles = 3 * static_cast<double>(pairs) / static_cast<double>(multiprocessors);
  const std::int64_t splits = choose_splits(pairs, tiles, {.multiprocessors = multiprocessors, .merge = merge_tiles});
  const std::int64_t bytes = splits == 1 ? 0 : pairs * splits * kHeadsPerBlock * (kRank + 2) * 4;
  LLMPROF_LET(cuda::Buffer buffer, context.allocate(std::max<std::int64_t>(bytes, 1)));
  const auto scratch = std::make_shared<cuda::Buffer>(std::move(buffer));
  const cuda::Launch launch{.grid_x = pairs * splits, .block_x = threads, .shared_bytes = kSharedBytes};
  const cuda::Launch merge{.grid_x = problem.at("batch") * heads, .block_x = kRank / 4};
  const auto scale = static_cast<float>(score_scale(width));
  auto enqueue = [=, &context, tokens = static_cast<int>(problem.at("context")),
                  page = static_cast<int>(problem.at("page")),
                  merge_kernel = kernel_name("mla_decode_merge", problem.type)](std::span<const cuda::Pointer> t,
                                                                                cuda::Stream) -> Result<void> {
    const cuda::Pointer table = page > 0 ? t[3] : 0;
    LLMPROF_TRY(context.launch(kernel, launch,
                               {t[0], t[1], t[2], table, scratch->pointer(), tokens, static_cast<int>(heads), page,
                                static_cast<int>(splits), scale}));
    if (splits == 1) return {};
    return context.launch(merge_kernel, merge,
                          {scratch->pointer(), t[2], static_cast<int>(heads), static_cast<int>(splits)});
  };
  return CudaCall{.enqueue = std::move(enqueue),
                  .method = fmt::format("kernel {}, context in {} part{}", kernel, splits, splits == 1 ? "" : "s"),
                  .workspace_bytes = bytes};
}

Result<CudaCall> prepare_hopper(cuda::Context& context, const Problem& problem) {
  if (context.properties().capability() != 90) {
    return Error{ErrorCode::kUnsupported, "mla_decode: wgmma is of compute capability 9.0", ""};
  }
  return prepare(context, problem, kernel_name("mla_decode_hopper", problem.type), 384);
}

Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
  return prepare(context, problem, kernel_name("mla_decode", problem.type), 256);
}

constexpr CudaImplementation kCuda[] = {{"wgmma", prepare_hopper}, {"kernel", prepare_kernel}};

}  // namespace
}  // namespace mla_decode

const Operator kMlaDecode{.name = "mla_decode",
                          .summary = "latent attention of one new token, absorbed, as DeepSeek V3 decodes",
                          .axes = mla_decode::kAxes,
                          .types = mla_decode::kTypes,
                          .check = mla_decode::check,
                          .tensors = mla_decode::tensors,
                          .work = mla_decode::work,
                          .small = mla_decode::small,
                          .reference = mla_decode::reference,
                          .cpu = mla_decode::cpu,
                          .cpu_method = "loop, online softmax",
                          .cuda = mla_decode::kCuda};

}  // namespace llmprof::bench
