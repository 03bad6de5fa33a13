// How a TableStepCost is put together: the model's parts, their tables, links between ranks.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/errors.h"
#include "base/human.h"
#include "predict/tables/step_cost.h"

namespace llmprof::predict {
namespace {

// Of a device whose cache is not known: rather none of its activations move than all of them.
constexpr std::int64_t kLargestCacheBytes = std::int64_t{256} << 20;
// What copies reach on PCIe x16, one way: four fifths of the link.
constexpr double kPcie4BytesPerS = 25e9, kPcie5BytesPerS = 50e9;
constexpr double kCollectiveLatencyNs = 10e3;  // starting and joining the ranks of one call

// Attention of which other layers see everything: a table has one attention, that of those.
bool any_full(const std::vector<Part>& parts) {
  return std::ranges::any_of(parts, [](const Part& part) {
    return part.rows == PartRows::kAttention && part.ops.front().attention->window == 0 &&
           part.ops.front().attention->chunk == 0;
  });
}

bool has_mixed(const Grid& grid) {
  return std::ranges::any_of(grid.all(), [](const Grid::Point& point) { return point.at[0] > 0 && point.at[2] > 0; });
}

// A window beside layers that see everything: looked up in their table, with what the window shows.
void look_through_window(TableStepCost::Entry& entry) {
  for (model::Op& op : entry.part.ops) {
    if (!op.attention) continue;
    entry.window = std::max(op.attention->window, op.attention->chunk);
    op.attention->window = op.attention->chunk = 0;
  }
}

}  // namespace

LinkCosts default_link(const hw::DeviceSpec* spec) {
  const hw::Figure* figure = spec == nullptr ? nullptr : spec->figure("interconnect");
  if (figure != nullptr && figure->value > 0) {
    return {figure->value / 2, kCollectiveLatencyNs,
            fmt::format("{} one way ({}: half of the interconnect's {}), {} per call (assumed)",
                        base::human_rate(figure->value / 2, "B/s"), figure->source,
                        base::human_rate(figure->value, "B/s"), base::human_ns(kCollectiveLatencyNs))};
  }
  const bool fifth = spec != nullptr && (spec->architecture == "Hopper" || spec->architecture == "Blackwell");
  const double bytes_per_s = fifth ? kPcie5BytesPerS : kPcie4BytesPerS;
  return {bytes_per_s, kCollectiveLatencyNs,
          fmt::format("{} one way and {} per call (assumed: PCIe {}.0 x16)", base::human_rate(bytes_per_s, "B/s"),
                      base::human_ns(kCollectiveLatencyNs), fifth ? 5 : 4)};
}

DeviceRoof roof_for(const model::Config& config, const std::vector<hw::Peak>& peaks, std::string_view device,
                    std::int64_t cache_bytes) {
  return {hw::Roofline(peaks, device, model::arithmetic_types(model::Graph(config))),
          cache_bytes > 0 ? cache_bytes : kLargestCacheBytes};
}

TableStepCost::TableStepCost() = default;
TableStepCost::~TableStepCost() = default;
const TableSource& TableStepCost::source() const { return input_.tables.source; }
const StepCostInput& TableStepCost::input() const { return input_; }

Result<std::unique_ptr<TableStepCost>> TableStepCost::make(StepCostInput input) {
  if (input.parallel.pipeline > 1) return unsupported_error("pipeline parallelism cannot be predicted yet");
  const std::int64_t measured = input.tables.source.tensor;
  if (measured > 0 && measured != input.parallel.tensor) {
    return usage_error("the tables are of tensor parallelism {}, not {}", measured, input.parallel.tensor);
  }
  LLMPROF_LET(model::Config shard, model::shard(input.config, input.parallel, {}));
  std::unique_ptr<TableStepCost> cost(new TableStepCost);
  cost->input_ = std::move(input);
  cost->shard_ = std::move(shard);
  cost->use_best_rates();
  LLMPROF_TRY(cost->add_parts(model::Graph(cost->shard_)));
  cost->add_links();
  cost->note_unused();
  return cost;
}

// Of products: what other operators move may come from a cache.
void TableStepCost::use_best_rates() {
  if (input_.roof.known() || input_.tables.empty()) return;
  if (input_.roof.on_chip_bytes <= 0) input_.roof.on_chip_bytes = kLargestCacheBytes;
  std::map<std::string, double> flops_per_s;
  double bytes_per_s = 0;
  for (const Part& part : parts_of(model::Graph(shard_))) {
    const Grid* table = input_.tables.find(part.name);
    if (table == nullptr || table->axes() != 1 || part.ops.front().multiply_adds == 0) continue;
    for (const Grid::Point& point : table->all()) {
      const model::Costs costs = costs_at(part, shard_, input_.roof.on_chip_bytes, std::span(point.at).first(1));
      double& flops = flops_per_s[part.ops.front().arithmetic];
      flops = std::max(flops, costs.flops / point.ns * 1e9);
      bytes_per_s = std::max(bytes_per_s, costs.bytes() / point.ns * 1e9);
    }
  }
  if (bytes_per_s <= 0) return;
  std::vector<hw::Peak> peaks{{"bandwidth", "read", bytes_per_s, "B/s", "measured", "best of the operator tables"}};
  for (const auto& [type, value] : flops_per_s) {
    peaks.push_back({"flops", type, value, "FLOP/s", "measured", "best of the operator tables"});
  }
  input_.roof = roof_for(shard_, peaks, "", input_.roof.on_chip_bytes);
  input_.roof.of_tables = true;
  notes_.push_back(
      fmt::format("the device's peaks are unknown: the best rates of the tables' products stand for them, "
                  "{} and {}",
                  base::human_rate(peaks.back().value, "FLOP/s"), base::human_rate(bytes_per_s, "B/s")));
}

Result<void> TableStepCost::add_parts(const model::Graph& graph) {
  std::vector<Part> parts = parts_of(graph);
  const bool full = any_full(parts);
  const bool experts_measured = input_.tables.find("moe") != nullptr;
  std::int64_t points = 0, impossible = 0;
  for (Part& part : parts) {
    if (part.name == "router" && experts_measured && input_.tables.find("router") == nullptr) {
      notes_.push_back("router: taken to be part of the table moe");
      continue;
    }
    auto entry = std::make_unique<Entry>();
    entry->part = std::move(part);
    if (full && entry->part.rows == PartRows::kAttention && input_.tables.find("attention") != nullptr) {
      look_through_window(*entry);
    }
    entry->floor = floor_over_axes(entry->part, shard_, input_.roof);
    LLMPROF_TRY(add_table(*entry));
    points += entry->points;
    impossible += entry->dropped;
    entries_.push_back(std::move(entry));
  }
  return check_dropped(points, impossible);
}

Result<void> TableStepCost::check_dropped(std::int64_t points, std::int64_t impossible) const {
  if (impossible * 2 <= points) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{} of {} times of the tables are shorter than this device can be for this model",
                           impossible, points),
               "they were measured on another device, for another model or for another degree of parallelism"};
}

Result<void> TableStepCost::add_table(Entry& entry) {
  const std::string& name = entry.part.name;
  const Grid* table = input_.tables.find(name);
  if (entry.part.rows == PartRows::kExperts && table != nullptr && input_.tables.source.whole_experts &&
      input_.parallel.expert < input_.parallel.tensor) {
    notes_.push_back("moe: the table is of whole experts, those of this set-up are split: not used");
    table = nullptr;
  }
  // A final norm has the shape of the others.
  if (table == nullptr && name == "final_layernorm") table = input_.tables.find("layernorm");
  if (table != nullptr) {
    entry.grid = *table;
    const Grid::Settled settled = entry.grid->settle(entry.floor.get());
    entry.points = table->points();
    entry.dropped = settled.impossible;
    if (settled.duplicates > 0) {
      notes_.push_back(
          fmt::format("{}: {} points measured more than once, the mean is used", name, settled.duplicates));
    }
    if (settled.impossible > 0) {
      notes_.push_back(fmt::format("{}: {} of {} times are faster than the device can be, dropped", name,
                                   settled.impossible, table->points()));
    }
    if (entry.grid->empty()) entry.grid.reset();
  }
  if (entry.grid) {
    entry.mixed = entry.part.rows == PartRows::kAttention && has_mixed(*entry.grid);
    entry.source = "table";
    return {};
  }
  if (!input_.roof.known()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("nothing is known of the time of {}: it has no table, and the device's peaks are unknown", name),
        "name a device of the catalogue, or give tables"};
  }
  if (!input_.tables.empty()) notes_.push_back(fmt::format("{}: no table, its time is the device's roof", name));
  entry.source = "roof";
  return {};
}

// Bytes by libs/model, for one token; they grow with the tokens.
void TableStepCost::add_links() {
  const model::Config& whole = input_.config;
  const model::Parallel& parallel = input_.parallel;
  if (parallel.ranks() <= 1 && parallel.expert <= 1) return;
  if (input_.link.source.empty() && input_.link.bytes_per_s == 0) input_.link = default_link(nullptr);
  const model::Pass token = model::decode(1, 1);
  const auto layers = static_cast<double>(std::max<std::int64_t>(1, whole.layers()));
  const double tensor_bytes = model::communication_bytes(whole, {.tensor = parallel.tensor}, token);
  const double all_bytes = model::communication_bytes(whole, parallel, token);
  const auto add = [&](const char* name, std::int64_t calls, double bytes) {
    auto entry = std::make_unique<Entry>();
    entry->part = {name, PartRows::kTokens, {}, calls};
    entry->link_bytes = bytes;
    entry->source = "link: " + input_.link.source;
    entries_.push_back(std::move(entry));
    return entries_.back().get();
  };
  if (tensor_bytes > 0) {
    // After attention and MLP of every layer, and after the embedding, whose rows are split, too.
    Entry* entry = add("all_reduce", 2 * whole.layers() + 1, tensor_bytes / (2 * layers));
    for (const char* name : {"all_reduce", "all_reduce_tokens"}) {
      const Grid* table = input_.tables.find(name);
      if (table == nullptr) continue;
      entry->grid = *table;
      entry->grid->settle(nullptr);
      entry->source = "table";
      const bool by_bytes = std::string_view(name) == "all_reduce";
      entry->message_bytes = by_bytes ? static_cast<double>(whole.hidden) * whole.activation.bytes : 1;
      break;
    }
  }
  if (all_bytes > tensor_bytes) {
    const auto sparse = std::ranges::count_if(whole.kind_of_layer,
                                              [&](std::uint32_t kind) { return whole.kinds[kind].mlp.experts > 0; });
    // There and back: each chosen copy of a row to its expert, or every row to every rank and sums back, as vLLM does
    // unless told otherwise. Whichever moves less.
    const double copies = (all_bytes - tensor_bytes) / (2 * static_cast<double>(sparse));
    const double batches = static_cast<double>(parallel.expert) / static_cast<double>(parallel.tensor);
    const double gathered = (batches - 1) * static_cast<double>(whole.hidden) * whole.activation.bytes;
    const bool gathers = gathered < copies;
    add(gathers ? "gather_scatter" : "all_to_all", 2 * sparse, std::min(copies, gathered));
  }
  if (entries_.back()->source != "table") notes_.push_back("between ranks: " + input_.link.source);
}

void TableStepCost::note_unused() {
  TableSource& source = input_.tables.source;
  for (const std::string& name : input_.tables.operators()) {
    const bool used = std::ranges::any_of(entries_, [&](const auto& entry) { return entry->part.name == name; });
    if (used || is_part_name(name)) continue;
    source.unknown_layers.push_back(name);
    source.unknown_rows += input_.tables.find(name)->points();
  }
  if (!source.unknown_layers.empty()) {
    notes_.push_back(fmt::format("{} rows of operators that this model does not have: {}", source.unknown_rows,
                                 fmt::join(source.unknown_layers, ", ")));
  }
  if (input_.tables.empty())
    notes_.push_back("no operator tables: every time is the device's roof, the least it can be");
  if (!input_.tables.skew.empty() && !input_.skew) {
    notes_.push_back(fmt::format(
        "skew_fit: {} corrections for decodes of unequal contexts not used: they made the one known serving "
        "2 % worse",
        input_.tables.skew.size()));
  }
}

}  // namespace llmprof::predict
