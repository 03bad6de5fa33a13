#pragma once
// What one pass over a model costs, as a whole, by operator and by layer, and its least time on a device.

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/design/graphs.h"
#include "hw/roof.h"

namespace llmprof::analyze::design {

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
