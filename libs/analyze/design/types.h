#pragma once
// How a model is run: the types of its numbers, where they are not those of its config.

#include <string>

#include "model/config.h"

namespace llmprof::analyze::design {

// "" leaves what the config says.
struct WantedTypes {
  std::string weights;      // two bytes and more: of everything; less: of the layers' matrices, as quantisation does
  std::string kv;           // of the cache
  std::string activations;  // between operators
  std::string arithmetic;   // of the products
};

Result<void> apply_types(model::Config& config, const WantedTypes& wanted);

}  // namespace llmprof::analyze::design
