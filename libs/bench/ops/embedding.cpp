// y[token] = table[id of the token]: the first operator of a language model.
// Bytes: one row of the table read per token and one written, and the token's id. A row that several tokens ask for is
// counted for each of them: how many rows are distinct is a property of a text, not of a shape. Caches may therefore
// beat the memory's bandwidth where the vocabulary is small.

#include "base/errors.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct Embedding : RowOperator {
  static constexpr std::optional<double> kTolerance = 0;

  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence"},
                                       {"vocab", "128256", 1, "rows of the table"},
                                       {"hidden", "4096", 1, "values per row"}};

  static Result<void> check(const Problem& problem) {
    constexpr std::int64_t kMostIds = 0x7fffffff;
    if (problem.at("vocab") > kMostIds) {
      return usage_error("embedding: vocab = {} is more than an int32 id tells apart", problem.at("vocab"));
    }
    LLMPROF_TRY(check_values(problem, {"vocab", "hidden"}));
    return check_values(problem, {"batch", "seq", "hidden"});
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t rows = row_count(problem), vocab = problem.at("vocab"), hidden = problem.at("hidden");
    return {{"ids", Role::kIn, Type::kInt32, rows, {.kind = Fill::Kind::kIndices, .limit = vocab}},
            {"table", Role::kIn, problem.type, vocab * hidden},
            {"y", Role::kOut, problem.type, rows * hidden}};
  }

  static model::KernelWork work(const Problem& problem) {
    const auto rows = static_cast<double>(row_count(problem));
    const double values = rows * axis(problem, "hidden");
    model::KernelWork work = model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)));
    work.read_bytes += rows * static_cast<double>(type_bytes(Type::kInt32));
    return work;
  }

  static Problem small(const Problem& problem) { return small_rows(problem).with_most("vocab", 100); }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const std::int64_t hidden = problem.at("hidden");
    for (std::int64_t row = 0; row < row_count(problem); ++row) {
      const auto id = static_cast<std::int64_t>(t[0][row]);
      std::copy_n(t[1].begin() + id * hidden, hidden, t[2].begin() + row * hidden);
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const auto* ids = reinterpret_cast<const std::int32_t*>(t[0]);
    const float* table = floats(t[1]);
    float* y = floats(t[2]);
    const std::int64_t hidden = problem.at("hidden");
    team.each(row_count(problem), kGrainValues / hidden + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) std::copy_n(table + ids[row] * hidden, hidden, y + row * hidden);
    });
  }

  // Rows are bytes to the kernel: the type does not matter, only how wide an access may be.
  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::int64_t row_bytes = problem.at("hidden") * type_bytes(problem.type);
    const std::int64_t unit_bytes = row_bytes % 16 == 0 ? 16 : type_bytes(problem.type);
    const std::string kernel = fmt::format("embedding_{}", unit_bytes);
    const std::int64_t row_units = row_bytes / unit_bytes, units = row_count(problem) * row_units;
    return kernel_call<3>(context, kernel, streaming_launch(units, 4 * 256), row_units, units);
  }
};

}  // namespace

const Operator kEmbedding = describe<Embedding>("embedding", "y = the rows of a table that tokens name");

}  // namespace llmprof::bench
