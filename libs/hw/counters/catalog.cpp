#include "hw/counters/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/asset.h"
#include "base/strings.h"
#include "hw/counters/catalog_file.h"

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
  std::string nearest;
  std::size_t fewest = word.size() / 3 + 1;
  const auto consider = [&](const std::string& name) {
    if (const std::size_t edits = base::edits(word, name); edits < fewest) {
      fewest = edits;
      nearest = name;
    }
  };
  for (const Set& set : sets()) consider(set.name);
  for (const Counter& counter : catalog()) consider(counter.name);
  const std::string meant = nearest.empty() ? "" : fmt::format("Did you mean {}? ", nearest);
  return {ErrorCode::kUsage, fmt::format("there is no counter or set of counters `{}`", word),
          fmt::format("{}Sets are {}; `llmprof counters` lists the counters. Metrics of the chip are accepted by their "
                      "own names, such as dram__bytes_read.sum.",
                      meant, set_names())};
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

}  // namespace llmprof::hw::counters
