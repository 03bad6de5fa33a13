#pragma once
// Which model a run is of, and how that is known. docs/format/analysis.md states the order of precedence.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/passes/products.h"
#include "analyze/summary.h"
#include "model/config.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct FoundModel {
  std::optional<model::Config> config;
  std::string text;                    // JSON; "" if unknown
  std::string source;                  // "option", "given", "declared", "opened", "shapes", "products"; "" if unknown
  std::string origin;                  // the same in words, with the file or name
  std::string note;                    // what a reader should know: other candidates, types as executed
  std::string why;                     // why there is none
  std::optional<std::int64_t> tensor;  // over how many ranks its matrices are split, by the sizes of the products
};

// A --model that cannot be read is an error; anything that the run itself says and we do not understand is not.
Result<FoundModel> find_model(const trace::Run& run, const Options& options);

// ---- parts of it, for tests ----------------------------------------------------------------------------------

// Of the products of a pass, the share with a size that was called.
double share_called(const model::Config& config, const SizeCounts& counts);

// Over how many ranks the matrices of a model were split, by the sizes of the products: 1 where its own were called,
// nullopt where nothing fits.
std::optional<std::int64_t> tensor_ranks(const model::Config& whole, const SizeCounts& counts);

struct Recognised {
  std::string name;               // built-in; "" if no model stands out
  std::vector<std::string> same;  // others with the same products
  std::vector<std::string> near;  // whose layers would fit, but something does not
};
// The built-in model all of whose products were called, each as often as its layers demand; where there is none, the
// one that each of several devices has a part of.
Recognised recognise(const SizeCounts& counts);

// ---- a model that nobody described (infer_model.cpp) ---------------------------------------------------------
// Told from the products of its passes: a layer is what repeats, and the sizes of its matrices say what each of them
// is. Only where every product of a pass has its place; docs/format/analysis.md states the rules in words.

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
