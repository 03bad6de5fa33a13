// Rotary embedding of queries and keys, in place: value i of a head's first half and value i of its second turn
// together by position · 10000^(-2i / head_dim) (the pairing of NeoX and Llama).

#include <cmath>
#include <limits>

#include "base/errors.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct Rope : RowOperator {
  static constexpr double kBase = 10'000;
  static constexpr std::int64_t kPositions = 128 * 1024;  // drawn from: a model's longest contexts
  static constexpr std::int64_t kMostHeadDim = 2048;      // a block has a thread per pair of a head
  static constexpr std::int64_t kMostHeads = 1 << 20;

  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence"},
                                       {"heads", "32", 1, "of queries"},
                                       {"kv_heads", "8", 1, "of keys"},
                                       {"head_dim", "128", 2, "values per head, even"}};

  static Result<void> check(const Problem& problem) {
    if (problem.at("head_dim") % 2 != 0) {
      return usage_error("rope: head_dim = {} is odd, values turn in pairs", problem.at("head_dim"));
    }
    LLMPROF_TRY(check_most(problem, "head_dim", kMostHeadDim));
    for (const char* heads : {"heads", "kv_heads"}) LLMPROF_TRY(check_most(problem, heads, kMostHeads));
    const double heads = axis(problem, "heads") + axis(problem, "kv_heads");
    return check_values(problem, axis(problem, "batch") * axis(problem, "seq") * heads * axis(problem, "head_dim"));
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t tokens = row_count(problem), head_dim = problem.at("head_dim");
    return {{"q", Role::kInOut, problem.type, tokens * problem.at("heads") * head_dim},
            {"k", Role::kInOut, problem.type, tokens * problem.at("kv_heads") * head_dim},
            {"positions", Role::kIn, Type::kInt32, tokens, {.kind = Fill::Kind::kIndices, .limit = kPositions}}};
  }

  static Problem small(const Problem& problem) {
    return small_rows(problem).with_most("heads", 64).with_most("kv_heads", 16);
  }

  struct Rotation {
    double cosine, sine;
  };

  static std::vector<Rotation> turns(std::int64_t half, double position) {
    std::vector<Rotation> result(static_cast<std::size_t>(half));
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = position * std::pow(kBase, -static_cast<double>(i) / static_cast<double>(half));
      result[static_cast<std::size_t>(i)] = {std::cos(angle), std::sin(angle)};
    }
    return result;
  }

  // All heads of one token that lie one after the other.
  template <class T>
  static void rotate(T* values, std::int64_t heads, std::int64_t half, const std::vector<Rotation>& turns) {
    for (std::int64_t head = 0; head < heads; ++head) {
      T *low = values + head * 2 * half, *high = low + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const auto cosine = static_cast<T>(turns[static_cast<std::size_t>(i)].cosine);
        const auto sine = static_cast<T>(turns[static_cast<std::size_t>(i)].sine);
        const T x = low[i], y = high[i];
        low[i] = x * cosine - y * sine;
        high[i] = y * cosine + x * sine;
      }
    }
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const std::int64_t half = problem.at("head_dim") / 2, heads = problem.at("heads"),
                       kv_heads = problem.at("kv_heads");
    for (std::int64_t token = 0; token < row_count(problem); ++token) {
      const std::vector<Rotation> turn = turns(half, t[2][static_cast<std::size_t>(token)]);
      rotate(t[0].data() + token * heads * 2 * half, heads, half, turn);
      rotate(t[1].data() + token * kv_heads * 2 * half, kv_heads, half, turn);
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t half = problem.at("head_dim") / 2, heads = problem.at("heads"),
                       kv_heads = problem.at("kv_heads");
    const auto* positions = reinterpret_cast<const std::int32_t*>(t[2]);
    each_row(team, row_count(problem), (heads + kv_heads) * 2 * half, [&](std::int64_t token) {
      const std::vector<Rotation> turn = turns(half, positions[token]);
      rotate(floats(t[0]) + token * heads * 2 * half, heads, half, turn);
      rotate(floats(t[1]) + token * kv_heads * 2 * half, kv_heads, half, turn);
    });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::string kernel = kernel_name("rope", problem.type);
    const std::int64_t tokens = row_count(problem), half = problem.at("head_dim") / 2,
                       pack = 16 / type_bytes(problem.type);
    const auto heads = static_cast<std::int32_t>(problem.at("heads"));
    const auto kv_heads = static_cast<std::int32_t>(problem.at("kv_heads"));
    if (tokens > std::numeric_limits<std::int32_t>::max()) {
      return unsupported_error("rope: {} tokens are more than a grid has blocks", tokens);
    }
    // A thread per piece of a half; a head each where few tokens leave threads idle, else two.
    const std::int64_t pieces = half % pack == 0 ? half / pack : half, all = heads + kv_heads;
    const bool few = tokens <= context.properties().multiprocessors;
    const std::int64_t rows =
        std::clamp<std::int64_t>(few ? all : (all + 1) / 2, 1, std::max<std::int64_t>(1, 512 / pieces));
    const cuda::Launch launch{.grid_x = tokens, .block_x = pieces, .block_y = rows, .shared_bytes = half * 8};
    const double step = std::pow(kBase, -1 / static_cast<double>(half));
    return kernel_call<3>(context, kernel, launch, heads, kv_heads, static_cast<std::int32_t>(half), step);
  }
};

}  // namespace

const Operator kRope =
    describe<Rope>("rope", "rotary embedding of queries and keys, in place, halves paired, base 10000");

}  // namespace llmprof::bench
