// Groups of rows, each times a matrix of its own, in one call: the products of a layer of experts once its tokens are
// sorted. The groups are uneven, as routed ones are, and the same every time.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/errors.h"
#include "bench/cpu/blas.h"
#include "bench/cuda/blas.h"
#include "bench/ops/grouped.h"
#include "bench/ops/product.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

// As in grouped_gemm.cu and grouped_gemm_hopper.cu.
constexpr std::int64_t kBand = 8, kRowBytes = 128;
struct Variant {
  std::string_view name;
  std::int64_t rows, columns, stages, threads;
  std::int64_t from_mean_rows;  // rows per group from which it is the fastest
  std::int64_t from_blocks;     // per multiprocessor, under which the next is asked
  bool hopper;                  // needs compute capability 9.0, exactly
};
constexpr Variant kVariants[] = {{"grouped_gemm_hopper_128", 128, 256, 4, 256, 65, 0, true},
                                 {"grouped_gemm_hopper_64", 64, 128, 4, 256, 17, 0, true},
                                 {"grouped_gemm_128", 128, 128, 4, 256, 65, 0, false},
                                 {"grouped_gemm_64", 64, 128, 4, 256, 17, 0, false},
                                 {"grouped_gemm_16", 16, 128, 5, 256, 0, 1, false},
                                 {"grouped_gemm_16_narrow", 16, 64, 6, 128, 0, 0, false}};

// What the kernels are given by value.
struct Arguments {
  cuda::Pointer tiles, tile_count, gather;
  std::int64_t n, k;
};

constexpr std::int64_t kAlignment = 1024;  // wgmma's swizzle begins at multiples of this
std::int64_t shared_bytes(const Variant& v) {
  return (v.rows + v.columns) * kRowBytes * v.stages + (v.hopper ? kAlignment : 0);
}
std::int64_t rounded_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

Result<void> check_supported(const cuda::Properties& device, Type type, std::int64_t rows, std::int64_t n,
                             std::int64_t k) {
  const auto unsupported = [](std::string why) { return Error{ErrorCode::kUnsupported, std::move(why), ""}; };
  if (type != Type::kBfloat16 && type != Type::kFloat16) {
    return unsupported(fmt::format("kernel grouped_gemm multiplies bfloat16 and float16, not {}", type_name(type)));
  }
  if (device.capability() < 80) {
    return unsupported(fmt::format("kernel grouped_gemm needs compute capability 8.0, {} has {}.{}", device.name,
                                   device.major, device.minor));
  }
  if (k % 8 != 0 || n % 2 != 0) {
    return unsupported(fmt::format("kernel grouped_gemm needs k in eights and n even, not k={} n={}", k, n));
  }
  constexpr std::int64_t kMost = 2147483647;
  if (rows > kMost - 128)
    return unsupported(fmt::format("kernel grouped_gemm counts rows in 32 bits: {} is more", rows));
  return {};
}

}  // namespace

Result<GroupedKernel> choose_grouped_kernel(const cuda::Context& context, Type type, std::int64_t rows,
                                            std::int64_t groups, std::int64_t n, std::int64_t k) {
  const cuda::Properties& device = context.properties();
  LLMPROF_TRY(check_supported(device, type, rows, n, k));
  for (const Variant& v : kVariants) {
    constexpr std::int64_t kStaticBytes = 1024;
    const bool fits = shared_bytes(v) + kStaticBytes <= device.shared_bytes_per_block;
    if (!fits || rows < v.from_mean_rows * groups || (v.hopper && device.capability() != 90)) continue;
    const std::int64_t tiles = rows / v.rows + std::min(groups, rows);
    const std::int64_t columns = (n + v.columns - 1) / v.columns;
    if (tiles * columns < v.from_blocks * device.multiprocessors) continue;
    return GroupedKernel{
        .name = fmt::format("{}_{}", v.name, type_name(type)),
        .tile_rows = v.rows,
        .tiles = tiles,
        .k = k,
        .n = n,
        .launch = {
            .grid_x = rounded_up(tiles, kBand) * columns, .block_x = v.threads, .shared_bytes = shared_bytes(v)}};
  }
  return unsupported_error("{} has too little shared memory for kernel grouped_gemm", device.name);
}

Result<void> GroupedKernel::enqueue(cuda::Context& context, cuda::Pointer x, cuda::Pointer w, cuda::Pointer y,
                                    cuda::Pointer tiles_at, cuda::Pointer count_at, cuda::Pointer gather) const {
  return context.launch(name, launch, {x, w, y, Arguments{tiles_at, count_at, gather, n, k}});
}

std::vector<GroupTile> tiles_of(const std::vector<std::int64_t>& rows, std::int64_t tile_rows) {
  std::vector<GroupTile> tiles;
  std::int64_t first = 0;
  for (std::size_t group = 0; group < rows.size(); ++group) {
    const std::int64_t end = first + rows[group];
    for (std::int64_t begin = first; begin < end; begin += tile_rows) {
      tiles.push_back({.group = static_cast<std::int32_t>(group),
                       .begin = static_cast<std::int32_t>(begin),
                       .end = static_cast<std::int32_t>(std::min(begin + tile_rows, end))});
    }
    first = end;
  }
  return tiles;
}

namespace {

struct GroupedGemm : RowOperator {
  static constexpr auto cpu_method_of = product_cpu_method;
  static constexpr std::span<const Type> kCpuTypes = kProductCpuTypes;

  static constexpr AxisSpec kAxes[] = {{"groups", "8", 1, "groups: experts"},
                                       {"m", "64,1024,8192", 1, "rows of all groups together"},
                                       {"n", "4096", 1, "outputs of a row"},
                                       {"k", "4096", 1, "inputs of a row"}};
  static constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32, Type::kTf32, Type::kFloat64};
  static constexpr std::int64_t kMostGroups = 65536;

  static Result<void> check(const Problem& p) {
    LLMPROF_TRY(check_most(p, "groups", kMostGroups));
    LLMPROF_TRY(check_values(p, {"groups", "n", "k"}));
    return check_values(p, axis(p, "m") * std::max(axis(p, "n"), axis(p, "k")));
  }

  // Shares of 1 6 4 2 7 5 3, and again: the largest group of seven has seven times the rows of the smallest.
  static std::vector<std::int64_t> group_rows(const Problem& p) {
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

  static std::vector<TensorSpec> tensors(const Problem& p) {
    const std::int64_t m = p.at("m"), n = p.at("n"), k = p.at("k");
    return {{"x", Role::kIn, p.type, m * k},
            {"w", Role::kIn, p.type, p.at("groups") * n * k},
            {"y", Role::kOut, product_type(p.type), m * n}};
  }

  // Only the matrices of groups that have rows are read.
  static model::KernelWork work(const Problem& p) {
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

  static Problem small(const Problem& p) {
    const std::int64_t groups = std::min<std::int64_t>(p.at("groups"), 9);
    const std::int64_t per_group = std::min<std::int64_t>(p.at("m") / p.at("groups") + 1, 80);
    return p.with("groups", groups)
        .with("m", std::min(p.at("m"), groups * per_group + 3))
        .with("n", shortened(p.at("n"), 128))
        .with("k", shortened(p.at("k"), 128));
  }

  // One group after the other: f(rows, x, w, y) with where the group's own begin, in values.
  template <class F>
  static void each_group(const Problem& p, const F& f) {
    const std::int64_t n = p.at("n"), k = p.at("k");
    std::int64_t row = 0, group = 0;
    for (const std::int64_t rows : group_rows(p)) {
      if (rows > 0) f(rows, row * k, group * n * k, row * n);
      row += rows;
      ++group;
    }
  }

  static void reference(const Problem& p, std::span<std::vector<double>> t) {
    const std::int64_t n = p.at("n"), k = p.at("k");
    each_group(p, [&](std::int64_t rows, std::int64_t x, std::int64_t w, std::int64_t y) {
      for (std::int64_t i = 0; i < rows * n; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < k; ++j) sum += t[0][x + i / n * k + j] * t[1][w + i % n * k + j];
        t[2][y + i] = sum;
      }
    });
  }

  static void cpu(const Problem& p, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t bytes = type_bytes(p.type);
    each_group(p, [&](std::int64_t rows, std::int64_t x, std::int64_t w, std::int64_t y) {
      multiply({.m = rows, .n = p.at("n"), .k = p.at("k"), .type = p.type}, t[0] + x * bytes, t[1] + w * bytes,
               t[2] + y * bytes, team);
    });
  }

  static Result<CudaCall> prepare_library(cuda::Context& context, const Problem& p) {
    LLMPROF_LET(cuda::Blas* const blas, context.blas());
    LLMPROF_LET(const cuda::PreparedMatmul prepared,
                blas->prepare_grouped({.rows = group_rows(p), .n = p.at("n"), .k = p.at("k"), .type = p.type}));
    return call_of(prepared);
  }

  struct Table {
    cuda::Buffer tiles, count;
  };

  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& p) {
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
                          return kernel.enqueue(context, t[0], t[1], t[2], table->tiles.pointer(),
                                                table->count.pointer(), 0);
                        },
                    .method = "kernel " + kernel.name,
                    .workspace_bytes = bytes};
  }

  // One product of cuBLASLt after the other, each with its fastest algorithm.
  static Result<CudaCall> prepare_loop(cuda::Context& context, const Problem& p) {
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
  static Result<CudaCall> prepare_fastest(cuda::Context& context, const Problem& p) {
    using Prepare = Result<CudaCall> (*)(cuda::Context&, const Problem&);
    const std::int64_t mean_rows = p.at("m") / p.at("groups");
    std::vector<Prepare> order{prepare_kernel, prepare_library, prepare_loop};
    if (mean_rows >= 16 && mean_rows < 64) order = {prepare_library, prepare_kernel, prepare_loop};
    if (mean_rows >= 512) order = {prepare_loop, prepare_kernel, prepare_library};
    Result<CudaCall> call = order.front()(context, p);
    for (std::size_t i = 1; i < order.size() && !call && !context.broken(); ++i) call = order[i](context, p);
    return call;
  }

  static constexpr CudaImplementation kCuda[] = {{"fastest", prepare_fastest},
                                                 {"cublas", prepare_library},
                                                 {"kernel", prepare_kernel},
                                                 {"cublaslt", prepare_loop}};
};

}  // namespace

const Operator kGroupedGemm =
    describe<GroupedGemm>("grouped_gemm", "uneven groups of rows, each times a matrix of its own");

}  // namespace llmprof::bench
