#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <tuple>
#include <utility>

#include "analyze/passes/kernel_class.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts/subjects.h"
#include "analyze/rules/wording.h"

namespace llmprof::analyze {

bool is_attention(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kAttention; }
bool is_collective(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kCollective; }
bool is_product(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kProduct; }

bool moves_elements(std::string_view kernel) {
  using enum KernelClass;
  switch (class_of_kernel(kernel)) {
    case kNorm:
    case kRope:
    case kCacheWrite:
    case kActivation:
    case kEmbedding:
    case kBeforeMean:
    case kMean:
    case kAfterMean:
    case kSum:
    case kMoves:
      return true;
    default:
      return false;
  }
}

Result<StepKernels> read_step_kernels(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "sql/step_kernels"));
  StepKernels read;
  const auto& v = columns.values;
  read.kernels.reserve(columns.rows());
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    read.kernels.push_back({.step_id = v[1][i],
                            .device_id = v[2][i],
                            .stream = v[3][i],
                            .begin_ns = v[4][i],
                            .end_ns = v[5][i],
                            .stage = v[0][i],
                            .name = v[6][i],
                            .op = v[7][i],
                            .product = v[8][i] != 0,
                            .estimated = v[9][i] != 0});
    const std::string& stage = columns.names[static_cast<std::size_t>(v[0][i])];
    if (read.of.contains(stage)) continue;
    read.of[stage] = v[11][i];
    read.scale[stage] = static_cast<double>(v[10][i]) / static_cast<double>(v[11][i]);
  }
  read.names = std::move(columns.names);
  std::ranges::sort(read.kernels, {}, [](const StepKernel& kernel) {
    return std::tuple(kernel.step_id, kernel.device_id, kernel.stream, kernel.begin_ns, kernel.end_ns, kernel.name);
  });
  return read;
}

Result<std::vector<StageLaunches>> stage_launches(const trace::Run& run) {
  std::vector<StageLaunches> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_launches"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({row.text("stage"), row.integer("launches"), row.integer("timed"), row.integer("call_ns")});
  }
  return out;
}

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

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::int64_t number_at(std::string_view text, std::size_t& at) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), out);
  at = static_cast<std::size_t>(end - text.data());
  return error == std::errc() ? out : 0;
}

template <std::size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.find(word) != text.npos; });
}

}  // namespace

Result<std::vector<ProductKernel>> product_kernels(const trace::Run& run) {
  std::vector<ProductKernel> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/product_kernels"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.stage = row.text("stage"),
                   .type = row.text("type"),
                   .compute_type = row.text("compute_type"),
                   .kernel = row.text("name"),
                   .m = row.integer("m"),
                   .n = row.integer("n"),
                   .k = row.integer("k"),
                   .batch = row.integer("batch"),
                   .executions = row.integer("executions"),
                   .time_ns = row.integer("time_ns"),
                   .blocks = row.integer("blocks"),
                   .threads = row.integer("threads"),
                   .registers = row.integer("registers"),
                   .shared_bytes = row.integer("shared_bytes")});
  }
  return out;
}

std::optional<Tile> tile_of(std::string_view kernel) {
  for (std::size_t at = 0; at < kernel.size(); ++at) {
    if (!is_digit(kernel[at]) || (at > 0 && is_digit(kernel[at - 1]))) continue;
    std::size_t end = at;
    const std::int64_t m = number_at(kernel, end);
    if (end + 1 >= kernel.size() || kernel[end] != 'x' || !is_digit(kernel[end + 1])) continue;
    ++end;
    const std::int64_t n = number_at(kernel, end);
    // Warps and stages are smaller, and sizes of a whole matrix larger; a tile is no vector either.
    if (m >= 8 && n >= 8 && m <= 512 && n <= 512 && m * n >= 512) return Tile{m, n};
  }
  return std::nullopt;
}

bool splits_inner(std::string_view kernel) {
  static constexpr std::array<std::string_view, 4> kWords = {"splitK", "split_k", "splitk", "stream_k"};
  return holds_any(kernel, kWords);
}

bool without_tensor_cores(std::string_view kernel) {
  static constexpr std::array<std::string_view, 4> kWords = {"_ffma_", "simt", "sgemm", "gemmSN"};
  static constexpr std::array<std::string_view, 2> kTensor = {"tensorop", "s1688"};
  return holds_any(kernel, kWords) && !holds_any(kernel, kTensor);
}

namespace {

bool makes_logits(std::string_view op) { return op == "lm_head" || op.ends_with(".lm_head") || op == "logits"; }

struct Sums {
  double head = 0, after = 0, all = 0, count = 0, shortest = 0;
  std::map<std::string, double> names;
};

// One step: what began once the logits were there.
void add_step(const StepKernels& all, std::size_t begin, std::size_t end, Sums& sums) {
  std::int64_t ready = INT64_MAX;
  for (std::size_t i = begin; i < end; ++i) {
    const StepKernel& kernel = all.kernels[i];
    const auto time = static_cast<double>(kernel.time_ns());
    sums.all += time;
    sums.shortest = sums.shortest == 0 ? time : std::min(sums.shortest, time);
    if (!kernel.product || !makes_logits(all.text(kernel.op))) continue;
    sums.head += static_cast<double>(kernel.time_ns());
    ready = ready == INT64_MAX ? kernel.end_ns : std::max(ready, kernel.end_ns);
  }
  for (std::size_t i = begin; i < end; ++i) {
    const StepKernel& kernel = all.kernels[i];
    if (kernel.begin_ns < ready || kernel.product || is_collective(all.text(kernel.name))) continue;
    sums.after += static_cast<double>(kernel.time_ns());
    ++sums.count;
    sums.names[short_kernel(all.text(kernel.name))] += static_cast<double>(kernel.time_ns());
  }
}

}  // namespace

std::vector<StageLogits> logits_of(const StepKernels& kernels) {
  std::map<std::string, Sums> stages;
  for (std::size_t begin = 0, end = 0; begin < kernels.kernels.size(); begin = end) {
    for (end = begin; end < kernels.kernels.size() && kernels.kernels[end].step_id == kernels.kernels[begin].step_id;)
      ++end;
    add_step(kernels, begin, end, stages[kernels.text(kernels.kernels[begin].stage)]);
  }
  std::vector<StageLogits> out;
  for (const auto& [name, sums] : stages) {
    if (sums.head <= 0) continue;
    const double scale = kernels.scale.at(name);
    StageLogits stage{.stage = name, .steps = scale * static_cast<double>(kernels.of.at(name))};
    stage.head_ns = scale * sums.head, stage.after_ns = scale * sums.after, stage.kernels_ns = scale * sums.all;
    stage.after_kernels = scale * sums.count, stage.shortest_ns = sums.shortest;
    std::vector<std::pair<double, std::string>> names;
    for (const auto& [kernel, ns] : sums.names) names.emplace_back(ns, kernel);
    std::ranges::sort(names, std::greater{});
    for (std::size_t i = 0; i < std::min<std::size_t>(3, names.size()); ++i) stage.names.push_back(names[i].second);
    out.push_back(std::move(stage));
  }
  return out;
}

Result<void> fill_logit_rows(const trace::Run& run, std::vector<StageLogits>& stages) {
  if (stages.empty()) return {};
  // The rows are the side of the product that is not the vocabulary, the larger of the two.
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(
          "SELECT w.stage, sum(least(g.m, g.n) * g.batch * w.gemm_calls) AS rows, "
          "(SELECT count(*) FROM step AS s WHERE s.stage = w.stage) AS steps, "
          "(SELECT avg(batch) FROM step AS s WHERE s.stage = w.stage) AS batch, "
          "(SELECT avg(tokens) FROM step AS s WHERE s.stage = w.stage) AS tokens "
          "FROM work_sum AS w JOIN gemm AS g ON g.id = w.gemm_id "
          "WHERE w.in_step AND w.gemm_calls > 0 AND (w.op = 'lm_head' OR w.op LIKE '%.lm_head' OR w.op = 'logits') "
          "GROUP BY w.stage"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto stage = std::ranges::find(stages, row.text("stage"), &StageLogits::stage);
    if (stage == stages.end() || row.integer("steps") == 0) continue;
    stage->rows_per_step = row.real("rows") / row.real("steps");
    stage->batch = row.real("batch"), stage->tokens = row.real("tokens");
  }
  return {};
}

}  // namespace llmprof::analyze
