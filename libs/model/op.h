#pragma once
// One operator of a model as a family describes it: what it multiplies, which parameters it reads and which tensors it
// touches. cost.cpp turns it into costs; docs/format/model.md derives them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace llmprof::model {

// What one row of an operator's tensors is.
enum class Rows : std::uint8_t {
  kTokens,   // a new token of a sequence
  kSampled,  // a position whose logits are wanted: the end of the network needs no other
};

// A table of which only the rows that are looked up are read.
struct Lookup {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool by_position = false;  // all sequences of a batch look up the same rows
};

// Routed experts: multiply_adds, parameters and tensors of the operator are those of one expert.
struct Experts {
  std::int64_t all = 0, here = 0;  // of the model, of this shard
  std::int64_t per_token = 0;
  double batches = 1;  // expert ranks that do not share their tokens send theirs here, too
  bool operator==(const Experts&) const = default;
};

enum class Use : std::uint8_t { kAlways, kInference, kTraining };

enum class OpClass : std::uint8_t {
  kEmbedding,
  kNorm,
  kProjection,
  kRope,
  kAttention,
  kElementwise,
  kRouter,
  kLogits,
  kSampling,
  kLoss
};
std::string_view class_name(OpClass op_class);  // "projection"

struct Op {
  std::string name;  // "self_attn.q_proj": the path without the layer
  OpClass op_class = OpClass::kElementwise;
  Rows rows = Rows::kTokens;
  std::int64_t multiply_adds = 0;      // per row
  std::int64_t in = 0, out = 0;        // of a projection: the matrix, for matching calls by shape
  std::int64_t parameters = 0;         // read in full, once per pass
  bool frozen = false;                 // the parameters are not trained: no gradients of them, no update
  bool borrowed = false;               // the parameters belong to another operator (tied lm_head)
  bool quantisable = false;            // a matrix of a layer: what quantization_config speaks of
  std::optional<Attention> attention;  // the core: FLOPs and bytes depend on the context
  bool latent_expansion = false;       // kv_b_proj: a latent cache that is expanded needs it for the whole context
  std::optional<Experts> experts;
  std::vector<Lookup> lookups;
  std::vector<std::int64_t> tensors;  // values per row of each input and each output
  // The way back: the parameters that the input's gradient needs, and the tensors it reads and writes.
  std::int64_t backward_reads = 0;
  std::vector<std::int64_t> backward_tensors;
  std::int64_t kept = 0;  // values per row of its results that stay until the way back
  Use use = Use::kAlways;

  // Settled by Graph.
  Number weight;           // how the parameters are stored
  std::string arithmetic;  // type of the products

  std::int64_t own_parameters() const;  // tables and all experts of the shard included; 0 for borrowed ones
};

// A model in execution order. The operators of layer i are kinds[kind_of_layer[i]], under "<layer_prefix>.<i>.".
struct Structure {
  std::string layer_prefix;
  std::vector<Op> first;
  std::vector<std::vector<Op>> kinds;  // parallel to Config::kinds
  std::vector<Op> last;
};

// y = x W (+ b). `residual`: the product is added to the residual stream, which is one more tensor to read.
struct Linear {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  bool residual = false;
  bool kept = true;  // the result is needed on the way back as it is
};
Op linear(const Linear& linear);
Op norm(std::string name, const Config& config, Rows rows = Rows::kTokens);
Op norm_of(std::string name, std::int64_t weights, std::int64_t values);  // RMS over `values` per row, inside a layer
Op elementwise(std::string name, OpClass op_class, std::vector<std::int64_t> tensors,
               std::vector<std::int64_t> backward_tensors, std::int64_t kept);
Op attention_core(std::string name, const Attention& attention);
Op embedding(std::string name, const Config& config);
Op lm_head(const Config& config);
Op sampling(const Config& config);  // inference: chooses tokens
Op loss(const Config& config);      // training: cross entropy

}  // namespace llmprof::model
