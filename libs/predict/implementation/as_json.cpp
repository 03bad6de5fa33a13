#include "predict/implementation/as_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/strings.h"

namespace llmprof::predict {
namespace {

using base::Json;

constexpr std::int64_t kMostKernels = 1'000'000;  // of a step: a damaged file must not ask for more
constexpr std::int64_t kNoNumber = -1;
constexpr std::size_t kLongestBlock = 1024;  // kernels of what repeats

// "layers.#.mlp" and 3 of "layers.3.mlp": what repeats differs in this number only.
struct Numbered {
  std::string text;
  std::int64_t number = kNoNumber;
};

Numbered numbered(const std::string& module) {
  std::size_t begin = 0;
  if (base::contains(module, "#")) return {module};
  while (begin < module.size()) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = std::string_view(module).substr(begin, end - begin);
    const bool digits = !part.empty() && part.size() < 10 && (part.size() == 1 || part.front() != '0') &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    if (digits) return {module.substr(0, begin) + "#" + module.substr(end), std::stoll(std::string(part))};
    begin = end + 1;
  }
  return {module};
}

std::string with_number(const std::string& text, std::int64_t number) {
  const std::size_t at = text.find('#');
  if (number == kNoNumber || at == std::string::npos) return text;
  return text.substr(0, at) + std::to_string(number) + text.substr(at + 1);
}

// Values by their place in a table that grows as they come.
template <class T>
class Places {
 public:
  std::int64_t of(const T& value) {
    const auto [at, fresh] = places_.try_emplace(value, static_cast<std::int64_t>(values_.size()));
    if (fresh) values_.push_back(value);
    return at->second;
  }
  const std::vector<T>& values() const { return values_; }

 private:
  std::map<T, std::int64_t> places_;
  std::vector<T> values_;
};

// A kernel in the sequence: what it is, and the number of its layer.
struct Placed {
  std::int64_t kind = 0;
  std::int64_t number = kNoNumber;
};

constexpr std::int64_t kFollows = 1, kAttention = 2, kGrows = 4;  // flags
// Name, blocks, threads, operator, module, flags, product (-1: none).
using Kind = std::array<std::int64_t, 7>;
using Product = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

// Whether the kernels from `a` and from `b` on are the same, those from `b` in layers this much later.
bool same(const std::vector<Placed>& all, std::size_t a, std::size_t b, std::size_t length, std::int64_t later) {
  for (std::size_t i = 0; i < length; ++i) {
    const Placed &one = all[a + i], &other = all[b + i];
    if (one.kind != other.kind || (one.number == kNoNumber) != (other.number == kNoNumber)) return false;
    if (one.number != kNoNumber && other.number != one.number + later) return false;
  }
  return true;
}

struct Repeat {
  std::size_t length = 1, times = 1;
  std::size_t covered() const { return length * times; }
};

// What repeats from here on, over as many kernels as possible.
Repeat repeat_at(const std::vector<Placed>& all, std::size_t from) {
  Repeat best;
  const std::size_t left = all.size() - from;
  for (std::size_t length = 1; length <= std::min(kLongestBlock, left / 2); ++length) {
    std::size_t times = 1;
    while ((times + 1) * length <= left &&
           same(all, from, from + times * length, length, static_cast<std::int64_t>(times)))
      ++times;
    if (times > 1 && length * times > best.covered()) best = {length, times};
  }
  return best;
}

// [times, number of the first layer, kernels…]; a kernel is its kind, or [kind, layers after the first].
Json block(const std::vector<Placed>& all, std::size_t from, std::size_t length, std::size_t times) {
  std::int64_t first = kNoNumber;
  for (std::size_t i = from; i < from + length && first == kNoNumber; ++i) first = all[i].number;
  Json out = Json::array({times, first});
  for (std::size_t i = from; i < from + length; ++i) {
    const bool plain = all[i].number == first;
    // Without a layer among those that have one.
    const bool none = all[i].number == kNoNumber && !plain;
    if (plain) {
      out.push_back(all[i].kind);
    } else if (none) {
      out.push_back(Json::array({all[i].kind}));
    } else {
      out.push_back(Json::array({all[i].kind, all[i].number - first}));
    }
  }
  return out;
}

Json blocks_of(const std::vector<Placed>& all) {
  Json out = Json::array();
  std::size_t at = 0, since = 0;  // kernels from `since` on are not written yet
  while (at < all.size()) {
    const Repeat repeat = repeat_at(all, at);
    // A block costs its own kernels and two numbers.
    if (repeat.covered() <= repeat.length + 2) {
      ++at;
      continue;
    }
    if (since < at) out.push_back(block(all, since, at - since, 1));
    out.push_back(block(all, at, repeat.length, repeat.times));
    since = at += repeat.covered();
  }
  if (since < at) out.push_back(block(all, since, at - since, 1));
  return out;
}

Json json_of(const Calibrated& value) {
  return Json::array({value.value, value.low, value.high, value.mean, value.samples});
}

// ---- reading

// Reads values and remembers the first that is none.
class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  bool good() const { return wrong_.empty(); }
  Error error() const {
    return {ErrorCode::kCorruptInput, fmt::format("{}: {}", where_, wrong_), "it is no llmprof.implementation"};
  }
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  const Json& array(const Json& json, const char* key) {
    static const Json kNone = Json::array();
    const auto at = json.is_object() ? json.find(key) : json.end();
    if (json.is_object() && at != json.end() && at->is_array()) return *at;
    wrong(fmt::format("'{}' is no list", key));
    return kNone;
  }
  std::int64_t whole(const Json& json, std::int64_t least, std::int64_t most, std::string_view what) {
    const std::int64_t value = json.is_number_integer() ? json.get<std::int64_t>() : least - 1;
    if (value >= least && value <= most) return value;
    wrong(fmt::format("'{}' is not possible", what));
    return least;
  }
  std::int64_t whole(const Json& json, const char* key, std::int64_t least = 0) {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    static const Json kNothing;
    const auto at = json.is_object() ? json.find(key) : json.end();
    return whole(json.is_object() && at != json.end() ? *at : kNothing, least, kMost, key);
  }
  std::string text(const Json& json, std::string_view what) {
    if (json.is_string()) return json.get<std::string>();
    wrong(fmt::format("'{}' is no text", what));
    return "";
  }
  Calibrated calibrated(const Json& json, const char* key) {
    const Json& five = array(json, key);
    Calibrated out;
    if (five.size() != 5 || !std::ranges::all_of(five, [](const Json& each) { return each.is_number(); })) {
      wrong(fmt::format("'{}' wants value, low, high, mean and samples", key));
      return out;
    }
    return {five[0].get<double>(), five[1].get<double>(), five[2].get<double>(), five[3].get<double>(),
            five[4].get<std::int64_t>()};
  }

 private:
  std::string where_, wrong_;
};

struct ReadKinds {
  std::vector<StepKernel> kernels;  // module: with "#"
};

ReadKinds read_kinds(Reader& reader, const Json& json) {
  std::vector<std::string> texts;
  for (const Json& each : reader.array(json, "texts")) texts.push_back(reader.text(each, "texts"));
  const auto text_at = [&](const Json& place) {
    const auto most = static_cast<std::int64_t>(texts.size()) - 1;
    const std::int64_t at = reader.whole(place, 0, std::max<std::int64_t>(0, most), "texts");
    return most < 0 ? std::string() : texts[static_cast<std::size_t>(at)];
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  std::vector<WeightProduct> products;
  for (const Json& each : reader.array(json, "products")) {
    if (!each.is_array() || each.size() != 4) {
      reader.wrong("a product wants rows, n, k and its type");
      return {};
    }
    products.push_back({reader.whole(each[0], 0, kMost, "products"), reader.whole(each[1], 0, kMost, "products"),
                        reader.whole(each[2], 0, kMost, "products"), text_at(each[3])});
  }
  ReadKinds out;
  for (const Json& each : reader.array(json, "kinds")) {
    if (!each.is_array() || each.size() != std::tuple_size_v<Kind>) {
      reader.wrong("a kind of kernel wants 7 values");
      return {};
    }
    StepKernel kernel{text_at(each[0]), reader.whole(each[1], 0, kMost, "kinds"),
                      reader.whole(each[2], 0, kMost, "kinds"), text_at(each[3]), text_at(each[4])};
    const std::int64_t flags = reader.whole(each[5], 0, 7, "kinds");
    kernel.follows = (flags & kFollows) != 0, kernel.attention = (flags & kAttention) != 0;
    kernel.grows = (flags & kGrows) != 0;
    const std::int64_t product = reader.whole(each[6], -1, static_cast<std::int64_t>(products.size()) - 1, "products");
    if (product >= 0) kernel.product = products[static_cast<std::size_t>(product)];
    out.kernels.push_back(std::move(kernel));
  }
  return out;
}

void read_block(Reader& reader, const Json& json, const ReadKinds& kinds, std::vector<StepKernel>& out) {
  if (!json.is_array() || json.size() < 3) return reader.wrong("a block of kernels has no kernel");
  const std::int64_t times = reader.whole(json[0], 1, kMostKernels, "times"),
                     first = reader.whole(json[1], kNoNumber, kMostKernels, "layer");
  if (times * static_cast<std::int64_t>(json.size() - 2) + static_cast<std::int64_t>(out.size()) > kMostKernels)
    return reader.wrong("a step of more than a million kernels");
  for (std::int64_t i = 0; i < times && reader.good(); ++i) {
    for (std::size_t j = 2; j < json.size(); ++j) {
      const bool list = json[j].is_array() && !json[j].empty();
      const std::int64_t kind = reader.whole(list ? json[j][0] : json[j], 0,
                                             static_cast<std::int64_t>(kinds.kernels.size()) - 1, "kind of kernel");
      if (!reader.good()) return;
      std::int64_t number = first == kNoNumber ? kNoNumber : first + i;
      if (list) {
        number = json[j].size() < 2
                     ? kNoNumber
                     : number + reader.whole(json[j][1], -kMostKernels, kMostKernels, "layer of a kernel");
      }
      StepKernel& kernel = out.emplace_back(kinds.kernels[static_cast<std::size_t>(kind)]);
      kernel.module = with_number(kernel.module, number);
    }
  }
}

StageSteps read_stage(Reader& reader, const Json& json, const ReadKinds& kinds) {
  StageSteps stage;
  if (!json.is_object() || !json.contains("stage")) {
    reader.wrong("a stage has no name");
    return stage;
  }
  stage.stage = reader.text(json["stage"], "stage");
  stage.step_id = reader.whole(json, "step");
  stage.batch = reader.whole(json, "batch", 1), stage.rows = reader.whole(json, "rows", 1);
  stage.contexts = reader.whole(json, "contexts"), stage.launches = reader.whole(json, "launches");
  stage.variants = reader.whole(json, "variants", 1);
  stage.graph = json.contains("graph") && json["graph"].is_boolean() && json["graph"].get<bool>();
  stage.host = {reader.calibrated(json, "launch_ns"), reader.calibrated(json, "latency_ns"),
                reader.calibrated(json, "around_ns")};
  for (const Json& each : reader.array(json, "kernels")) read_block(reader, each, kinds, stage.kernels);
  return stage;
}

}  // namespace

std::string to_json_text(const Implementation& implementation) {
  Places<std::string> texts;
  Places<Product> products;
  Places<Kind> kinds;
  Json stages = Json::array();
  for (const StageSteps& stage : implementation.stages) {
    std::vector<Placed> sequence;
    for (const StepKernel& k : stage.kernels) {
      const Numbered module = numbered(k.module);
      const std::int64_t flags = (k.follows ? kFollows : 0) | (k.attention ? kAttention : 0) | (k.grows ? kGrows : 0);
      std::int64_t product = -1;
      if (k.product) product = products.of({k.product->rows, k.product->n, k.product->k, texts.of(k.product->type)});
      sequence.push_back(
          {kinds.of({texts.of(k.name), k.blocks, k.threads, texts.of(k.op), texts.of(module.text), flags, product}),
           module.number});
    }
    stages.push_back({{"stage", stage.stage},
                      {"step", stage.step_id},
                      {"batch", stage.batch},
                      {"rows", stage.rows},
                      {"contexts", stage.contexts},
                      {"graph", stage.graph},
                      {"launches", stage.launches},
                      {"variants", stage.variants},
                      {"launch_ns", json_of(stage.host.launch_ns)},
                      {"latency_ns", json_of(stage.host.latency_ns)},
                      {"around_ns", json_of(stage.host.around_ns)},
                      {"kernels", blocks_of(sequence)}});
  }
  Json json{{"schema", "llmprof.implementation"}, {"schema_version", 1}};
  json["run"] = std::string(base::base_name(implementation.run));
  json["texts"] = texts.values();
  json["products"] = Json::array();
  for (const auto& [rows, n, k, type] : products.values()) json["products"].push_back(Json::array({rows, n, k, type}));
  json["kinds"] = kinds.values();
  json["stages"] = std::move(stages);
  return base::to_line(json) + "\n";
}

Result<Implementation> parse_implementation(std::string_view text, const std::string& where) {
  LLMPROF_LET(const Json json, base::parse_json(text, where));
  Reader reader(where);
  if (!json.is_object() || !json.contains("schema") || json["schema"] != "llmprof.implementation") {
    reader.wrong("it does not say that it is an implementation");
    return reader.error();
  }
  Implementation out;
  if (json.contains("run")) out.run = reader.text(json["run"], "run");
  const ReadKinds kinds = read_kinds(reader, json);
  for (const Json& each : reader.array(json, "stages")) out.stages.push_back(read_stage(reader, each, kinds));
  if (out.stages.empty()) reader.wrong("it has no stages");
  if (!reader.good()) return reader.error();
  return out;
}

}  // namespace llmprof::predict
