#pragma once
// The model families. To add one: a file in families/, a line in families.cpp, a test of its parameter count.

#include <span>
#include <string_view>

#include "model/fields.h"
#include "model/op.h"

namespace llmprof::model {

struct Family {
  std::string_view name;           // model_type in config.json, Config::family
  Config (*read)(Fields& fields);  // errors stay in `fields`
  Structure (*describe)(const Config& config);
};

extern const Family kGpt2;
extern const Family kLlama;

std::span<const Family* const> families();
const Family* find_family(std::string_view name);  // nullptr if unknown

}  // namespace llmprof::model
