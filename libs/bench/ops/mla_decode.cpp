// Multi-head latent attention of one new token per sequence, absorbed: all heads look at the same cached rows of `rank`
// values and `rope` rotary ones; the result is a mean of the first `rank`. Each row is read once.

#include <fmt/format.h>

#include <memory>

#include "base/errors.h"
#include "bench/ops/attention.h"
#include "bench/ops/attention_loops.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct MlaDecode : RowOperator {
  static constexpr std::string_view kCpuMethod = "loop, online softmax";

  static constexpr AxisSpec kAxes[] = {{"batch", "1,16,64", 1, "sequences"},
                                       {"context", "4096", 1, "tokens in the cache, the new one included"},
                                       {"heads", "128", 1, "heads of queries"},
                                       {"rank", "512", 1, "values of the latent"},
                                       {"rope", "64", 0, "values of the rotary key behind the latent"},
                                       {"page", "0", 0, "tokens per page of the cache; 0: no pages"}};
  // As mla_decode.cu and mla_decode_hopper.cu have them.
  static constexpr std::int64_t kHeadsPerBlock = 64, kTokensPerTile = 64, kRank = 512, kRope = 64;
  // Queries, two stages of rows, weights, per head what the halves of a tile tell each other, and 1024 to align.
  static constexpr std::int64_t kSharedBytes = (kHeadsPerBlock + 2 * kTokensPerTile) * (kRank + kRope) * 2 +
                                               kHeadsPerBlock * kTokensPerTile * 2 + kHeadsPerBlock * 4 * 4 + 1024;

  static std::int64_t row_values(const Problem& problem) { return problem.at("rank") + problem.at("rope"); }

  static Result<void> check(const Problem& problem) {
    LLMPROF_TRY(check_values(problem, {"batch", "context", "rank"}));
    LLMPROF_TRY(check_values(problem, {"batch", "heads", "rank"}));
    if (problem.at("rope") > 0) {
      LLMPROF_TRY(check_values(problem, {"batch", "context", "rope"}));
      LLMPROF_TRY(check_values(problem, {"batch", "heads", "rope"}));
    }
    return check_pages(problem);
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t rows = problem.at("batch") * problem.at("context"),
                       heads = problem.at("batch") * problem.at("heads");
    // q: batch, heads, rank + rope. cache: batch, context, rank + rope. out: batch, heads, rank.
    std::vector<TensorSpec> specs{{"q", Role::kIn, problem.type, heads * row_values(problem)},
                                  {"cache", Role::kIn, problem.type, rows * row_values(problem)},
                                  {"out", Role::kOut, problem.type, heads * problem.at("rank")}};
    add_page_table(specs, problem);
    return specs;
  }

  static model::KernelWork work(const Problem& problem) {
    const model::Attention attention{.heads = problem.at("heads"),
                                     .kv_heads = problem.at("heads"),
                                     .qk_dim = row_values(problem),
                                     .v_dim = problem.at("rank"),
                                     .kv_rank = problem.at("rank"),
                                     .rope_dim = problem.at("rope")};
    return model::attention_work(attention, axis(problem, "batch"), 1, axis(problem, "context"),
                                 static_cast<double>(type_bytes(problem.type)));
  }

  static Problem small(const Problem& problem) {
    return problem.with_most("batch", 2)
        .with_most("heads", kHeadsPerBlock + problem.at("heads") % kHeadsPerBlock)
        .with("context", short_context(problem.at("context"), problem.at("page")));
  }

  // The rows [begin, end) of batch, heads.
  template <class Value, class Entry>
  static void attend_rows(const Problem& problem, const Value* q, const Value* rows, const Entry* table, Value* out,
                          std::int64_t begin, std::int64_t end) {
    const std::int64_t width = row_values(problem), rank = problem.at("rank");
    for (std::int64_t row = begin; row < end; ++row) {
      const auto cache = cache_of(problem, row / problem.at("heads"), rows, rows, table, width);
      attend(q + row * width, cache, problem.at("context"), {width, rank}, out + row * rank);
    }
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    attend_rows(problem, t[0].data(), t[1].data(), t.back().data(), t[2].data(), 0,
                problem.at("batch") * problem.at("heads"));
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const auto* table = reinterpret_cast<const std::int32_t*>(t.back());
    team.each(problem.at("batch") * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
      attend_rows<float>(problem, floats(t[0]), floats(t[1]), table, floats(t[2]), begin, end);
    });
  }

  static Result<void> check_kernel(const cuda::Context& context, const Problem& problem) {
    LLMPROF_TRY(check_decode_kernel(context, problem));
    const std::int64_t rank = problem.at("rank"), rope = problem.at("rope");
    if (rank != kRank || rope != kRope) {
      return unsupported_error("mla_decode: the kernel knows rank {} with rope {}, not {} with {}", kRank, kRope, rank,
                               rope);
    }
    const cuda::Properties& gpu = context.properties();
    if (kSharedBytes <= gpu.shared_bytes_per_block) return {};
    return unsupported_error("mla_decode: the kernel needs {} bytes of shared memory per block, {} has {}",
                             kSharedBytes, gpu.name, gpu.shared_bytes_per_block);
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem, const std::string& kernel,
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

  static Result<CudaCall> prepare_hopper(cuda::Context& context, const Problem& problem) {
    if (context.properties().capability() != 90) {
      return Error{ErrorCode::kUnsupported, "mla_decode: wgmma is of compute capability 9.0", ""};
    }
    return prepare(context, problem, kernel_name("mla_decode_hopper", problem.type), 384);
  }

  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
    return prepare(context, problem, kernel_name("mla_decode", problem.type), 256);
  }

  static constexpr CudaImplementation kCuda[] = {{"wgmma", prepare_hopper}, {"kernel", prepare_kernel}};
};

}  // namespace

const Operator kMlaDecode =
    describe<MlaDecode>("mla_decode", "latent attention of one new token, absorbed, as DeepSeek V3 decodes");

}  // namespace llmprof::bench
