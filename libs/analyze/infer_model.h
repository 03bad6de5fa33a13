#pragma once
// A model that nobody described, told from the products of its passes: a layer is what repeats, and the sizes of its
// matrices say what each of them is. Only where every product of a pass has its place; docs/format/analysis.md states
// the rules in words.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/passes/products.h"

namespace llmprof::analyze {

struct PassProduct {  // of a forward pass, in order
  MatrixSize size;
  std::int64_t rows = 0;
};

struct ShapesModel {
  std::int64_t layers = 0, hidden = 0, q = 0, kv = 0, width = 0;  // q, kv: of all heads together
  std::int64_t vocab = 0;                                         // 0: there are no logits
  bool gated = false, causal = true;
  std::map<std::string, std::int64_t> adapters;  // operator -> rank
  std::vector<MatrixSize> head;                  // products behind the layers that are no logits

  // What the products do not say, and other things may.
  std::int64_t head_dim = 0;  // 0: unknown
  bool bias = false, frozen = false, rope = false;
  std::optional<bool> tied;
  std::string type;  // of the products; "" unknown

  std::string config() const;  // JSON
  std::string words() const;   // "8 layers, hidden 2048, …"
};

struct Inferred {
  std::optional<ShapesModel> model;
  std::string why;  // why there is none; "" if there is nothing to say
};

// `trains`: the pass is one of training, so that its logits are of every row.
Inferred infer_model(const std::vector<PassProduct>& pass, bool trains);

// Of the FLOPs of all products of a run, the share that such a model explains, on the way forward and back.
struct SizedCalls {
  std::int64_t m = 0, n = 0, k = 0, calls = 0;
};
double explained(const ShapesModel& model, const std::vector<SizedCalls>& calls);

// Values in a head, as the names of fused attention kernels say it; 0: this one does not.
std::int64_t head_dim_of_kernel(std::string_view name);

}  // namespace llmprof::analyze
