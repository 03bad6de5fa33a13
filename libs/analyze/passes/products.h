#pragma once
// The matrix products of one pass over a model, in order: what BLAS calls are matched to where no range says it.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace llmprof::analyze {

using MatrixSize = std::pair<std::int64_t, std::int64_t>;  // in, out: a row of `in` values becomes one of `out`

struct Slot {              // one projection of one layer
  std::string module, op;  // "layers.3.mlp.up_proj", "mlp.up_proj"
  MatrixSize size;
  bool sampled = false;     // the logits: its rows are sampled positions, not all tokens
  bool expert = false;      // called for one expert after another, with any number of rows
  std::int32_t layer = -1;  // -1: outside the layers
  std::int32_t core = -1;   // index into Products::cores: the attention between this product and the next
};

struct Core {  // attention itself: its products depend on the context
  std::string module, op;
  std::vector<std::int64_t> dims;  // sizes of a head, one of which is a side of each of its products
  std::int64_t heads = 0, qk_dim = 0;
};

struct Between {  // an operator that is no product with weights: norm, rotation, attention, activation, …
  std::string module;
  model::OpClass op_class = model::OpClass::kElementwise;
};

struct Products {
  std::vector<Slot> slots;  // forward
  std::vector<std::vector<Between>>
      before;  // by slot: what the model does since the slot before it; then after the last
  std::vector<Core> cores;
  std::map<std::string, std::string> fused;  // operator of the model -> the one that does its work: q_proj -> qkv_proj
  std::int64_t layers = 0;
};

// Calls that could be a product with a matrix of this size, seen in the run.
using SizeCounts = std::map<MatrixSize, std::int64_t>;

// Projections of the same input that stand beside each other (q, k, v; gate, up) are one product where the calls say
// that the engine fused them.
Products products_of(const model::Graph& graph, const SizeCounts& counts);

// How often a pass that needs these products of layers could have been made.
double possible_passes(const Products& products, const SizeCounts& counts);

}  // namespace llmprof::analyze
