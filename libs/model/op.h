#pragma once
// One operator of a model as a family describes it: what it multiplies, which parameters it reads and which tensors it
// touches. analyze.cpp turns it into costs; docs/format/model.md derives them.

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"

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

enum class Use : std::uint8_t { kAlways, kInference, kTraining };

struct Op {
  std::string name;  // "self_attn.q_proj": the path without the layer
  Rows rows = Rows::kTokens;
  std::int64_t multiply_adds = 0;  // per row
  std::int64_t parameters = 0;     // read in full, once per pass
  bool borrowed = false;           // the parameters belong to another operator (tied lm_head)
  bool attention = false;          // the core: FLOPs and bytes depend on the context
  std::vector<Lookup> lookups;
  std::vector<std::int64_t> tensors;  // values per row of each input and each output
  // The way back: the parameters that the input's gradient needs, and the tensors it reads and writes.
  std::int64_t backward_reads = 0;
  std::vector<std::int64_t> backward_tensors;
  Use use = Use::kAlways;

  std::int64_t own_parameters() const;  // tables included; 0 for borrowed ones
};

// A model in execution order. The operators of `layer` repeat Config::layers times under "<layer_prefix>.N.".
struct Structure {
  std::string layer_prefix;
  std::vector<Op> first, layer, last;
};

// y = x W (+ b). `residual`: the product is added to the residual stream, which is one more tensor to read.
struct Linear {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  bool residual = false;
};
Op linear(const Linear& linear);
Op norm(std::string name, const Config& config, Rows rows = Rows::kTokens);
Op elementwise(std::string name, std::vector<std::int64_t> tensors, std::vector<std::int64_t> backward_tensors);
Op attention_core(std::string name, const Config& config);
Op embedding(std::string name, const Config& config, std::vector<Lookup> lookups);
Op lm_head(const Config& config);
Op sampling(const Config& config);  // inference: chooses tokens
Op loss(const Config& config);      // training: cross entropy

}  // namespace llmprof::model
