#include "model/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/human.h"
#include "base/text_table.h"
#include "model/checkpoint/tensor_names.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/quantization.h"

namespace llmprof::model {

// What a checkpoint has and the analysis has not, and the other way round, in a few lines.

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

namespace {

std::string type_of(const std::string& stored) {
  if (const std::optional<Number> number = number_of(stored)) return number->type;
  std::string lower = base::shorten(base::printable(stored), 32);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// No weight is of these types: they hold several of 2 to 6 bits (bitsandbytes, ModelOpt, MLX).
bool is_container(std::string_view type) { return type == "U8" || type == "U32" || type == "I32"; }

// Sizes of strange files can add up to anything.
void add_to(std::int64_t& sum, std::int64_t values) {
  if (__builtin_add_overflow(sum, values, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

class Join {
 public:
  Join(TensorList list, Config& config) : list_(std::move(list)), config_(config), graph_(config) {}

  Checkpoint run() {
    found_.format = list_.format;
    found_.files = list_.files;
    found_.notes = list_.notes;
    found_.sizes_known = list_.sizes_known;
    outer_ = graph_.layer_prefix().substr(0, graph_.layer_prefix().rfind('.') + 1);
    expect_group(graph_.first(), "");
    expect_group(graph_.last(), "");
    for (const Graph::Group& group : graph_.groups()) expect_layers(group);
    for (const StoredTensor& tensor : list_.tensors) place(tensor);
    settle_packed();
    if (list_.sizes_known) store();
    count();
    found_.caveats = differences(
        expected_, found_.modules, unknown_,
        {.sizes_known = list_.sizes_known, .layers = config_.layers(), .layer_prefix = graph_.layer_prefix()});
    config_.caveats.insert(config_.caveats.end(), found_.caveats.begin(), found_.caveats.end());
    return std::move(found_);
  }

 private:
  void expect_group(const Graph::Group& group, const std::string& prefix) {
    for (const Op& op : group.ops) {
      const std::int64_t own = op.own_parameters();
      if (own > 0 || op.borrowed) expected_[prefix + op.name] = own;
    }
  }
  void expect_layers(const Graph::Group& group) {
    for (const std::int64_t layer : group.layers) {
      expect_group(group, fmt::format("{}.{}.", graph_.layer_prefix(), layer));
    }
  }

  void place(const StoredTensor& tensor) {
    ++found_.tensors;
    found_.bytes += tensor.bytes;
    TensorName name = parse_tensor_name(tensor.name);
    if (name.role == TensorRole::kBuffer) {
      found_.buffer_bytes += tensor.bytes;
      return;
    }
    if (name.role == TensorRole::kParameters && is_container(tensor.type)) name.role = TensorRole::kPacked;
    const std::vector<std::string> ops =
        ops_of(name, [&](const std::string& op) { return expected_.contains(path_of(name.layer, op)); });
    const auto share = static_cast<std::int64_t>(std::max<std::size_t>(1, ops.size()));
    for (const std::string& op : ops) add(path_of(name.layer, op), tensor, name.role, share);
    if (!ops.empty()) return;
    const std::string path = path_of(name.layer, name.op);
    add(path, tensor, name.role, 1);
    unknown_.push_back({path, name.layer, tensor.values, tensor.bytes});
  }

  // OPT has "decoder.embed_tokens" beside its "decoder.layers", and "lm_head".
  std::string path_of(const std::optional<std::int64_t>& layer, const std::string& op) const {
    if (layer) return fmt::format("{}.{}.{}", graph_.layer_prefix(), *layer, op);
    const std::string inside = outer_ + op;
    return expected_.contains(inside) ? inside : op;
  }

  void add(const std::string& path, const StoredTensor& tensor, TensorRole role, std::int64_t share) {
    StoredModule& module = found_.modules[path];
    const std::uint64_t bytes = tensor.bytes / static_cast<std::uint64_t>(share);
    if (role == TensorRole::kParameters) add_to(module.parameters, tensor.values / share);
    module.packed = module.packed || role == TensorRole::kPacked;
    module.bytes += bytes;
    std::uint64_t& largest = largest_[path];
    if (role != TensorRole::kSide && (module.type.empty() || bytes > largest)) {
      module.type = type_of(tensor.type);
      largest = bytes;
    }
  }

  // How many values are in a packed tensor is said elsewhere, if at all: the shape of the module settles it.
  void settle_packed() {
    std::optional<Coverage> coverage;
    if (config_.quantization) coverage.emplace(*config_.quantization);
    for (auto& [path, module] : found_.modules) {
      if (!module.packed) continue;
      const auto expected = expected_.find(path);
      module.parameters = expected != expected_.end() ? expected->second : 0;
      const bool quantised = coverage && coverage->covers(path);
      module.type = quantised ? config_.quantization->weight.type : "packed " + module.type;
    }
  }

  void store() {
    std::map<std::string, std::uint64_t> bytes_of_type;
    for (const auto& [path, module] : found_.modules) {
      if (!expected_.contains(path) || module.parameters <= 0) continue;
      config_.stored[path] = {module.type, static_cast<double>(module.bytes) / static_cast<double>(module.parameters)};
      if (!module.packed) bytes_of_type[module.type] += module.bytes;
    }
    if (config_.tied_embeddings && !found_.modules.contains("lm_head")) {
      for (const char* table : {"embed_tokens", "wte"}) {
        if (const auto number = config_.stored.find(table); number != config_.stored.end())
          config_.stored["lm_head"] = number->second;
      }
    }
    const auto most = std::ranges::max_element(bytes_of_type, {}, [](const auto& entry) { return entry.second; });
    if (most == bytes_of_type.end() || config_.quantization || most->first == config_.weight.type) return;
    const std::optional<Number> number = number_of(most->first);
    if (!number) return;
    if (list_.format != "GGUF") {  // whose config says nothing of weights
      found_.notes.push_back(fmt::format("the config says {}, most of the checkpoint is {}: the checkpoint counts",
                                         config_.weight.type, number->type));
    }
    config_.weight = *number;
  }

  void count() {
    for (const auto& [path, module] : found_.modules) {
      const auto expected = expected_.find(path);
      const bool copy = expected != expected_.end() && expected->second == 0;  // a tied lm_head, stored all the same
      if (!copy) add_to(found_.parameters, module.parameters);
      if (copy && found_.sizes_known) {
        found_.notes.push_back(
            fmt::format("{} is stored although it is tied: {} in the files that memory need not hold", path,
                        base::human_bytes(static_cast<double>(module.bytes))));
      }
    }
    if (!found_.sizes_known) compare_sum();
    if (found_.sizes_known && list_.announced_bytes > 0 && list_.announced_bytes != found_.bytes) {
      found_.notes.push_back(fmt::format("the index says {} bytes, the files have {}: the files count",
                                         list_.announced_bytes, found_.bytes));
    }
  }

  // Of an index without its files: the one number that it has.
  void compare_sum() {
    found_.bytes = list_.announced_bytes;
    const double analysed = weights_bytes(graph_);
    if (found_.bytes == 0 || static_cast<double>(found_.bytes) == analysed) return;
    found_.notes.push_back(fmt::format("the index says {} of weights, the analysis {}",
                                       base::human_bytes(static_cast<double>(found_.bytes)),
                                       base::human_bytes(analysed)));
  }

  TensorList list_;
  Config& config_;
  const Graph graph_;
  std::string outer_;                             // what stands before the list of layers: "decoder." or nothing
  std::map<std::string, std::int64_t> expected_;  // parameters by module path; 0: those of another module
  std::map<std::string, std::uint64_t> largest_;  // tensor of a module that gave it its type
  std::vector<UnknownTensor> unknown_;
  Checkpoint found_;
};

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

Checkpoint join_checkpoint(TensorList list, Config& config) { return Join(std::move(list), config).run(); }

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
