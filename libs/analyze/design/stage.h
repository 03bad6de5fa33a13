#pragma once
// What one pass over a model costs, as a whole, by operator and by layer, and its least time on a device.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/roof.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/shard.h"

namespace llmprof::analyze::design {

// The operator graphs of a design: the whole model, and what one device holds of it.

struct Graphs {
  model::Graph whole;
  std::vector<model::Graph> stages;  // of the pipeline, for the rank that holds most; one without a pipeline
  model::Parallel parallel;

  // More expert than tensor ranks: each of these groups of tensor ranks runs a batch of its own.
  std::int64_t groups() const { return std::max<std::int64_t>(1, parallel.expert / parallel.tensor); }
  std::int64_t devices() const { return parallel.ranks() * groups(); }
};

Result<Graphs> make_graphs(const model::Config& config, const model::Parallel& parallel);

// The sum over the stages of the pipeline.
model::PassCosts device_costs(const Graphs& graphs, const model::Pass& pass, const model::Conditions& conditions);

// What a design occupies on one device, and what still fits beside it.

struct Load {
  std::int64_t batch = 1, prompt = 1, context = 1;
};

// Bytes on the device of a pipeline that needs most.
struct Memory {
  double weights = 0;
  double kv_per_token = 0;  // of one sequence, while no window is full
  double kv = 0;            // of the batch at the context
  double activations = 0;   // of the larger of prefill and decode, at least
  double needed() const { return weights + kv + activations; }

  // Unknown without a device, or while its memory is unknown.
  std::optional<double> device;
  std::optional<double> left_for_kv;  // beside weights and activations; negative: they do not fit
  std::optional<bool> fits;
  // What would still fit with everything else as it is; 0: nothing. Bounded by the context the model was made for, if
  // it says one, and by kMost.
  std::optional<std::int64_t> longest_context, largest_batch;
  bool context_ends_with_model = false;  // memory would allow more than the model's positions
};

inline constexpr std::int64_t kMost = std::int64_t{1} << 31;

Memory memory_of(const Graphs& graphs, const Load& load, double device_bytes);
// Only the sum, for sweeps.
double needed_bytes(const Graphs& graphs, const Load& load);

// One device's share, the largest over the pipeline.
model::TrainingMemory training_memory_of(const Graphs& graphs, const Load& load, model::Recompute recompute);

using hw::Floor;
using hw::UsedPeak;

// What one device can do at most. Without a name there is none: costs are known then, times are not, and `why` says how
// to get them.
struct Roof {
  std::string device;
  std::string source;              // "this machine", "catalogue"
  double memory_bytes = 0;         // 0: unknown
  std::int64_t on_chip_bytes = 0;  // last-level cache; 0: unknown, every activation counts as moved
  std::vector<hw::Peak> peaks;
  std::string why;

  bool known() const { return !device.empty(); }
};

// An operator of all layers, or everything in a range of equal layers.
struct Row {
  model::Costs costs;
  std::string name;                 // "mlp.up_proj", "layers 0-15"
  std::string arithmetic;           // "" where several types meet
  std::int64_t layers = 0;          // that it stands for; 0: outside of them
  std::int64_t parameters = 0;      // rows of layers only
  std::optional<double> intensity;  // FLOP per byte
  Floor floor;
  std::optional<double> share;  // of the floors of all rows: they add up to more than the stage's
};

struct Stage {
  std::string name;   // "prefill", "decode", "mixed", "forward", "backward", "optimizer"
  std::string what;   // "8 sequences of 1024 tokens"
  double tokens = 0;  // new ones, of all sequences; 0 in the optimizer, whose work does not depend on them
  // On one device: of a tensor-parallel rank, with the stages of a pipeline added up.
  model::PassCosts costs;
  double communication_bytes = 0;  // that the device sends
  // The model's own FLOPs at peak, spread evenly over the devices: what MFU counts. Less than the floor's where ranks
  // compute the same thing.
  std::optional<double> model_compute_ns;
  std::optional<double> intensity, ridge;
  Floor floor;
  std::vector<Floor> pipeline;  // of its stages, which take turns for one pass: they add up to the floor
  std::optional<double> per_token(double amount) const {
    return tokens > 0 ? std::optional(amount / tokens) : std::nullopt;
  }
  std::optional<double> flops_per_token() const { return per_token(costs.flops); }
  std::optional<double> bytes_per_token() const { return per_token(costs.bytes()); }
  std::vector<Row> operators;  // the longest floor first, else the most FLOPs and bytes
  std::vector<Row> layers;     // in execution order; equal ones together
};

struct NamedPass {
  std::string name, what;
  model::Pass pass;
};

Stage cost_stage(const Graphs& graphs, const NamedPass& pass, const model::Conditions& conditions,
                 const hw::Roofline& roofline);

// The time that the slowest device of a pipeline needs for these passes together: with a batch in every stage of it, a
// batch leaves it each time that has passed.
std::optional<double> slowest_ns(const std::vector<Stage>& passes);

double new_tokens(const model::Pass& pass);
std::optional<double> flops_per_byte(const model::Costs& costs);
// "0-15", "0,2,4,6", "0-3,8"; after a few parts "…".
std::string layer_numbers(const std::vector<std::int64_t>& layers);

}  // namespace llmprof::analyze::design
