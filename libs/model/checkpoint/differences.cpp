#include "model/checkpoint/differences.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/text_table.h"

namespace llmprof::model {
namespace {

constexpr std::size_t kMostLines = 12;  // a checkpoint of another model differs everywhere

// "layers.3.mlp.up_proj" is "layers.*.mlp.up_proj".
std::string without_number(const std::string& path, const std::string& layer_prefix) {
  if (!path.starts_with(layer_prefix + ".")) return path;
  const std::size_t end = path.find('.', layer_prefix.size() + 1);
  return end == std::string::npos ? path : layer_prefix + ".*" + path.substr(end);
}

struct Sum {
  std::int64_t tensors = 0;
  double values = 0, bytes = 0;
};

// A tower of its own is one line; layers beyond the config's are one line each; the rest one line per operator.
std::string group_of(const UnknownTensor& tensor, const DifferenceContext& context) {
  if (!tensor.layer)
    return tensor.path.substr(0, tensor.path.find('.')) + (tensor.path.find('.') != std::string::npos ? ".*" : "");
  if (*tensor.layer >= context.layers) return fmt::format("{}.{}.*", context.layer_prefix, *tensor.layer);
  return without_number(tensor.path, context.layer_prefix);
}

std::string amount(const Sum& sum, bool sizes_known) {
  const std::string tensors = fmt::format("{} tensor{}", sum.tensors, sum.tensors == 1 ? "" : "s");
  if (!sizes_known) return tensors;
  return fmt::format("{}, {} values, {}", tensors, base::human_count(sum.values), base::human_bytes(sum.bytes));
}

std::vector<Caveat> of_unknown(const std::vector<UnknownTensor>& unknown, const DifferenceContext& context) {
  std::map<std::string, Sum> groups;
  std::map<std::string, bool> beyond;
  for (const UnknownTensor& tensor : unknown) {
    const std::string group = group_of(tensor, context);
    Sum& sum = groups[group];
    ++sum.tensors;
    sum.values += static_cast<double>(tensor.values);
    sum.bytes += static_cast<double>(tensor.bytes);
    beyond[group] = tensor.layer && *tensor.layer >= context.layers;
  }
  std::vector<Caveat> caveats;
  for (const auto& [group, sum] : groups) {
    const std::string why =
        beyond[group] ? fmt::format(" (the config has {} layers; next-token prediction?)", context.layers) : "";
    caveats.push_back({base::shorten(base::printable(group), 80),
                       fmt::format("in the checkpoint ({}), not in the analysis{}: its costs are not counted",
                                   amount(sum, context.sizes_known), why)});
  }
  return caveats;
}

struct Mismatch {
  std::int64_t modules = 0, expected = 0, stored = 0;  // numbers of one of them
};

std::vector<Caveat> of_modules(const std::map<std::string, std::int64_t>& expected,
                               const std::map<std::string, StoredModule>& stored, const DifferenceContext& context) {
  std::map<std::string, Mismatch> missing, other;
  for (const auto& [path, parameters] : expected) {
    if (parameters == 0) continue;
    const auto found = stored.find(path);
    const bool differs = found != stored.end() && context.sizes_known && found->second.parameters != parameters;
    if (found != stored.end() && !differs) continue;
    Mismatch& mismatch = (differs ? other : missing)[without_number(path, context.layer_prefix)];
    ++mismatch.modules;
    mismatch.expected = parameters;
    mismatch.stored = differs ? found->second.parameters : 0;
  }
  std::vector<Caveat> caveats;
  for (const auto& [path, mismatch] : missing) {
    caveats.push_back(
        {path, fmt::format("in the analysis ({} parameters{}), not in the checkpoint", mismatch.expected,
                           mismatch.modules > 1 ? fmt::format(" in each of {} layers", mismatch.modules) : "")});
  }
  for (const auto& [path, mismatch] : other) {
    caveats.push_back(
        {path,
         fmt::format("{} parameters in the checkpoint, {} in the analysis{}: FLOPs follow the config", mismatch.stored,
                     mismatch.expected, mismatch.modules > 1 ? fmt::format(" ({} layers)", mismatch.modules) : "")});
  }
  return caveats;
}

}  // namespace

std::vector<Caveat> differences(const std::map<std::string, std::int64_t>& expected,
                                const std::map<std::string, StoredModule>& stored,
                                const std::vector<UnknownTensor>& unknown, const DifferenceContext& context) {
  std::vector<Caveat> caveats = of_modules(expected, stored, context);
  for (Caveat& caveat : of_unknown(unknown, context)) caveats.push_back(std::move(caveat));
  if (caveats.size() > kMostLines) {
    const std::size_t more = caveats.size() - kMostLines;
    caveats.resize(kMostLines);
    caveats.push_back({"checkpoint", fmt::format("{} more differences: is this the config of this checkpoint?", more)});
  }
  return caveats;
}

}  // namespace llmprof::model
