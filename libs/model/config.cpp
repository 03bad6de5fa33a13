#include <fmt/format.h>

#include <array>

#include "base/json.h"
#include "base/text_table.h"
#include "model/families.h"
#include "model/model.h"

namespace llmprof::model {
namespace {

struct NumberType {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array kNumberTypes{NumberType{"float32", 4}, NumberType{"bfloat16", 2}, NumberType{"float16", 2}};

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
  const Family* family = find_family(name);
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
  for (const NumberType& type : kNumberTypes) {
    if (type.name != name) continue;
    config.type = name;
    config.weight_bytes = config.kv_bytes = config.activation_bytes = type.bytes;
    return;
  }
  fields.reject(ErrorCode::kUnsupported,
                fmt::format("{}: \"{}\" is not supported", key, base::shorten(base::printable(name), 40)),
                "known types: float32, bfloat16, float16");
}

// In floating point: the product of absurd sizes must not wrap before it is refused.
void check_size(Fields& fields, const Config& config) {
  const double attention = static_cast<double>(config.heads) * static_cast<double>(config.head_dim);
  const double widest =
      std::max({static_cast<double>(config.hidden), static_cast<double>(config.intermediate), attention});
  const double layers = static_cast<double>(config.layers) * 8 * widest * static_cast<double>(config.hidden);
  const double tables = 2 * static_cast<double>(config.vocab + config.positions) * static_cast<double>(config.hidden);
  if (layers + tables > kMaxParameters) {
    fields.reject(ErrorCode::kCorruptInput,
                  fmt::format("the sizes make a model of up to {:.1e} parameters", layers + tables),
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

Result<Config> parse_config(std::string_view json_text, std::string_view where) {
  LLMPROF_LET(const base::Json json, parse_text(json_text, where));
  if (!json.is_object()) return Error{ErrorCode::kCorruptInput, fmt::format("{}: not a JSON object", where), ""};
  Fields fields(json, where);
  const Family* family = family_of(fields);
  if (fields.error()) return *fields.error();
  Config config = family->read(fields);
  read_type(fields, config);
  if (fields.has("quantization_config")) {
    fields.reject(ErrorCode::kUnsupported, "quantization_config: quantised weights are not supported");
  }
  check_size(fields, config);
  if (fields.error()) return *fields.error();
  return config;
}

}  // namespace llmprof::model
