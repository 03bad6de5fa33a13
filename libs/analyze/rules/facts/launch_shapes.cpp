#include "analyze/rules/facts/launch_shapes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

struct Chip {
  int capability = 0;  // 90: 9.0
  SmLimits limits;
};
constexpr std::int64_t kKiB = 1024;
constexpr std::array<Chip, 9> kChips = {{{70, {64, 32, 65536, 96 * kKiB, 0}},
                                         {75, {32, 16, 65536, 64 * kKiB, 0}},
                                         {80, {64, 32, 65536, 164 * kKiB, kKiB}},
                                         {86, {48, 16, 65536, 100 * kKiB, kKiB}},
                                         {87, {48, 16, 65536, 164 * kKiB, kKiB}},
                                         {89, {48, 24, 65536, 100 * kKiB, kKiB}},
                                         {90, {64, 32, 65536, 228 * kKiB, kKiB}},
                                         {100, {64, 32, 65536, 228 * kKiB, kKiB}},
                                         {120, {48, 24, 65536, 100 * kKiB, kKiB}}}};

constexpr std::array<std::pair<std::string_view, int>, 8> kChipNames = {{{"Volta", 70},
                                                                         {"Turing", 75},
                                                                         {"Hopper", 90},
                                                                         {"GV100", 70},
                                                                         {"GA100", 80},
                                                                         {"GA10", 86},
                                                                         {"AD10", 89},
                                                                         {"GH100", 90}}};

// Digits of "sm_90", "sm_90a", "compute capability 9.0"; 0 if there are none.
int capability_of(std::string_view chip) {
  for (const auto& [name, capability] : kChipNames) {
    if (chip.starts_with(name)) return capability;
  }
  if (!chip.starts_with("sm_") && !chip.starts_with("compute capability ")) return 0;
  int value = 0;
  for (const char c : chip.substr(std::min(chip.size(), chip.find_first_of("0123456789")))) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0)
      value = 10 * value + (c - '0');
    else if (c != '.')
      break;
    if (value > 1000) return 0;
  }
  return value;
}

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::optional<SmLimits> sm_limits(std::string_view chip) {
  const auto found = std::ranges::find(kChips, capability_of(chip), &Chip::capability);
  return found == kChips.end() ? std::nullopt : std::optional(found->limits);
}

Occupancy occupancy_of(const LaunchShape& shape, const SmLimits& limits) {
  const std::int64_t warps = std::max<std::int64_t>(1, (shape.threads + 31) / 32);
  // A warp's registers come in units of 256, and warps in fours, one per scheduler.
  const std::int64_t per_warp = round_up(std::max<std::int64_t>(1, shape.registers) * 32, 256);
  const std::int64_t by_registers = limits.registers / per_warp / 4 * 4 / warps;
  const std::int64_t shared = round_up(shape.shared_bytes, 128) + limits.reserved_per_block;
  const std::int64_t by_shared = shared > 0 ? limits.shared_bytes / shared : limits.blocks;
  const std::array<std::pair<std::int64_t, const char*>, 4> by = {{{limits.warps / warps, "threads of a block"},
                                                                   {limits.blocks, "number of blocks"},
                                                                   {by_registers, "registers"},
                                                                   {by_shared, "shared memory"}}};
  const auto least = *std::ranges::min_element(by, {}, [](const auto& limit) { return limit.first; });
  return {.blocks = least.first,
          .occupancy = static_cast<double>(least.first * warps) / static_cast<double>(limits.warps),
          .limiter = least.second};
}

Result<std::vector<LaunchShape>> launch_shapes(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query(R"(
WITH launched AS (
  SELECT name, device_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, shared_bytes, count(*) AS launches,
    sum(end_ns) - sum(begin_ns) AS ns
  FROM kernel WHERE registers IS NOT NULL AND grid_x IS NOT NULL AND block_x IS NOT NULL GROUP BY ALL),
shapes AS (
  SELECT name, device_id, CAST(grid_x AS BIGINT) * grid_y * grid_z AS blocks,
    CAST(block_x AS BIGINT) * block_y * block_z AS threads, registers, shared_bytes, CAST(sum(launches) AS BIGINT) AS launches,
    CAST(sum(ns) AS BIGINT) AS ns
  FROM launched GROUP BY ALL)
SELECT s.*, d.units, coalesce(d.chip, '') AS chip FROM shapes AS s JOIN device AS d ON d.id = s.device_id
WHERE d.kind = 'gpu'
QUALIFY row_number() OVER (PARTITION BY s.name ORDER BY s.ns DESC, s.blocks DESC, s.threads DESC) = 1
ORDER BY s.ns DESC, s.name LIMIT 200)"));
  std::vector<LaunchShape> out;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.kernel = row.text("name"),
                   .device_id = row.integer("device_id"),
                   .units = row.integer("units"),
                   .chip = row.text("chip"),
                   .launches = row.integer("launches"),
                   .time_ns = row.integer("ns"),
                   .blocks = row.integer("blocks"),
                   .threads = row.integer("threads"),
                   .registers = row.integer("registers"),
                   .shared_bytes = row.integer("shared_bytes")});
  }
  return out;
}

const LaunchShape* find_shape(const std::vector<LaunchShape>& shapes, std::string_view kernel) {
  const auto found = std::ranges::find(shapes, kernel, &LaunchShape::kernel);
  return found == shapes.end() ? nullptr : &*found;
}

}  // namespace llmprof::analyze
