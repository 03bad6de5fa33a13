// The keys and values of new tokens, the last `seq` of each sequence's context, go to their places in a cache: one
// piece per sequence, or pages that lie anywhere.

#include <cstring>
#include <limits>

#include "base/errors.h"
#include "bench/ops/attention.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct KvWrite : RowOperator {
  static constexpr std::string_view kCpuMethod = "memcpy";
  static constexpr std::optional<double> kTolerance = 0;

  static constexpr AxisSpec kAxes[] = {{"batch", "1,64", 1, "sequences"},
                                       {"seq", "1,2048", 1, "new tokens per sequence"},
                                       {"kv_heads", "8", 1, "heads of the cache"},
                                       {"head_dim", "128", 1, "values per head"},
                                       {"context", "4096", 1, "tokens per sequence that the cache has room for"},
                                       {"page", "16", 0, "tokens per page of the cache; 0: no pages"}};

  static Result<void> check(const Problem& problem) {
    const std::int64_t seq = problem.at("seq"), context = problem.at("context");
    if (seq > context) return usage_error("kv_write: seq = {} does not fit into context = {}", seq, context);
    LLMPROF_TRY(check_pages(problem));
    const double token = axis(problem, "kv_heads") * axis(problem, "head_dim");
    constexpr double kMost = 0x1p30;
    if (token > kMost || context > static_cast<std::int64_t>(kMost)) {
      return usage_error("kv_write: {} values per token, {} tokens: more than 2^30", token, context);
    }
    return check_values(problem, axis(problem, "batch") * axis(problem, "context") * token);
  }

  static std::int64_t token_values(const Problem& problem) { return problem.at("kv_heads") * problem.at("head_dim"); }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t fresh = row_count(problem) * token_values(problem);
    const std::int64_t cached = problem.at("batch") * problem.at("context") * token_values(problem);
    std::vector<TensorSpec> specs{{"keys", Role::kIn, problem.type, fresh},
                                  {"values", Role::kIn, problem.type, fresh},
                                  {"key_cache", Role::kInOut, problem.type, cached},
                                  {"value_cache", Role::kInOut, problem.type, cached}};
    add_page_table(specs, problem);
    return specs;
  }

  // Pages of a sequence that new tokens go to.
  static std::int64_t pages_touched(const Problem& problem) {
    const std::int64_t page = problem.at("page"), context = problem.at("context");
    return page == 0 ? 0 : context / page - (context - problem.at("seq")) / page;
  }

  static model::KernelWork work(const Problem& problem) {
    const double values = 2 * static_cast<double>(row_count(problem) * token_values(problem));
    model::KernelWork work = model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)));
    work.read_bytes += axis(problem, "batch") * static_cast<double>(pages_touched(problem) * type_bytes(Type::kInt32));
    return work;
  }

  // A context of a few short pages that still has room for what is not written.
  static Problem small(const Problem& problem) {
    const Problem few = small_rows(problem);
    const std::int64_t page = std::min<std::int64_t>(problem.at("page"), 16), step = std::max<std::int64_t>(1, page);
    const std::int64_t room = (few.at("seq") + 2 + step - 1) / step * step;
    return few.with("page", page).with("context", std::min(problem.at("context") / step * step, room));
  }

  // Where the keys of a new token begin, in tokens of the cache.
  template <class Page>
  static std::int64_t slot(const Problem& problem, const Page* table, std::int64_t token) {
    const std::int64_t seq = problem.at("seq"), context = problem.at("context"), page = problem.at("page");
    const std::int64_t sequence = token / seq, position = context - seq + token % seq;
    if (page == 0) return sequence * context + position;
    return static_cast<std::int64_t>(table[sequence * (context / page) + position / page]) * page + position % page;
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const std::int64_t width = token_values(problem);
    const double* table = problem.at("page") > 0 ? t[4].data() : nullptr;
    for (std::int64_t token = 0; token < row_count(problem); ++token) {
      const std::int64_t to = slot(problem, table, token) * width;
      for (int i = 0; i < 2; ++i) std::copy_n(t[i].begin() + token * width, width, t[i + 2].begin() + to);
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t width = token_values(problem), bytes = width * type_bytes(problem.type);
    const auto* table = problem.at("page") > 0 ? reinterpret_cast<const std::int32_t*>(t[4]) : nullptr;
    each_row(team, row_count(problem), 2 * width, [&](std::int64_t token) {
      const std::int64_t to = slot(problem, table, token) * bytes;
      for (int i = 0; i < 2; ++i) {
        std::memcpy(t[i + 2] + to, t[i] + token * bytes, static_cast<std::size_t>(bytes));
      }
    });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::int64_t bytes = token_values(problem) * type_bytes(problem.type), tokens = row_count(problem);
    if (tokens > std::numeric_limits<std::int32_t>::max()) {
      return unsupported_error("kv_write: {} tokens are more than 2^31", tokens);
    }
    const std::int64_t word = bytes % 16 == 0 ? 16 : (bytes % 4 == 0 ? 4 : 2);
    const std::string kernel = fmt::format("kv_write_{}", word);
    const auto words = static_cast<std::int32_t>(bytes / word), count = static_cast<std::int32_t>(tokens);
    const auto seq = static_cast<std::int32_t>(problem.at("seq")),
               room = static_cast<std::int32_t>(problem.at("context"));
    const auto page = static_cast<std::int32_t>(problem.at("page"));
    const std::int64_t threads = std::min<std::int64_t>((words + 31) / 32 * 32, 256), rows = 256 / threads;
    const cuda::Launch launch{.grid_x = (tokens + rows - 1) / rows, .block_x = threads, .block_y = rows};
    return CudaCall{
        .enqueue =
            [=, &context](std::span<const cuda::Pointer> t, cuda::Stream) {
              const cuda::Pointer table = page > 0 ? t[4] : 0;
              return context.launch(kernel, launch, {t[0], t[1], t[2], t[3], table, seq, room, page, words, count});
            },
        .method = "kernel " + kernel};
  }
};

}  // namespace

const Operator kKvWrite =
    describe<KvWrite>("kv_write", "keys and values of new tokens into a cache, in one piece or in pages");

}  // namespace llmprof::bench
