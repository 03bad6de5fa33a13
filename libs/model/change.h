#pragma once
// One number of a model changed: "kv_heads=4", "dtype=float8". What `whatif` and `predict` take as --set.

#include <span>
#include <string_view>

#include "model/config.h"

namespace llmprof::model {

// "heads", "kv_heads", "dtype", …
std::span<const std::string_view> change_keys();
bool is_change_key(std::string_view key);

// All layers alike. Sizes that a checkpoint's headers gave are dropped: they are of the model as it was. Errors: a
// value that is none, a model that cannot have it (heads that do not share key-value heads evenly). `key` is one of the
// keys.
Result<void> change(Config& config, std::string_view key, std::string_view value);

}  // namespace llmprof::model
