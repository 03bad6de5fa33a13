// The k largest logits of every row, the largest first, with their positions; of equal ones the lower position. k = 1
// is greedy decoding. Logits are not NaN. Selecting computes nothing, so there are bytes only: every logit read once, k
// values and k indices written per row.

#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct Sampling : RowOperator {
  static constexpr std::string_view kCpuMethod = "partial sort of parts, then of what they kept";
  static constexpr std::optional<double> kTolerance = 0;

  static constexpr AxisSpec kAxes[] = {{"batch", "1,64", 1, "rows of logits"},
                                       {"vocab", "128256", 1, "logits per row"},
                                       {"k", "1,50", 1, "how many of the largest; 1 is argmax"}};
  static constexpr std::int64_t kMostSelected = 1024;  // by the kernels: as many as one block sorts
  static constexpr std::int64_t kMostPerBlock = 6144;  // logits whose keys lie in one block's shared memory, of 48 KiB
  static constexpr std::int64_t kThreads = 512;

  static Result<void> check(const Problem& problem) {
    constexpr std::int64_t kMostIndices = 0x7fffffff;
    if (problem.at("k") > problem.at("vocab")) {
      return Error{ErrorCode::kUsage,
                   fmt::format("sampling: k = {} of a vocabulary of {}", problem.at("k"), problem.at("vocab")),
                   "k is at most vocab"};
    }
    if (problem.at("vocab") > kMostIndices) {
      return usage_error("sampling: vocab = {} is more than an int32 index tells apart", problem.at("vocab"));
    }
    return check_values(problem, {"batch", "vocab"});
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t batch = problem.at("batch"), selected = batch * problem.at("k");
    return {{"logits", Role::kIn, problem.type, batch * problem.at("vocab")},
            {"values", Role::kOut, problem.type, selected},
            {"indices", Role::kOut, Type::kInt32, selected}};
  }

  // Rows stay as long as they are: they decide how many blocks share one.
  static Problem small(const Problem& problem) { return problem.with_most("batch", 3); }

  // Whether the logit at `a` comes before the one at `b`: a total order.
  template <class T>
  static auto larger_first(const T* logits) {
    return [logits](std::int32_t a, std::int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const std::int64_t vocab = problem.at("vocab"), k = problem.at("k");
    std::vector<std::int32_t> order(static_cast<std::size_t>(vocab));
    for (std::int64_t row = 0; row < problem.at("batch"); ++row) {
      const double* logits = t[0].data() + row * vocab;
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), larger_first(logits));
      for (std::int64_t i = 0; i < k; ++i) {
        t[1][row * k + i] = logits[order[i]];
        t[2][row * k + i] = order[i];
      }
    }
  }

  // The best of positions begin … end, in order, into `best` (as many as there are, k at most).
  static void select(const float* logits, std::int64_t begin, std::int64_t end, std::int64_t k,
                     std::vector<std::int32_t>& best) {
    best.resize(static_cast<std::size_t>(std::min(k, end - begin)));
    if (k == 1) {
      best[0] = static_cast<std::int32_t>(std::max_element(logits + begin, logits + end) - logits);
      return;
    }
    std::vector<std::int32_t> all(static_cast<std::size_t>(end - begin));
    std::iota(all.begin(), all.end(), static_cast<std::int32_t>(begin));
    std::partial_sort_copy(all.begin(), all.end(), best.begin(), best.end(), larger_first(logits));
  }

  // Every thread takes parts of rows; the parts' bests are then merged row by row.
  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t batch = problem.at("batch"), vocab = problem.at("vocab"), k = problem.at("k");
    const float* logits = floats(t[0]);
    float* values = floats(t[1]);
    auto* indices = reinterpret_cast<std::int32_t*>(t[2]);
    const std::int64_t part = std::max(kGrainValues, 2 * k), parts = (vocab + part - 1) / part;
    std::vector<std::vector<std::int32_t>> best(static_cast<std::size_t>(batch * parts));
    team.each(batch * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t from = i % parts * part;
        select(logits + i / parts * vocab, from, std::min(vocab, from + part), k, best[i]);
      }
    });
    team.each(batch, 16, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int32_t> all;
      for (std::int64_t row = begin; row < end; ++row) {
        all.clear();
        for (std::int64_t i = row * parts; i < (row + 1) * parts; ++i)
          all.insert(all.end(), best[i].begin(), best[i].end());
        const float* of_row = logits + row * vocab;
        std::partial_sort(all.begin(), all.begin() + k, all.end(), larger_first(of_row));
        for (std::int64_t i = 0; i < k; ++i) {
          values[row * k + i] = of_row[all[i]];
          indices[row * k + i] = all[i];
        }
      }
    });
  }

  // How many blocks share a row, and how many logits each takes: enough blocks to fill the device, parts long enough
  // that what they keep is little of what they read, short enough for shared memory. A multiple of 8 keeps accesses
  // aligned.
  struct Split {
    std::int64_t parts = 1, part = 0;
  };
  static Split split(const Problem& problem, std::int64_t multiprocessors) {
    const std::int64_t vocab = problem.at("vocab"), k = problem.at("k"), batch = problem.at("batch");
    const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const std::int64_t wanted = std::max<std::int64_t>(1, 2 * multiprocessors / batch);
    const std::int64_t least = k == 1 ? 4096 : std::clamp<std::int64_t>(4 * k, 4096, kMostPerBlock);
    const std::int64_t most = k == 1 ? 65536 : kMostPerBlock;  // argmax stores none of them
    const std::int64_t part = std::clamp(up(vocab, wanted), least, most);
    const std::int64_t aligned = up(part, 8) * 8;
    return {up(vocab, aligned), aligned};
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::int64_t batch = problem.at("batch"), vocab = problem.at("vocab"), k = problem.at("k");
    if (k > kMostSelected) return unsupported_error("sampling: the kernel selects up to {}, not {}", kMostSelected, k);
    const Split cut = split(problem, context.properties().multiprocessors);
    // What the parts keep (8 bytes each), then a counter per row that ends as it begins: at zero.
    const std::int64_t kept_bytes = batch * cut.parts * k * 8, bytes = kept_bytes + batch * 4;
    LLMPROF_LET(cuda::Buffer buffer, context.allocate(bytes));
    LLMPROF_TRY(context.set_bytes(buffer.pointer(), 0, bytes));
    const auto workspace = std::make_shared<cuda::Buffer>(std::move(buffer));
    const std::string kernel = kernel_name(k == 1 ? "argmax" : "top_k", problem.type);
    const cuda::Launch launch{
        .grid_x = batch * cut.parts, .block_x = kThreads, .shared_bytes = k == 1 ? 0 : cut.part * 4};
    const auto enqueue = [&context, kernel, launch, workspace, kept_bytes, vocab, k, cut](
                             std::span<const cuda::Pointer> t, cuda::Stream) {
      const cuda::Pointer kept = workspace->pointer(), counters = kept + static_cast<cuda::Pointer>(kept_bytes);
      return context.launch(kernel, launch, {t[0], t[1], t[2], kept, counters, vocab, cut.part, cut.parts, k});
    };
    return CudaCall{.enqueue = enqueue,
                    .method = fmt::format("kernel {}, {} blocks per row", kernel, cut.parts),
                    .workspace_bytes = bytes};
  }
};

}  // namespace

const Operator kSampling = describe<Sampling>("sampling", "the k largest logits and their indices; argmax when k = 1");

}  // namespace llmprof::bench
