#pragma once
// What a checkpoint has and the analysis has not, and the other way round, in a few lines.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint.h"

namespace llmprof::model {

struct UnknownTensor {
  std::string path;  // of its module
  std::optional<std::int64_t> layer;
  std::int64_t values = 0;
  std::uint64_t bytes = 0;
};

struct DifferenceContext {
  bool sizes_known = true;
  std::int64_t layers = 0;
  std::string layer_prefix;
};

// `expected`: parameters by module path, 0 for those of another module. Layers that differ alike are one line.
std::vector<Caveat> differences(const std::map<std::string, std::int64_t>& expected,
                                const std::map<std::string, StoredModule>& stored,
                                const std::vector<UnknownTensor>& unknown, const DifferenceContext& context);

}  // namespace llmprof::model
