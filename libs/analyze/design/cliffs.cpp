#include "analyze/design/cliffs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/human.h"
#include "model/shard.h"

namespace llmprof::analyze::design {
namespace {

using base::human_percent;

// A library's kernels load 16 bytes at a time; rows that are no multiple of it need other, slower kernels.
constexpr std::int64_t kAlignedBytes = 16;
constexpr double kWorthTelling = 0.05;

std::int64_t up_to(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

struct Product {
  std::string name;
  std::int64_t n = 0, k = 0;
  bool layer = true;  // in each layer, else once
};

// The weight products of one rank. Those of latents and of experts are left out: their rows are not the step's.
std::vector<Product> products_of(const model::Config& config) {
  std::vector<Product> out;
  const model::LayerKind& kind = config.kinds.front();
  const model::Attention& a = kind.attention;
  if (!a.latent()) out.push_back({"qkv_proj", a.heads * a.qk_dim + a.kv_heads * (a.qk_dim + a.v_dim), config.hidden});
  out.push_back({"o_proj", config.hidden, a.heads * a.v_dim});
  if (kind.mlp.experts == 0) {
    out.push_back({"gate_up_proj", (kind.mlp.gated ? 2 : 1) * kind.mlp.width, config.hidden});
    out.push_back({"down_proj", config.hidden, kind.mlp.width});
  }
  return out;
}

struct Inputs {
  const ModelSetup& setup;
  const Design& design;
  const CliffFacts& facts;
  const Pricer& pricer;
  const model::Config& rank;  // one rank's part
  std::int64_t batch() const { return design.options.batch; }
  std::int64_t prompt() const { return design.options.prompt; }
  std::int64_t context() const { return design.options.context; }

  // "a decode step takes +1.2 ms (floor)".
  std::string step_change(const std::string& setting) const {
    ModelSetup changed = setup;
    changed.options = design.options;
    ModelSetup base = changed;
    if (!set(changed, setting)) return "";
    const auto both = price_both(pricer, base, changed);
    if (!both) return "";
    const PricedStage *a = both->first.stage("decode"), *b = both->second.stage("decode");
    if (a == nullptr || b == nullptr) return "";
    return fmt::format("a decode step {} instead of {} ({})", base::human_ns(b->ns), base::human_ns(a->ns),
                       source_name(both->second.source));
  }
};

void add_memory(const Inputs& in, std::vector<Cliff>& out) {
  const Memory& memory = in.design.memory;
  if (!memory.device || !memory.largest_batch || !memory.longest_context) return;
  Cliff row{.what = "memory"};
  row.here = fmt::format("batch {}, context {}: {} of {}", in.batch(), in.context(), base::human_bytes(memory.needed()),
                         base::human_bytes(*memory.device));
  row.where =
      fmt::format("batch {} at this context, context {} at this batch{}", *memory.largest_batch,
                  *memory.longest_context, memory.context_ends_with_model ? " (where the model's positions end)" : "");
  row.cost = "beyond it does not fit";
  if (memory.fits && !*memory.fits && *memory.largest_batch > 0)
    row.better = fmt::format("batch={}", *memory.largest_batch);
  out.push_back(std::move(row));
}

void add_blocks(const Inputs& in, std::vector<Cliff>& out) {
  const CliffFacts& f = in.facts;
  if (f.kv_blocks < 2 || f.block_tokens < 1) return;
  const std::int64_t usable = f.kv_blocks - 1;  // one is reserved
  const std::int64_t each = up_to(in.context(), f.block_tokens) / f.block_tokens;
  const std::int64_t most = usable / each, longest = usable / in.batch() * f.block_tokens;
  Cliff row{.what = "KV blocks of " + f.engine};
  row.here = fmt::format("batch {} at context {}: {} of {} blocks of {} tokens", in.batch(), in.context(),
                         each * in.batch(), usable, f.block_tokens);
  row.where = fmt::format("batch {} at this context, context {} at this batch", most, longest);
  row.cost = most >= in.batch() ? "beyond it requests wait or are preempted"
                                : fmt::format("{} requests wait or are preempted", in.batch() - most);
  if (most >= 1 && most < in.batch()) row.better = fmt::format("batch={}", most);
  out.push_back(std::move(row));
}

void add_graphs(const Inputs& in, std::vector<Cliff>& out) {
  const std::vector<std::int64_t>& sizes = in.facts.capture_sizes;
  if (sizes.empty()) return;
  Cliff row{.what = "CUDA graphs of " + in.facts.engine};
  const auto fits = std::ranges::lower_bound(sizes, in.batch());
  if (fits == sizes.end()) {
    row.here = fmt::format("batch {} has no graph", in.batch());
    row.where = fmt::format("the largest is {}", sizes.back());
    row.cost = "its kernels are launched one by one, or in pieces: the host may set the pace";
    row.better = fmt::format("batch={}", sizes.back());
    out.push_back(std::move(row));
    return;
  }
  const std::int64_t padding = *fits - in.batch();
  const std::string before = fits == sizes.begin() ? "" : fmt::format("{}, ", *(fits - 1));
  const std::string behind = fits + 1 == sizes.end() ? "" : fmt::format(", {}", *(fits + 1));
  row.here = fmt::format("batch {} runs as {}", in.batch(), *fits);
  row.where = fmt::format("sizes {}{}{}; the largest {}", before, *fits, behind, sizes.back());
  if (padding == 0) {
    row.cost = "no padding";
    if (fits + 1 != sizes.end() && *(fits + 1) > in.batch() + 1)
      row.cost += fmt::format("; {} would run as {}", in.batch() + 1, *(fits + 1));
  } else {
    row.cost = fmt::format("{} of {} rows of the products are padding ({})", padding, *fits,
                           human_percent(static_cast<double>(padding) / static_cast<double>(*fits)));
    row.better = fmt::format("batch={}", *fits);
    if (const std::string change = in.step_change(row.better); !change.empty())
      row.cost += fmt::format("; with a request in each, {}", change);
  }
  out.push_back(std::move(row));
}

void add_limits(const Inputs& in, std::vector<Cliff>& out) {
  const CliffFacts& f = in.facts;
  if (f.max_num_seqs > 0 && in.batch() > f.max_num_seqs) {
    out.push_back({"max_num_seqs of " + f.engine, fmt::format("batch {}", in.batch()),
                   fmt::format("{}", f.max_num_seqs), fmt::format("{} requests wait", in.batch() - f.max_num_seqs),
                   fmt::format("batch={}", f.max_num_seqs)});
  }
  const std::int64_t budget = f.max_num_batched_tokens, tokens = in.batch() * in.prompt();
  if (budget <= 0 || tokens <= budget) return;
  Cliff row{.what = "max_num_batched_tokens of " + f.engine};
  row.here = fmt::format("{} prompts of {} are {} tokens", in.batch(), in.prompt(), tokens);
  row.where = fmt::format("{} tokens a step", budget);
  row.cost = fmt::format("the prefill takes {} steps", up_to(tokens, budget) / budget);
  if (in.prompt() <= budget) row.better = fmt::format("batch={}", budget / in.prompt());
  out.push_back(std::move(row));
}

// How much of the tiles' places the products of a prefill of so many rows use, by their work.
double used_by(const std::vector<Product>& products, std::int64_t rows, std::int64_t units) {
  double work = 0, time = 0;
  for (const Product& each : products) {
    const double one = static_cast<double>(each.n) * static_cast<double>(each.k);
    work += one;
    time += one / waves_of(rows, each.n, units).used;
  }
  return time > 0 ? work / time : 1;
}

void add_waves(const Inputs& in, std::vector<Cliff>& out) {
  if (in.facts.units <= 0) return;
  const std::vector<Product> products = products_of(in.rank);
  const std::int64_t rows = in.batch() * in.prompt();
  const Product* worst = nullptr;
  double least = 2;
  for (const Product& each : products) {
    const Waves waves = waves_of(rows, each.n, in.facts.units);
    // Where not all units have a tile, libraries split the inner dimension: nothing is known of waves then.
    if (waves.waves < 1) return;
    if (waves.used < least) worst = &each, least = waves.used;
  }
  if (worst == nullptr) return;
  const double now = used_by(products, rows, in.facts.units);
  if (1 - now < kWorthTelling) return;
  std::int64_t best_prompt = 0;
  double best = now;
  for (std::int64_t prompt = in.prompt() + 1; prompt <= in.prompt() + in.prompt() / 2; ++prompt) {
    const double used = used_by(products, in.batch() * prompt, in.facts.units);
    if (used > best + 0.01) best = used, best_prompt = prompt;
  }
  const Waves waves = waves_of(rows, worst->n, in.facts.units);
  Cliff row{.what = "waves of a prefill's products"};
  row.here =
      fmt::format("{} rows: {} tiles of {} x {} (assumed) in {}, {:.2f} waves of {} SMs", rows,
                  static_cast<std::int64_t>(waves.tiles), kTile, kTile, worst->name, waves.waves, in.facts.units);
  row.where =
      fmt::format("its last wave is {} full",
                  human_percent(waves.waves - std::floor(waves.waves) > 0 ? waves.waves - std::floor(waves.waves) : 1));
  row.cost = fmt::format("{} of the products' places in tiles and waves are empty", human_percent(1 - now));
  if (best_prompt > 0 && best - now > kWorthTelling / 2) {
    row.better = fmt::format("prompt={}", best_prompt);
    row.cost += fmt::format(", {} at prompt {}", human_percent(1 - best), best_prompt);
  }
  out.push_back(std::move(row));
}

void add_rows(const Inputs& in, std::vector<Cliff>& out) {
  const std::int64_t batch = in.batch();
  if (!in.facts.jumps.empty()) {
    const auto next = std::ranges::find_if(in.facts.jumps, [&](const TimeJump& j) { return j.rows_below >= batch; });
    const auto inside = std::ranges::find_if(
        in.facts.jumps, [&](const TimeJump& j) { return j.rows_below < batch && batch <= j.rows_above; });
    const bool on_it = inside != in.facts.jumps.end();
    if (!on_it && next == in.facts.jumps.end()) return;
    const TimeJump& jump = on_it ? *inside : *next;
    Cliff row{.what = "rows of products, measured"};
    row.here = fmt::format("{} rows in a decode step", batch);
    row.where = fmt::format("between {} and {} rows", jump.rows_below, jump.rows_above);
    row.cost = fmt::format(
        "{} more rows take {} longer ({} instead of {}, all products of a step)",
        human_percent(static_cast<double>(jump.rows_above) / static_cast<double>(jump.rows_below) - 1),
        human_percent(jump.ns_above / jump.ns_below - 1), base::human_ns(jump.ns_above), base::human_ns(jump.ns_below));
    if (on_it || (jump.rows_below > batch && jump.rows_below <= 2 * batch))
      row.better = fmt::format("batch={}", jump.rows_below);
    out.push_back(std::move(row));
    return;
  }
  if (in.facts.units <= 0 || batch <= 8 || batch % 8 == 0) return;
  const std::int64_t padded = up_to(batch, 8);
  out.push_back({"rows of products", fmt::format("{} rows in a decode step", batch),
                 "tensor cores work on 8 rows (assumed; larger tiles of libraries are not known)",
                 fmt::format("{} of {} rows are empty", padded - batch, padded), fmt::format("batch={}", padded)});
}

// Sizes of the model that fit no whole tile, or no whole load.
void add_sizes(const Inputs& in, std::vector<Cliff>& out) {
  if (in.facts.units <= 0) return;
  const model::LayerKind& kind = in.rank.kinds.front();
  struct Size {
    std::string name, key;
    std::int64_t value;
  };
  for (const Size& size : {Size{"vocabulary", "vocab", in.rank.vocab}, Size{"hidden size", "", in.rank.hidden},
                           Size{"intermediate size", "intermediate", kind.mlp.width}}) {
    if (size.value <= 0) continue;
    const double bytes = static_cast<double>(size.value) * in.rank.weight.bytes;
    const bool unaligned = std::fmod(bytes, static_cast<double>(kAlignedBytes)) != 0;
    const std::int64_t padded = up_to(size.value, kTile);
    const double empty = static_cast<double>(padded - size.value) / static_cast<double>(padded);
    if (!unaligned && empty < kWorthTelling) continue;
    Cliff row{.what = size.name};
    row.here = fmt::format("{}{}", size.value, in.design.devices > 1 ? " on a rank" : "");
    row.where = unaligned ? fmt::format("multiples of {} bytes are loaded at once", kAlignedBytes)
                          : fmt::format("tiles of {} (assumed)", kTile);
    row.cost = unaligned ? "rows of the matrix are not aligned: libraries take slower kernels (how much is not known)"
                         : fmt::format("{} of the last tiles' columns are empty", padded - size.value);
    // Of the whole model: a rank's part times the ranks.
    if (!size.key.empty()) row.better = fmt::format("{}={}", size.key, padded * in.design.options.parallel.tensor);
    out.push_back(std::move(row));
  }
}

}  // namespace

Waves waves_of(std::int64_t rows, std::int64_t columns, std::int64_t units, std::int64_t tile) {
  Waves out;
  if (rows < 1 || columns < 1 || units < 1) return out;
  const std::int64_t whole_rows = up_to(rows, tile), whole_columns = up_to(columns, tile);
  out.tiles = static_cast<double>(whole_rows / tile) * static_cast<double>(whole_columns / tile);
  out.waves = out.tiles / static_cast<double>(units);
  const double inside = static_cast<double>(rows) / static_cast<double>(whole_rows) * static_cast<double>(columns) /
                        static_cast<double>(whole_columns);
  out.used = inside * out.waves / std::ceil(out.waves);
  return out;
}

std::vector<Cliff> cliffs(const ModelSetup& setup, const Design& design, const CliffFacts& facts,
                          const Pricer& pricer) {
  std::vector<Cliff> out;
  const Result<model::Config> rank = model::shard(design.config, design.options.parallel, {});
  if (!rank || rank->kinds.empty()) return out;
  const Inputs in{setup, design, facts, pricer, *rank};
  add_memory(in, out);
  add_blocks(in, out);
  add_graphs(in, out);
  add_limits(in, out);
  add_rows(in, out);
  add_waves(in, out);
  add_sizes(in, out);
  return out;
}

}  // namespace llmprof::analyze::design
