#include "bench/ops/grouped.h"

#include <fmt/format.h>

#include <algorithm>

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
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} has too little shared memory for kernel grouped_gemm", device.name), ""};
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

}  // namespace llmprof::bench
