#pragma once
// The model families. To add one: a section of a file in families/, a line in families.cpp, a test of its parameter
// count.

#include <span>
#include <string_view>
#include <vector>

#include "model/fields.h"
#include "model/op.h"

namespace llmprof::model {

// Layers and names as Llama has them.
Structure plain_structure(const Config& config);

struct Family {
  std::string_view name;                      // Config::family
  std::vector<std::string_view> model_types;  // of config.json
  // Errors stay in `fields`; types are read by the caller. Config::family may be set to another that describes it.
  Config (*read)(Fields& fields);
  Structure (*describe)(const Config& config) = plain_structure;
};

std::span<const Family* const> families();
const Family* find_family(std::string_view name);           // nullptr if unknown
const Family* family_of_model_type(std::string_view type);  // nullptr if unknown

}  // namespace llmprof::model
