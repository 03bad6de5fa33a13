#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <tuple>
#include <utility>

#include "analyze/passes/kernel_class.h"
#include "analyze/questions.h"
#include "analyze/rules/facts.h"
#include "analyze/rules/tools.h"
#include "base/strings.h"

namespace llmprof::analyze {

bool is_attention(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kAttention; }
bool is_collective(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kCollective; }
bool is_product(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kProduct; }

bool moves_elements(std::string_view kernel) {
  using enum KernelClass;
  static constexpr KernelClass kMoving[] = {kNorm,       kRope, kCacheWrite, kActivation, kEmbedding,
                                            kBeforeMean, kMean, kAfterMean,  kSum,        kMoves};
  return std::ranges::count(kMoving, class_of_kernel(kernel)) > 0;
}

Result<StepKernels> read_step_kernels(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "step_kernels"));
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
    const std::string& stage = columns.names[v[0][i]];
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
  return std::ranges::any_of(words, [&](std::string_view word) { return base::contains(text, word); });
}

}  // namespace

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
    const double time = kernel.time_ns();
    sums.all += time;
    sums.shortest = sums.shortest == 0 ? time : std::min(sums.shortest, time);
    if (!kernel.product || !makes_logits(all.text(kernel.op))) continue;
    sums.head += kernel.time_ns();
    ready = ready == INT64_MAX ? kernel.end_ns : std::max(ready, kernel.end_ns);
  }
  for (std::size_t i = begin; i < end; ++i) {
    const StepKernel& kernel = all.kernels[i];
    if (kernel.begin_ns < ready || kernel.product || is_collective(all.text(kernel.name))) continue;
    sums.after += kernel.time_ns();
    ++sums.count;
    sums.names[short_kernel(all.text(kernel.name))] += kernel.time_ns();
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

namespace {

std::string label(const StepKernels& all, const StepKernel& kernel) {
  if (is_attention(all.text(kernel.name))) return "attention";
  if (kernel.op != 0) return all.text(kernel.op);
  if (is_collective(all.text(kernel.name))) return "communication";
  return kernel.product || is_product(all.text(kernel.name)) ? "a matrix product" : "another kernel";
}

bool same_queue(const StepKernel& a, const StepKernel& b) {
  return a.step_id == b.step_id && a.device_id == b.device_id && a.stream == b.stream;
}

class Finder {
 public:
  explicit Finder(const StepKernels& all) : all_(all), moves_(all.names.size()) {
    for (std::size_t name = 0; name < moves_.size(); ++name) moves_[name] = moves_elements(all.names[name]);
  }

  std::vector<StageChains> find() {
    for (std::size_t i = 0; i < all_.kernels.size(); ++i) {
      const StepKernel& kernel = all_.kernels[i];
      StageChains& stage = stages_[all_.text(kernel.stage)];
      ++stage.kernels;
      stage.estimated = stage.estimated || kernel.estimated;
      const bool moves = !kernel.product && moves_[kernel.name];
      if (moves) ++stage.element_kernels;
      if (moves && follows(i)) {
        last_ = i;
      } else {
        close();
        first_ = last_ = moves ? i : kNone;
      }
    }
    close();
    return finished();
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  using Key = std::pair<std::string, std::string>;

  bool follows(std::size_t i) const {
    return last_ != kNone && same_queue(all_.kernels[last_], all_.kernels[i]) &&
           all_.kernels[i].begin_ns - all_.kernels[last_].end_ns <= kChainGapNs;
  }

  void close() {
    if (first_ != kNone && last_ > first_) add();
    first_ = last_ = kNone;
  }

  void add() {
    const StepKernel &first = all_.kernels[first_], &last = all_.kernels[last_];
    Key key;
    if (first_ > 0 && same_queue(all_.kernels[first_ - 1], first)) key.first = label(all_, all_.kernels[first_ - 1]);
    if (last_ + 1 < all_.kernels.size() && same_queue(all_.kernels[last_ + 1], last))
      key.second = label(all_, all_.kernels[last_ + 1]);
    ChainGroup& group = groups_[all_.text(first.stage)][key];
    ++group.chains;
    std::int64_t longest = 0, covered_until = first.begin_ns;
    for (std::size_t i = first_; i <= last_; ++i) {
      const StepKernel& kernel = all_.kernels[i];
      ++group.kernels;
      group.time_ns += kernel.time_ns();
      longest = std::max(longest, kernel.time_ns());
      group.idle_ns += std::max<std::int64_t>(0, kernel.begin_ns - covered_until);
      covered_until = std::max(covered_until, kernel.end_ns);
    }
    group.longest_ns += longest;
  }

  std::vector<StageChains> finished() {
    std::vector<StageChains> out;
    for (auto& [name, stage] : stages_) {
      const double scale = all_.scale.at(name);
      stage.stage = name;
      stage.steps_read = all_.of.at(name);
      stage.steps = scale * static_cast<double>(stage.steps_read);
      stage.kernels *= scale, stage.element_kernels *= scale;
      for (auto& [key, group] : groups_[name]) {
        group.after = key.first, group.before = key.second;
        for (double* value : {&group.chains, &group.kernels, &group.time_ns, &group.longest_ns, &group.idle_ns})
          *value *= scale;
        stage.groups.push_back(group);
      }
      std::ranges::stable_sort(stage.groups, std::greater{}, &ChainGroup::gain_ns);
      out.push_back(std::move(stage));
    }
    return out;
  }

  const StepKernels& all_;
  std::vector<bool> moves_;  // by name
  std::size_t first_ = kNone, last_ = kNone;
  std::map<std::string, StageChains> stages_;
  std::map<std::string, std::map<Key, ChainGroup>> groups_;
};

}  // namespace

ChainGroup StageChains::total() const {
  ChainGroup sum;
  for (const ChainGroup& group : groups) {
    sum.chains += group.chains, sum.kernels += group.kernels, sum.time_ns += group.time_ns;
    sum.longest_ns += group.longest_ns, sum.idle_ns += group.idle_ns;
  }
  return sum;
}

std::vector<StageChains> chains_of(const StepKernels& kernels) { return Finder(kernels).find(); }

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t count_tiles(std::int64_t m, std::int64_t n, std::int64_t batch, Tile tile) {
  return ceil_div(m, tile.m) * ceil_div(n, tile.n) * batch;
}

}  // namespace

std::optional<Tiling> tiling_of(const ProductKernel& product, std::int64_t units, std::int64_t blocks_per_unit) {
  std::optional<Tile> tile = tile_of(product.kernel);
  if (!tile || units <= 0 || splits_inner(product.kernel)) return std::nullopt;
  // Some libraries name rows first, some columns: the number of blocks tells, where it is one block per tile.
  const Tile turned{tile->n, tile->m};
  const bool fits = count_tiles(product.m, product.n, product.batch, *tile) == product.blocks;
  const bool turned_fits = count_tiles(product.m, product.n, product.batch, turned) == product.blocks;
  if (!fits && turned_fits) tile = turned;
  Tiling out{.tile = *tile, .tiles = count_tiles(product.m, product.n, product.batch, *tile)};
  if (product.blocks > out.tiles) return std::nullopt;  // several blocks for each tile
  // Fewer blocks than tiles: blocks that stay and take one tile after another.
  out.slots = product.blocks > 0 && product.blocks < out.tiles ? product.blocks : units * blocks_per_unit;
  out.useful = static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.batch) /
               static_cast<double>(tile->m * tile->n);
  return out;
}

std::optional<Neighbour> cheaper_neighbour(const ProductKernel& product, const Tiling& tiling) {
  std::optional<Neighbour> best;
  double best_cut = 1.0 / 8;
  for (const bool rows : {true, false}) {
    const std::int64_t size = rows ? product.m : product.n, step = rows ? tiling.tile.m : tiling.tile.n;
    for (std::int64_t smaller = (size - 1) / step * step; smaller > 0; smaller -= step) {
      const double cut = 1 - static_cast<double>(smaller) / static_cast<double>(size);
      if (cut > best_cut) break;
      const std::int64_t tiles = rows ? count_tiles(smaller, product.n, product.batch, tiling.tile)
                                      : count_tiles(product.m, smaller, product.batch, tiling.tile);
      const std::int64_t waves = ceil_div(tiles, tiling.slots);
      if (waves >= tiling.waves()) continue;
      best = Neighbour{rows ? "m" : "n", smaller, size, waves};
      best_cut = cut;
      break;
    }
  }
  return best;
}

}  // namespace llmprof::analyze
