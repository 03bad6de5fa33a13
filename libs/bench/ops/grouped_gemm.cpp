// Groups of rows, each times a matrix of its own, in one call: the products of a layer of experts once its tokens are
// sorted. The groups are uneven, as routed ones are, and the same every time.

#include <memory>

#include "bench/check.h"
#include "bench/cpu_blas.h"
#include "bench/cuda/blas.h"
#include "bench/operator.h"
#include "bench/ops/grouped.h"
#include "bench/ops/product.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace grouped_gemm {
namespace {

constexpr AxisSpec kAxes[] = {{"groups", "8", 1, "groups: experts"},
                              {"m", "64,1024,8192", 1, "rows of all groups together"},
                              {"n", "4096", 1, "outputs of a row"},
                              {"k", "4096", 1, "inputs of a row"}};
constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32, Type::kTf32, Type::kFloat64};
constexpr std::int64_t kMostGroups = 65536;

Result<void> check(const Problem& p) {
  if (p.at("groups") > kMostGroups) {
    return Error{ErrorCode::kUsage,
                 fmt::format("grouped_gemm: groups = {} is more than {}", p.at("groups"), kMostGroups), ""};
  }
  LLMPROF_TRY(check_values(p, axis(p, "groups") * axis(p, "n") * axis(p, "k")));
  return check_values(p, axis(p, "m") * std::max(axis(p, "n"), axis(p, "k")));
}

// Shares of 1 6 4 2 7 5 3, and again: the largest group of seven has seven times the rows of the smallest.
std::vector<std::int64_t> group_rows(const Problem& p) {
  const std::int64_t groups = p.at("groups"), m = p.at("m");
  std::int64_t all = 0;
  for (std::int64_t group = 0; group < groups; ++group) all += 1 + group * 5 % 7;
  const auto rows_before = [&](std::int64_t shares) { return m / all * shares + m % all * shares / all; };
  std::vector<std::int64_t> rows;
  std::int64_t shares = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t next = shares + 1 + group * 5 % 7;
    rows.push_back(rows_before(next) - rows_before(shares));
    shares = next;
  }
  return rows;
}

std::vector<TensorSpec> tensors(const Problem& p) {
  const std::int64_t m = p.at("m"), n = p.at("n"), k = p.at("k");
  return {{.name = "x", .type = p.type, .elements = m * k},
          {.name = "w", .type = p.type, .elements = p.at("groups") * n * k},
          {.name = "y", .role = Role::kOut, .type = product_type(p.type), .elements = m * n}};
}

// Only the matrices of groups that have rows are read.
model::KernelWork work(const Problem& p) {
  const auto bytes = static_cast<double>(type_bytes(p.type));
  model::KernelWork sum;
  for (const std::int64_t rows : group_rows(p)) {
    if (rows == 0) continue;
    const model::KernelWork one = model::product_work({.m = static_cast<double>(rows),
                                                       .n = axis(p, "n"),
                                                       .k = axis(p, "k"),
                                                       .a_bytes = bytes,
                                                       .b_bytes = bytes,
                                                       .c_bytes = bytes});
    sum.flops += one.flops;
    sum.read_bytes += one.read_bytes;
    sum.write_bytes += one.write_bytes;
  }
  return sum;
}

Problem small(const Problem& p) {
  const std::int64_t groups = std::min<std::int64_t>(p.at("groups"), 9);
  const std::int64_t per_group = std::min<std::int64_t>(p.at("m") / p.at("groups") + 1, 80);
  return p.with("groups", groups)
      .with("m", std::min(p.at("m"), groups * per_group + 3))
      .with("n", shortened(p.at("n"), 128))
      .with("k", shortened(p.at("k"), 128));
}

// One group after the other: f(rows, x, w, y) with where the group's own begin, in values.
template <class F>
void each_group(const Problem& p, const F& f) {
  const std::int64_t n = p.at("n"), k = p.at("k");
  std::int64_t row = 0, group = 0;
  for (const std::int64_t rows : group_rows(p)) {
    if (rows > 0) f(rows, row * k, group * n * k, row * n);
    row += rows;
    ++group;
  }
}

void reference(const Problem& p, std::span<std::vector<double>> t) {
  const std::int64_t n = p.at("n"), k = p.at("k");
  each_group(p, [&](std::int64_t rows, std::int64_t x, std::int64_t w, std::int64_t y) {
    for (std::int64_t i = 0; i < rows * n; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) sum += t[0][x + i / n * k + j] * t[1][w + i % n * k + j];
      t[2][y + i] = sum;
    }
  });
}

void cpu(const Problem& p, std::span<std::byte* const> t, const Team& team) {
  const std::int64_t bytes = type_bytes(p.type);
  each_group(p, [&](std::int64_t rows, std::int64_t x, std::int64_t w, std::int64_t y) {
    multiply({.m = rows, .n = p.at("n"), .k = p.at("k"), .type = p.type}, t[0] + x * bytes, t[1] + w * bytes,
             t[2] + y * bytes, team);
  });
}

Result<CudaCall> prepare_library(cuda::Context& context, const Problem& p) {
  LLMPROF_LET(cuda::Blas* const blas, context.blas());
  LLMPROF_LET(const cuda::PreparedMatmul prepared,
              blas->prepare_grouped({.rows = group_rows(p), .n = p.at("n"), .k = p.at("k"), .type = p.type}));
  return CudaCall{
      .enqueue = [enqueue = prepared.enqueue](std::span<const cuda::Pointer> t,
                                              cuda::Stream stream) { return enqueue(t[0], t[1], t[2], stream); },
      .method = prepared.method,
      .workspace_bytes = prepared.workspace_bytes};
}

struct Table {
  cuda::Buffer tiles, count;
};

Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& p) {
  LLMPROF_LET(const GroupedKernel kernel,
              choose_grouped_kernel(context, p.type, p.at("m"), p.at("groups"), p.at("n"), p.at("k")));
  const std::vector<GroupTile> tiles = tiles_of(group_rows(p), kernel.tile_rows);
  const auto count = static_cast<std::int32_t>(tiles.size());
  const auto bytes = static_cast<std::int64_t>(tiles.size() * sizeof(GroupTile));
  auto table = std::make_shared<Table>();
  LLMPROF_LET(table->tiles, context.allocate(bytes));
  LLMPROF_LET(table->count, context.allocate(sizeof count));
  LLMPROF_TRY(context.copy_in(table->tiles.pointer(), tiles.data(), bytes));
  LLMPROF_TRY(context.copy_in(table->count.pointer(), &count, sizeof count));
  return CudaCall{.enqueue =
                      [&context, kernel, table](std::span<const cuda::Pointer> t, cuda::Stream) {
                        return kernel.enqueue(context, t[0], t[1], t[2], table->tiles.pointer(), table->count.pointer(),
                                              0);
                      },
                  .method = "kernel " + kernel.name,
                  .workspace_bytes = bytes};
}

// One product of cuBLASLt after the other, each with its fastest algorithm.
Result<CudaCall> prepare_loop(cuda::Context& context, const Problem& p) {
  struct One {
    cuda::PreparedMatmul product;
    cuda::Pointer x, w, y;  // bytes from the beginning of each
  };
  LLMPROF_LET(cuda::Blas* const blas, context.blas());
  const auto bytes = static_cast<cuda::Pointer>(type_bytes(p.type));
  std::vector<One> products;
  Result<void> failed;
  std::int64_t workspace = 0;
  each_group(p, [&](std::int64_t rows, std::int64_t x, std::int64_t w, std::int64_t y) {
    if (!failed) return;
    const auto product = blas->prepare(cuda::Matmul::dense(p.type, rows, p.at("n"), p.at("k")));
    if (!product) {
      failed = product.error();
      return;
    }
    workspace = std::max(workspace, product->workspace_bytes);
    const auto offset = [&](std::int64_t values) { return static_cast<cuda::Pointer>(values) * bytes; };
    products.push_back({*product, offset(x), offset(w), offset(y)});
  });
  LLMPROF_TRY(failed);
  return CudaCall{.enqueue = [products](std::span<const cuda::Pointer> t, cuda::Stream stream) -> Result<void> {
                    for (const One& one : products) {
                      LLMPROF_TRY(one.product.enqueue(t[0] + one.x, t[1] + one.w, t[2] + one.y, stream));
                    }
                    return {};
                  },
                  .method = fmt::format("{}, {} products one after the other", blas->version(), products.size()),
                  .workspace_bytes = workspace};
}

// Of what follows, the one that was measured fastest on an H200 for groups of this size (8 and 128 of them): products
// one after the other fill the GPU from 512 rows each on (681 TFLOP/s at 1024 rows, cuBLAS's grouped call 251, the
// kernel 401), the kernel is ahead from 64 rows on, and for few (4.1 TB/s at 2 to 4 rows), the grouped call between
// (4.0 TB/s at 32).
Result<CudaCall> prepare_fastest(cuda::Context& context, const Problem& p) {
  using Prepare = Result<CudaCall> (*)(cuda::Context&, const Problem&);
  const std::int64_t mean_rows = p.at("m") / p.at("groups");
  std::vector<Prepare> order{prepare_kernel, prepare_library, prepare_loop};
  if (mean_rows >= 16 && mean_rows < 64) order = {prepare_library, prepare_kernel, prepare_loop};
  if (mean_rows >= 512) order = {prepare_loop, prepare_kernel, prepare_library};
  Result<CudaCall> call = order.front()(context, p);
  for (std::size_t i = 1; i < order.size() && !call && !context.broken(); ++i) call = order[i](context, p);
  return call;
}

constexpr CudaImplementation kCuda[] = {
    {"fastest", prepare_fastest}, {"cublas", prepare_library}, {"kernel", prepare_kernel}, {"cublaslt", prepare_loop}};

}  // namespace
}  // namespace grouped_gemm

const Operator kGroupedGemm{.name = "grouped_gemm",
                            .summary = "uneven groups of rows, each times a matrix of its own",
                            .axes = grouped_gemm::kAxes,
                            .types = grouped_gemm::kTypes,
                            .check = grouped_gemm::check,
                            .tensors = grouped_gemm::tensors,
                            .work = grouped_gemm::work,
                            .small = grouped_gemm::small,
                            .reference = grouped_gemm::reference,
                            .cpu = grouped_gemm::cpu,
                            .cpu_method_of = product_cpu_method,
                            .cpu_types = kProductCpuTypes,
                            .cuda = grouped_gemm::kCuda};

}  // namespace llmprof::bench
