#include "hw/counters/catalog_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"

namespace llmprof::hw::counters {
namespace {

using base::Json;

Error bad(std::string_view where, const std::string& what) {
  return {ErrorCode::kCorruptInput, fmt::format("{}: {}", where, what), ""};
}

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
                  .together = Together::kSum,
                  .apart = flag_of(json, "apart", false),
                  .formulas = {}};
  if (counter.name.empty() || counter.unit.empty() || counter.meaning.empty()) {
    return bad(where, fmt::format("a counter ({}) lacks its name, unit or meaning", counter.name));
  }
  if ((counter.unit == "%") != !counter.denominator.empty()) {
    return bad(where, fmt::format("{}: a percentage, and nothing else, says of what", counter.name));
  }
  const std::string together = text_of(json, "together");
  if (together == "mean") counter.together = Together::kMean;
  if (together == "mean by time") counter.together = Together::kMeanByTime;
  if (together != "sum" && counter.together == Together::kSum) {
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
