#pragma once
// What a model occupies. docs/format/model.md derives the formulas.

#include "model/model.h"

namespace llmprof::model {

double weights_bytes(const Graph& graph);  // every parameter at the type it is stored in

// Of `batch` sequences with this context each. A window or a chunk bounds what a layer keeps.
double kv_cache_bytes(const Graph& graph, std::int64_t batch, std::int64_t context);
double kv_bytes_per_token(const Graph& graph);  // growth while no window is full yet

// Largest sum of an operator's inputs and outputs, with the residual stream: what must exist at once. A lower bound;
// engines allocate more.
double activation_bytes(const Graph& graph, const Pass& pass);

enum class Recompute : std::uint8_t {
  kNone,    // every result that the way back needs is kept
  kCheap,   // norms, rotations and activations are computed again; products are kept
  kLayers,  // only the inputs of layers are kept; a layer is computed again before its way back
};

struct TrainingMemory {
  double weights = 0, gradients = 0, moments = 0, activations = 0;
  double recomputed_flops = 0;  // executed again; part of HFU, not of MFU
  double total() const { return weights + gradients + moments + activations; }
};
TrainingMemory training_memory(const Graph& graph, std::int64_t batch, std::int64_t tokens, Recompute recompute);

}  // namespace llmprof::model
