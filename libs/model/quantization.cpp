// quantization_config: the method, the modules it leaves alone, the type of the cache.

#include "model/quantization.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"
#include "model/pattern.h"
#include "model/quantization_methods.h"

namespace llmprof::model {
namespace {

constexpr std::size_t kMaxNames = 10'000, kMaxPatternBytes = 4096;

std::string shown(std::string_view text) { return base::shorten(base::printable(text), 40); }

// Files from before quant_method was written.
std::string method_of(Fields& q) {
  std::string name = lower_case(q.text_or("quant_method", ""));
  if (!name.empty()) return name;
  if (q.flag_or("load_in_4bit", false) || q.flag_or("load_in_8bit", false)) return "bitsandbytes";
  if (q.has("quant_algo")) return "modelopt";
  if (q.has("config_groups")) return "compressed-tensors";
  if (q.has("desc_act") || q.has("sym")) return "gptq";
  return q.has("bits") ? "mlx" : "";
}

bool is_pattern(std::string_view entry) {
  return entry.starts_with("re:") || entry.find('*') != std::string_view::npos;
}

bool is_understood(std::string_view entry) {
  return !entry.starts_with("re:") || Pattern::compile(entry.substr(3)).has_value();
}

// Every module is compared with every entry: their number is bounded, and the text of those that are patterns.
void check_names(Fields& q, std::string_view key, std::vector<std::string>& names) {
  std::size_t pattern_bytes = 0, kept = 0;
  std::string refused;
  for (std::string& name : names) {
    if (is_pattern(name)) pattern_bytes += name.size();
    const bool fits = kept < kMaxNames && (!is_pattern(name) || pattern_bytes <= kMaxPatternBytes);
    if (fits && is_understood(name)) {
      std::swap(names[kept++], name);
    } else if (refused.empty()) {
      refused = name;
    }
  }
  if (kept == names.size()) return;
  q.caveat(key, fmt::format("{} of {} entries are not understood, the first is \"{}\": weight bytes are rough",
                            names.size() - kept, names.size(), shown(refused)));
  names.resize(kept);
}

void read_ignored(Fields& q, Quantization& out) {
  for (const char* key :
       {"ignore", "modules_to_not_convert", "ignored_layers", "exclude", "exclude_modules", "llm_int8_skip_modules"}) {
    for (std::string& name : q.texts(key)) out.ignore.push_back(std::move(name));
  }
  check_names(q, "ignore", out.ignore);
  check_names(q, "targets", out.only);
}

void read_cache(Fields& q, Config& config) {
  const base::Json* scheme = q.find("kv_cache_scheme");
  if (scheme != nullptr && scheme->is_object()) {
    Fields args(*scheme, q, "kv_cache_scheme");
    config.kv = scheme_number(args);
    q.adopt(args);
  }
  const std::string algorithm = q.text_or("kv_cache_quant_algo", "");
  if (algorithm.empty() || lower_case(algorithm) == "none") return;
  if (const std::optional<Number> number = number_of(algorithm)) {
    config.kv = *number;
  } else {
    q.caveat("kv_cache_quant_algo",
             fmt::format("\"{}\" is not understood: the cache is counted as {}", shown(algorithm), config.kv.type));
  }
}

}  // namespace

void read_quantization(Fields& fields, Config& config) {
  const base::Json* mlx = fields.find("quantization");  // written twice, or under this name only
  const char* key = fields.has("quantization_config") ? "quantization_config" : "quantization";
  const base::Json* json = fields.has("quantization_config") ? fields.find(key) : mlx;
  if (json == nullptr) return;
  if (!json->is_object()) {
    fields.reject(ErrorCode::kCorruptInput, fmt::format("{}: not a JSON object", fields.path(key)));
    return;
  }
  Fields q(*json, fields, key);
  Quantization out{.method = method_of(q), .weight = config.weight, .arithmetic = "", .ignore = {}, .only = {}};
  read_method(q, out);
  read_ignored(q, out);
  read_cache(q, config);
  fields.adopt(q);
  config.quantization = std::move(out);
}

}  // namespace llmprof::model
