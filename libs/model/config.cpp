#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text_table.h"
#include "model/families.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

// More parameters than any machine holds; below it no product of the analysis overflows 64 bits.
constexpr double kMaxParameters = 1e15;

std::string known_families() {
  std::string names;
  for (const Family* family : families()) names += (names.empty() ? "" : ", ") + std::string(family->name);
  return names;
}

const Family* family_of(Fields& fields) {
  if (!fields.has("model_type")) {
    fields.reject(ErrorCode::kCorruptInput, "model_type is missing", "is this the config.json of the model?");
  }
  const std::string name = fields.text_or("model_type", "");
  const Family* family = family_of_model_type(name);
  if (family == nullptr) {
    const std::string shown = base::shorten(base::printable(name), 40);
    fields.reject(ErrorCode::kUnsupported, fmt::format("model_type: \"{}\" is not supported", shown),
                  fmt::format("known families: {}", known_families()));
  }
  return family;
}

void read_type(Fields& fields, Config& config) {
  const char* key = fields.has("dtype") ? "dtype" : "torch_dtype";  // newer files, older files
  const std::string name = fields.text_or(key, "float32");
  if (const std::optional<Number> number = number_of(name)) {
    config.set_type(*number);
    return;
  }
  fields.reject(ErrorCode::kUnsupported,
                fmt::format("{}: \"{}\" is not supported", key, base::shorten(base::printable(name), 40)),
                "known types: float32, bfloat16, float16");
}

// In floating point: the product of absurd sizes must not wrap before it is refused.
double most_parameters(const Config& config) {
  double total = 2 * static_cast<double>(config.vocab + config.positions) * static_cast<double>(config.hidden);
  for (const std::uint32_t index : config.kind_of_layer) {
    const auto& [attention, mlp] = config.kinds[index];
    const double heads = static_cast<double>(attention.heads) * static_cast<double>(attention.qk_dim + attention.v_dim);
    const double experts = static_cast<double>(std::max<std::int64_t>(1, mlp.experts));
    const double width = static_cast<double>(mlp.width) * experts + static_cast<double>(mlp.shared_width);
    total += static_cast<double>(config.hidden) * 4 * (heads + width);
  }
  return total;
}

void check_size(Fields& fields, const Config& config) {
  const double parameters = most_parameters(config);
  if (parameters > kMaxParameters) {
    fields.reject(ErrorCode::kCorruptInput,
                  fmt::format("the sizes make a model of up to {:.1e} parameters", parameters),
                  "check the sizes in the file");
  }
}

// The JSON library throws something else than a parse error for a number beyond double ("1e999").
Result<base::Json> parse_text(std::string_view json_text, std::string_view where) {
  try {
    return base::parse_json(json_text, where);
  } catch (const base::Json::exception&) {
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: a number is out of range", where), ""};
  }
}

}  // namespace

void Config::set_type(const Number& number) {
  weight = kv = activation = number;
  arithmetic = number.type;
}

void add_layer(Config& config, const LayerKind& kind) {
  const auto same = std::find(config.kinds.begin(), config.kinds.end(), kind);
  config.kind_of_layer.push_back(static_cast<std::uint32_t>(same - config.kinds.begin()));
  if (same == config.kinds.end()) config.kinds.push_back(kind);
}

void set_layers(Config& config, std::int64_t layers, const LayerKind& kind) {
  config.kinds = {kind};
  config.kind_of_layer.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, layers)), 0);
}

Result<void> set_types(Config& config, const Types& types) {
  const auto set = [](const std::string& name, Number& number) -> Result<void> {
    if (name.empty()) return {};
    const std::optional<Number> known = number_of(name);
    if (!known) return Error{ErrorCode::kUsage, fmt::format("'{}' is not a type of numbers", name), ""};
    number = *known;
    return {};
  };
  if (!types.weight.empty()) {
    Number number;
    LLMPROF_TRY(set(types.weight, number));
    config.set_type(number);
    config.quantization.reset();
    config.stored.clear();
  }
  LLMPROF_TRY(set(types.kv, config.kv));
  return set(types.activation, config.activation);
}

Result<Config> parse_config(std::string_view json_text, std::string_view where) {
  LLMPROF_LET(const base::Json json, parse_text(json_text, where));
  if (!json.is_object()) return Error{ErrorCode::kCorruptInput, fmt::format("{}: not a JSON object", where), ""};
  Fields fields(json, where);
  const Family* family = family_of(fields);
  if (fields.error()) return *fields.error();
  Config config = family->read(fields);
  config.family = family->name;
  read_type(fields, config);
  if (fields.has("quantization_config")) {
    fields.reject(ErrorCode::kUnsupported, "quantization_config: quantised weights are not supported");
  }
  check_size(fields, config);
  if (fields.error()) return *fields.error();
  return config;
}

}  // namespace llmprof::model
