// quantization_config: the method, the modules it leaves alone, the type of the cache.

#include "model/quantization.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text_table.h"
#include "model/pattern.h"

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

// Where checkpoints keep the language model; our paths begin after it.
constexpr std::string_view kRoots[] = {"model.language_model.", "language_model.model.", "language_model.",
                                       "transformer.", "model."};

std::string_view without_root(std::string_view name) {
  for (const std::string_view root : kRoots) {
    if (name.starts_with(root)) return name.substr(root.size());
  }
  return name;
}

// `*` stands for any letters. Looks back to the last star only: the time is at most the product of the lengths.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_run_of_parts(std::string_view part, std::string_view path) {
  for (std::size_t at = path.find(part); at != std::string_view::npos; at = path.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || path[at - 1] == '.') && (end == path.size() || path[end] == '.')) return true;
  }
  return false;
}

// Our path stands for all experts; patterns name single ones.
std::string with_an_expert(std::string_view path) {
  constexpr std::string_view kExperts = ".experts.";
  const std::size_t at = path.find(kExperts);
  if (at == std::string_view::npos) return "";
  return fmt::format("{}.experts.0.{}", path.substr(0, at), path.substr(at + kExperts.size()));
}

// Outside of groups.
bool has_alternatives(std::string_view pattern) {
  int depth = 0;
  for (const char letter : pattern) {
    if (letter == '(') ++depth;
    if (letter == ')') --depth;
    if (letter == '|' && depth == 0) return true;
  }
  return false;
}

class NameList {
 public:
  explicit NameList(const std::vector<std::string>& entries) {
    for (const std::string_view entry : entries) {
      if (entry.empty()) continue;
      if (entry.starts_with("re:")) {
        add_pattern(entry.substr(3));
      } else if (entry.find('*') != std::string_view::npos) {
        globs_.emplace_back(without_root(entry));
      } else if (const std::string_view name = without_root(entry); name.starts_with("layers.")) {
        beginnings_.emplace(name);
      } else {
        parts_.emplace_back(name);
      }
    }
  }

  bool names(std::string_view path) const {
    if (begins_with_one(path)) return true;
    for (const std::string& part : parts_) {
      if (is_run_of_parts(part, path)) return true;
    }
    for (const std::string& pattern : globs_) {
      if (glob(pattern, path) || glob(pattern + ".*", path) || glob("*." + pattern, path)) return true;
    }
    return !patterns_.empty() && (pattern_matches(path) || pattern_matches(with_an_expert(path)));
  }

 private:
  bool begins_with_one(std::string_view path) const {
    if (beginnings_.empty()) return false;
    for (std::size_t end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1)) {
      if (beginnings_.contains(path.substr(0, end))) return true;
    }
    return beginnings_.contains(path);
  }

  void add_pattern(std::string_view text) {
    std::optional<Pattern> pattern = Pattern::compile(text);
    if (pattern) patterns_.push_back({std::move(*pattern), text.starts_with(".*") && !has_alternatives(text)});
  }

  bool pattern_matches(std::string_view path) const {
    if (path.empty()) return false;
    const std::string nested = fmt::format("language_model.model.{}", path);
    const std::string_view rooted = std::string_view(nested).substr(nested.find('.') + 1);
    for (const auto& [pattern, anywhere] : patterns_) {
      if (pattern.matches(nested)) return true;
      if (!anywhere && (pattern.matches(rooted) || pattern.matches(path))) return true;
    }
    return false;
  }

  struct Named {
    Pattern pattern;
    bool anywhere;  // begins with ".*": what matches the end of a path matches the path
  };
  std::set<std::string, std::less<>> beginnings_;  // "layers.0.mlp": lists of these are long
  std::vector<std::string> parts_, globs_;
  std::vector<Named> patterns_;
};

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

// Which modules a quantisation leaves alone. The methods write their lists differently: full names, last or middle
// parts of names, "*" for anything, "re:" and a pattern. One rule reads them all: an entry names a run of whole parts
// of the path ("gate" is "mlp.gate" but not "mlp.gate_proj").

struct Coverage::Lists {
  NameList ignored, only;
  bool all;
};

Coverage::Coverage(const Quantization& quantization)
    : lists_(new Lists{NameList(quantization.ignore), NameList(quantization.only), quantization.only.empty()}) {}

Coverage::~Coverage() = default;

bool Coverage::covers(std::string_view module) const {
  return !lists_->ignored.names(module) && (lists_->all || lists_->only.names(module));
}

bool covers(const Quantization& quantization, std::string_view module) { return Coverage(quantization).covers(module); }

}  // namespace llmprof::model
