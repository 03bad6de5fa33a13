#pragma once
// What a transformer must cost. The only place with FLOP and byte formulas ; analysis, benchmarks and
// prediction call these, so "MFU" means one thing. Conventions: matrix products only, 2MNK; attention causal; logits
// for sampled positions; element-wise work counts bytes, not FLOPs. docs/format/model.md derives each formula.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/op.h"
#include "model/pass.h"

namespace llmprof::model {

class Coverage;  // quantization.h

// A config turned into operators, with the type of every operator's weights settled. Build it once, cost many passes.
class Graph {
 public:
  explicit Graph(const Config& config);

  // Layers with equal operators and equal weight types.
  struct Group {
    std::vector<Op> ops;
    std::vector<std::int64_t> layers;  // their numbers
  };
  const Config& config() const { return config_; }
  const std::string& layer_prefix() const { return layer_prefix_; }
  const Group& first() const { return first_; }  // outside the layers: its `layers` is empty
  const Group& last() const { return last_; }
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<std::uint32_t>& group_of_layer() const { return group_of_layer_; }

 private:
  // The group of a layer of this kind: one of the kind's groups so far, or a new one.
  std::uint32_t group_of(std::int64_t layer, const std::vector<Op>& kind, std::vector<std::uint32_t>& candidates,
                         const Coverage* coverage);

  Config config_;
  std::string layer_prefix_;
  Group first_, last_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_layer_;
};

// Every parameter, tied ones once.
std::int64_t parameters(const Graph& graph);
// Those that take part in the pass of one token: all but the routed experts that are not chosen.
std::int64_t active_parameters(const Graph& graph);
struct PartParameters {
  std::string part;  // "embedding", "attention", "mlp", "experts", "router", "norms", "logits"
  std::int64_t parameters = 0;
  double bytes = 0;
};
std::vector<PartParameters> parameters_by_part(const Graph& graph);

// Multi-head latent attention: with the latent as it is kept ("absorbed" into q and the output), or expanded to full
// keys and values first. The least takes whichever needs fewer FLOPs, per group of sequences.
enum class Latent : std::uint8_t { kLeast, kAbsorbed, kExpanded };

struct Conditions {
  std::int64_t on_chip_bytes = 0;  // activations larger than this must move; smaller ones need not
  Latent latent = Latent::kLeast;
};

struct Costs {
  double flops = 0;
  double weight_bytes = 0;      // parameters read, once per pass; training: gradients and moments too
  double kv_bytes = 0;          // KV cache read and written
  double activation_bytes = 0;  // activations that cannot stay on chip
  double bytes() const { return weight_bytes + kv_bytes + activation_bytes; }
  Costs& operator+=(const Costs& other);
  Costs operator*(double factor) const;
};

struct OpCost : Costs {
  std::string module;      // "layers.3.mlp.up_proj": the path annotations use, HF names without the leading "model."
  std::string op;          // "mlp.up_proj": the same for all layers
  std::string arithmetic;  // type of its products: what their peak is that of
  OpClass op_class = OpClass::kElementwise;
  std::int64_t layers = 1;  // that the row stands for
};

// Operators in execution order, one row for each of each layer.
std::vector<OpCost> analyze(const Graph& graph, const Pass& pass, const Conditions& conditions);
// One row per operator, summed over the layers; module is the operator's name.
std::vector<OpCost> analyze_by_op(const Graph& graph, const Pass& pass, const Conditions& conditions);
// The sum, without making rows: for sweeps. FLOPs by type of arithmetic stand beside it.
struct PassCosts : Costs {
  std::map<std::string, double> flops_by_type;
};
PassCosts total(const Graph& graph, const Pass& pass, const Conditions& conditions);

// Weights one pass over many tokens reads. Embedding rows that are only looked up do not count.
double weights_read_bytes(const Graph& graph);
// Parameters, their gradients and AdamW's two moments: what a training step sweeps over.
double training_state_bytes(const Graph& graph);

// The types of the products of any pass, each once.
std::vector<std::string> arithmetic_types(const Graph& graph);

double gemm_flops(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);  // 2·m·n·k·batch
double gemm_bytes(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, std::int64_t element_bytes);

}  // namespace llmprof::model
