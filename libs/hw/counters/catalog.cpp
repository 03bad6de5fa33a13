#include "hw/counters/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/asset.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/suggest.h"

namespace llmprof::hw_counters {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets
}

namespace llmprof::hw::counters {
namespace {

CatalogFile load() {
  const std::string_view name = "counters/catalog.json";
  Result<CatalogFile> file = parse_catalog(base::find_asset(hw_counters::assets(), name), name);
  return file ? std::move(*file) : CatalogFile{};  // a test holds the file to be readable
}

const CatalogFile& file() {
  static const CatalogFile kFile = load();
  return kFile;
}

template <class Named>
const Named* find_named(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <class T>
void add_once(std::vector<T>& all, const T& one) {
  if (!contains(all, one)) all.push_back(one);
}

// "GA*" and "?"; both are short.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && matches(pattern.substr(1), text.substr(1));
}

// The last pattern that matches decides.
bool is_for(const Formula& formula, std::string_view chip) {
  bool fits = formula.chips.empty();
  for (const std::string_view pattern : formula.chips) {
    const bool out = pattern.starts_with('!');
    if (matches(pattern.substr(out ? 1 : 0), chip)) fits = !out;
  }
  return fits;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (std::string word(base::trimmed(text.substr(begin, end - begin))); !word.empty())
      words.push_back(std::move(word));
    begin = end + 1;
  }
  return words;
}

std::string letters_and_digits(std::string_view name) {
  std::string out;
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0) out += static_cast<char>(std::toupper(c));
  }
  return out;
}

std::string set_names() {
  std::string names;
  for (const Set& set : sets()) names += (names.empty() ? "" : ", ") + set.name;
  return names;
}

Error unknown(const std::string& word) {
  std::vector<std::string_view> known;
  for (const Set& set : sets()) known.push_back(set.name);
  for (const Counter& counter : catalog()) known.push_back(counter.name);
  return {ErrorCode::kUsage, fmt::format("there is no counter or set of counters `{}`", word),
          fmt::format("{}Sets are {}; `llmprof counters` lists the counters. Metrics of the chip are accepted by their "
                      "own names, such as dram__bytes_read.sum.",
                      base::did_you_mean(word, known), set_names())};
}

Result<void> take(Selection& selection, const std::string& word) {
  if (const Set* set = find_set(word)) {
    for (const std::string& name : set->counters) add_once(selection.counters, find_counter(name));
    for (const std::string& name : set->sampled) add_once(selection.sampled, find_counter(name));
  } else if (const Counter* counter = find_counter(word)) {
    add_once(selection.counters, counter);
    add_once(selection.sampled, counter);
  } else if (word.find("__") == std::string::npos) {
    return unknown(word);
  } else if (word.find('.') == std::string::npos) {
    return Error{
        ErrorCode::kUsage, fmt::format("`{}` does not say which value of the metric is meant", word),
        fmt::format("Add .sum, .avg, .max or .min ({}.sum), or .pct or .ratio where the metric is a ratio.", word)};
  } else {
    add_once(selection.raw, word);
  }
  return {};
}

// In ranges, what is apart is left out beside something that is not; the GPU's time goes with both.
bool leaves_out_apart(const Selection& selection, Method method) {
  if (method == Method::kSampled) return false;
  return std::any_of(selection.counters.begin(), selection.counters.end(),
                     [](const Counter* counter) { return !counter->apart && counter->name != "gpu_time_ns"; });
}

// Hits and misses of a short kernel, counted in passes over different launches of it, may come to 600 % hits.
bool is_possible(const Counter& counter, double value) {
  constexpr double kSlack = 1;
  return counter.unit != "%" || (value >= 0 && value <= 100 + kSlack);
}

using base::Json;

Error bad(std::string_view where, const std::string& what) { return corrupt_error("{}: {}", where, what); }

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool flag_of(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}

Result<Formula> read_formula(const Json& json) {
  Formula formula{.text = text_of(json, "text"),
                  .chips = texts_of(json, "chips"),
                  .metrics = {},
                  .expression = {},
                  .sampled = flag_of(json, "sampled", true),
                  .ranges = flag_of(json, "ranges", true)};
  LLMPROF_LET(formula.expression, parse_formula(formula.text));
  formula.metrics = formula.expression.metrics;
  return formula;
}

Result<Counter> read_counter(const Json& json, std::string_view where) {
  Counter counter{.name = text_of(json, "name"),
                  .unit = text_of(json, "unit"),
                  .meaning = text_of(json, "meaning"),
                  .denominator = text_of(json, "of"),
                  .together = Aggregation::kSum,
                  .apart = flag_of(json, "apart", false),
                  .formulas = {}};
  if (counter.name.empty() || counter.unit.empty() || counter.meaning.empty()) {
    return bad(where, fmt::format("a counter ({}) lacks its name, unit or meaning", counter.name));
  }
  if ((counter.unit == "%") != !counter.denominator.empty()) {
    return bad(where, fmt::format("{}: a percentage, and nothing else, says of what", counter.name));
  }
  const std::string together = text_of(json, "together");
  if (together == "mean") counter.together = Aggregation::kMean;
  if (together == "mean by time") counter.together = Aggregation::kMeanByTime;
  if (together != "sum" && counter.together == Aggregation::kSum) {
    return bad(where, fmt::format("{}: together is sum, mean or mean by time", counter.name));
  }
  for (const Json& one : list_of(json, "formulas")) {
    LLMPROF_LET(Formula formula, read_formula(one));
    counter.formulas.push_back(std::move(formula));
  }
  if (counter.formulas.empty()) return bad(where, counter.name + " has no formula");
  return counter;
}

Result<void> check_set(const Set& set, const CatalogFile& file, std::string_view where) {
  const auto known = [&](const std::string& name) {
    return std::any_of(file.counters.begin(), file.counters.end(), [&](const Counter& c) { return c.name == name; });
  };
  for (const std::string& name : set.counters) {
    if (!known(name)) return bad(where, fmt::format("set {}: there is no counter {}", set.name, name));
  }
  for (const std::string& name : set.sampled) {
    if (std::find(set.counters.begin(), set.counters.end(), name) == set.counters.end()) {
      return bad(where, fmt::format("set {}: {} is sampled but not in the set", set.name, name));
    }
  }
  return {};
}

}  // namespace

std::string_view name_of(Method method) {
  if (method == Method::kRange) return "range";
  return method == Method::kKernel ? "kernel" : "sampled";
}

std::span<const Counter> catalog() { return file().counters; }
std::span<const Set> sets() { return file().sets; }
const Counter* find_counter(std::string_view name) { return find_named(file().counters, name); }
const Set* find_set(std::string_view name) { return find_named(file().sets, name); }

std::span<const std::string_view> chips() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Chip& chip : file().chips) names.emplace_back(chip.name);
    return names;
  }();
  return kNames;
}

const Chip* find_chip(std::string_view name) {
  const std::string wanted = letters_and_digits(name);
  for (const Chip& chip : file().chips) {
    if (letters_and_digits(chip.name) == wanted) return &chip;
    for (const std::string& device : chip.devices) {
      if (letters_and_digits(device) == wanted) return &chip;
    }
  }
  return nullptr;
}

const Chip* chip_of_capability(std::string_view capability) {
  const std::string wanted = letters_and_digits(capability);
  for (const Chip& chip : file().chips) {
    const std::string digits = letters_and_digits(chip.capability);
    if (wanted == digits || wanted == "SM" + digits) return &chip;
  }
  return nullptr;
}

Result<Selection> select(std::string_view text) {
  Selection selection{.text = std::string(text), .counters = {}, .raw = {}, .sampled = {}};
  for (const std::string& word : words_of(text)) LLMPROF_TRY(take(selection, word));
  if (selection.counters.empty() && selection.raw.empty()) return unknown(std::string(text));
  return selection;
}

const Formula* formula_of(const Counter& counter, std::string_view chip, Method method) {
  const Chip* known = find_named(file().chips, chip);
  if (known == nullptr || (method == Method::kSampled && !known->sampled)) return nullptr;
  for (const Formula& formula : counter.formulas) {
    const bool offered = method == Method::kSampled ? formula.sampled : formula.ranges;
    if (offered && is_for(formula, chip)) return &formula;
  }
  return nullptr;
}

ChipMetrics metrics_of(const Selection& selection, std::string_view chip, Method method) {
  ChipMetrics out;
  const bool no_apart = leaves_out_apart(selection, method);
  for (const Counter* counter : selection.counters) {
    const bool kept = method == Method::kSampled ? contains(selection.sampled, counter) : !(counter->apart && no_apart);
    const Formula* formula = kept ? formula_of(*counter, chip, method) : nullptr;
    if (formula == nullptr) {
      out.missing.push_back(counter->name);
    } else {
      for (const std::string& metric : formula->metrics) add_once(out.metrics, metric);
    }
  }
  for (const std::string& metric : selection.raw) add_once(out.metrics, metric);
  // CUPTI packs metrics into passes in the order in which it gets them; of the orders tried this one needs the fewest.
  // Samples have one pass: what was asked for first comes first there.
  if (method != Method::kSampled) std::sort(out.metrics.rbegin(), out.metrics.rend());
  return out;
}

std::optional<double> evaluate(const Counter& counter, const Lookup& lookup) {
  for (const Formula& formula : counter.formulas) {
    const std::optional<double> value = evaluate(formula.expression, lookup);
    if (value && is_possible(counter, *value)) return value;
  }
  return std::nullopt;
}

Result<CatalogFile> parse_catalog(std::string_view text, std::string_view where) {
  LLMPROF_LET(const Json json, base::parse_json(text, where));
  if (!json.is_object()) return bad(where, "not an object");
  CatalogFile file;
  for (const Json& chip : list_of(json, "chips")) {
    file.chips.push_back({text_of(chip, "name"), text_of(chip, "generation"), text_of(chip, "capability"),
                          texts_of(chip, "devices"), flag_of(chip, "sampled", true)});
  }
  for (const Json& one : list_of(json, "counters")) {
    LLMPROF_LET(Counter counter, read_counter(one, where));
    file.counters.push_back(std::move(counter));
  }
  for (const Json& one : list_of(json, "sets")) {
    Set set{text_of(one, "name"), text_of(one, "meaning"), texts_of(one, "counters"), texts_of(one, "sampled")};
    LLMPROF_TRY(check_set(set, file, where));
    file.sets.push_back(std::move(set));
  }
  return file;
}

}  // namespace llmprof::hw::counters
