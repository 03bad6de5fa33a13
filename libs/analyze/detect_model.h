#pragma once
// Which model a run is of, and how that is known. docs/format/analysis.md states the order of precedence.

#include <optional>
#include <string>
#include <vector>

#include "analyze/passes/products.h"
#include "analyze/summary.h"
#include "model/config.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct FoundModel {
  std::optional<model::Config> config;
  std::string text;    // JSON; "" if unknown
  std::string source;  // "option", "given", "declared", "opened", "shapes", "products"; "" if unknown
  std::string origin;  // the same in words, with the file or name
  std::string note;    // what a reader should know: other candidates, types as executed
  std::string why;     // why there is none
};

// A --model that cannot be read is an error; anything that the run itself says and we do not understand is not.
Result<FoundModel> find_model(const trace::Run& run, const Options& options);

// ---- parts of it, for tests ----------------------------------------------------------------------------------

// Of the products of a pass, the share with a size that was called.
double share_called(const model::Config& config, const SizeCounts& counts);

// Over how many devices the matrices of a model were split, by the sizes of the products: 1 where its own were called,
// or nothing fits.
std::int64_t tensor_ranks(const model::Config& whole, const SizeCounts& counts);

struct Recognised {
  std::string name;               // built-in; "" if no model stands out
  std::vector<std::string> same;  // others with the same products
  std::vector<std::string> near;  // whose layers would fit, but something does not
};
// The built-in model all of whose products were called, each as often as its layers demand; where there is none, the
// one that each of several devices has a part of.
Recognised recognise(const SizeCounts& counts);

}  // namespace llmprof::analyze
