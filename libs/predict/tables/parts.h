#pragma once
// A model as the parts that tables have times of: "qkv_proj" stands for the products of q, k and v, "layernorm" for all
// norms of a layer. FLOPs and bytes are those of libs/model, so a part's floor is what `llmprof model` says.

#include <memory>
#include <string>
#include <vector>

#include "hw/roof.h"
#include "model/cost.h"
#include "model/model.h"
#include "predict/batch.h"
#include "predict/tables/grid.h"

namespace llmprof::predict {

// What the time of a part depends on: the axes of its table.
enum class PartRows : std::uint8_t {
  kTokens,     // of the step, padded
  kSampled,    // requests that get a token
  kAttention,  // chunk, its context, decodes, their context
  kExperts,    // tokens, activated experts
};

struct Part {
  std::string name;  // of its table: "qkv_proj"
  PartRows rows = PartRows::kTokens;
  std::vector<model::Op> ops;  // of one call
  std::int64_t calls = 1;      // in one step: layers that have it, times in each
};

// Parts in the order in which a step runs them; equal layers together.
std::vector<Part> parts_of(const model::Graph& graph);
// The part that each operator of a layer is in, by its place: "qkv_proj" for q_proj, k_proj and v_proj.
std::vector<std::string> part_names(const std::vector<model::Op>& layer_ops);
// Names that parts_of() can give: what tables are looked up by.
bool is_part_name(std::string_view name);

// Of experts: what a rank gets of a token's choices, counted over its own tokens; those of ranks that send theirs are
// in it. A table's row of so many tokens sends all their choices to one rank, so this is what tokens are multiplied
// with before a table of experts is asked. 1 for all else.
double share_of_choices(const Part& part);

// A device's limits for one model.
struct DeviceRoof {
  hw::Roofline peaks;
  std::int64_t on_chip_bytes = 0;  // activations that fit need not move
  bool of_tables = false;          // the best rates of the tables themselves: nothing in them can be too fast
  bool known() const { return peaks.bandwidth().has_value() && !peaks.peaks().empty(); }
};

// The step as libs/model knows it.
model::Pass pass_of(const Batch& batch);

// FLOPs and bytes of one call of a part at a place of its table; of experts, tokens after share_of_choices().
model::Costs costs_at(const Part& part, const model::Config& config, std::int64_t on_chip_bytes,
                      std::span<const double> at);

// The least time of some operators together, as one call; 0: a peak is unknown.
double floor_ns(const std::vector<model::Op>& ops, const model::Config& config, const model::Amounts& amounts,
                const DeviceRoof& roof);

// The floor of a part over the axes of its table. The arguments must outlive it.
std::unique_ptr<FloorAt> floor_over_axes(const Part& part, const model::Config& config, const DeviceRoof& roof);

}  // namespace llmprof::predict
