#include "hw/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/asset.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "hw/roof.h"

namespace llmprof::hw {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

constexpr std::size_t kMostSuggestions = 8;

// Lower case; runs of anything but letters and digits become one space; the vendor's name in front is dropped, as
// drivers of different versions write "A100-SXM4-40GB" and "NVIDIA A100-SXM4-40GB".
std::string normal(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 256)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  for (const std::string_view vendor : {"nvidia ", "amd ", "apple ", "qualcomm "}) {
    if (out.starts_with(vendor)) return out.substr(vendor.size());
  }
  return out;
}

std::vector<std::string> normal_names(const DeviceSpec& spec) {
  std::vector<std::string> names{normal(spec.name)};
  for (const std::string& name : spec.short_names) names.push_back(normal(name));
  for (const std::string& name : spec.reported_names) names.push_back(normal(name));
  return names;
}

std::vector<DeviceSpec> load() {
  std::vector<DeviceSpec> all;
  for (const base::Asset& asset : assets()) {
    Result<std::vector<DeviceSpec>> some = parse_catalog(asset.bytes, asset.path);
    if (!some) continue;  // a test holds every file to be readable
    std::move(some->begin(), some->end(), std::back_inserter(all));
  }
  return all;
}

const Figure* find(const std::vector<Figure>& figures, std::string_view key) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const Figure& f) { return f.key == key; });
  return found == figures.end() ? nullptr : &*found;
}

std::string method(const DeviceSpec& spec, const Figure& figure) {
  std::string out;
  if (figure.unit != "B/s") out = "dense, ";
  if (!figure.note.empty()) out += figure.note + ", ";
  const Figure* clock = figure.unit == "B/s" ? nullptr : spec.figure("clock");
  if (clock != nullptr) out += fmt::format("{:.0f} MHz, ", clock->value);
  out += figure.source;
  if (figure.tag != "spec") out += ", " + (figure.verified() ? figure.tag : "unverified");
  return out;
}

// Reads one file of the catalogue: JSON with the sources by key, and per device [value, source key, note] by quantity.

using base::Json;

struct Quantity {
  std::string_view field;  // as the file says it, with its unit
  std::string_view key, unit;
  double factor;
};

// GB on a memory's box are GiB: chips of memory have powers of two (docs/format/devices.md).
constexpr std::array kQuantities{
    Quantity{"units", "units", "", 1},
    Quantity{"memory_gib", "memory", "B", 1024.0 * 1024 * 1024},
    Quantity{"cache_mib", "cache", "B", 1024.0 * 1024},
    Quantity{"bandwidth_gbs", "bandwidth", "B/s", 1e9},
    Quantity{"clock_mhz", "clock", "MHz", 1},
    Quantity{"power_w", "power", "W", 1},
    Quantity{"interconnect_gbs", "interconnect", "B/s", 1e9},
};

constexpr std::array<std::string_view, 14> kTypes{
    "float64",       "float64_vector", "float32",      "float32_vector", "tf32",   "bfloat16", "float16",
    "float16_acc16", "float8",         "float8_acc16", "float6",         "float4", "int8",     "int4"};

constexpr std::array<std::string_view, 4> kTags{"spec", "second-hand", "derived", "recalled"};

template <class Array>
bool contains(const Array& array, std::string_view value) {
  return std::find(array.begin(), array.end(), value) != array.end();
}

Error bad(std::string_view where, const std::string& what) { return corrupt_error("{}: {}", where, what); }

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<std::vector<std::string>> texts_of(const Json& object, const char* key, std::string_view where) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end()) return texts;
  if (!found->is_array()) return bad(where, fmt::format("{} is not a list", key));
  for (const Json& text : *found) {
    if (!text.is_string()) return bad(where, fmt::format("{} holds something that is no text", key));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

// [value, "source key"] or [value, "source key", "note"]; `sources` is the file's.
Result<Figure> read_figure(const Json& json, const Json& sources, std::string_view where) {
  const bool shaped = json.is_array() && (json.size() == 2 || json.size() == 3) && json[0].is_number() &&
                      json[1].is_string() && (json.size() == 2 || json[2].is_string());
  if (!shaped) return bad(where, "not [value, source] or [value, source, note]");
  Figure figure{.value = json[0].get<double>()};
  if (!std::isfinite(figure.value) || figure.value <= 0) return bad(where, "not a positive number");
  const auto source = sources.find(json[1].get<std::string>());
  if (source == sources.end() || !source->is_object()) {
    return bad(where, fmt::format("source {} is not among the file's sources", json[1].get<std::string>()));
  }
  figure.tag = text_of(*source, "tag");
  figure.source = text_of(*source, "document");
  if (!contains(kTags, figure.tag) || figure.source.empty()) {
    return bad(where, fmt::format("source {} needs a tag and a document", json[1].get<std::string>()));
  }
  figure.read_in = text_of(*source, "read_in");
  if (json.size() == 3) figure.note = json[2].get<std::string>();
  return figure;
}

Result<void> read_peaks(const Json& json, const Json& sources, std::string_view where, DeviceSpec& spec) {
  for (const auto& [type, value] : json.items()) {
    if (!contains(kTypes, type)) return bad(where, fmt::format("unknown arithmetic {}", type));
    LLMPROF_LET(Figure figure, read_figure(value, sources, fmt::format("{}: {}", where, type)));
    figure.key = type;
    figure.value *= 1e12;
    figure.unit = type.starts_with("int") ? "OP/s" : "FLOP/s";
    spec.peaks.push_back(std::move(figure));
  }
  return {};
}

Result<void> read_figures(const Json& json, const Json& sources, std::string_view where, DeviceSpec& spec) {
  for (const Quantity& quantity : kQuantities) {
    const auto found = json.find(std::string(quantity.field));
    if (found == json.end()) continue;
    LLMPROF_LET(Figure figure, read_figure(*found, sources, fmt::format("{}: {}", where, quantity.field)));
    figure.key = quantity.key;
    figure.value *= quantity.factor;
    figure.unit = quantity.unit;
    spec.figures.push_back(std::move(figure));
  }
  return {};
}

Result<DeviceSpec> read_device(const Json& json, const Json& file, std::string_view where_file) {
  if (!json.is_object()) return bad(where_file, "a device is not an object");
  DeviceSpec spec{.name = text_of(json, "name"),
                  .vendor = text_of(file, "vendor"),
                  .architecture = text_of(json, "architecture"),
                  .kind = text_of(json, "kind")};
  const std::string where = fmt::format("{}: {}", where_file, spec.name.empty() ? "a device" : spec.name);
  LLMPROF_LET(spec.short_names, texts_of(json, "short", where));
  LLMPROF_LET(spec.reported_names, texts_of(json, "reported", where));
  LLMPROF_LET(spec.conflicts, texts_of(json, "conflicts", where));
  if (spec.name.empty() || spec.vendor.empty() || spec.kind.empty() || spec.short_names.empty()) {
    return bad(where, "needs a name, a vendor, a kind and a short name");
  }
  if (const auto server = json.find("server"); server != json.end()) {
    if (!server->is_boolean()) return bad(where, "server is neither true nor false");
    spec.server = server->get<bool>();
  }
  const Json sources = file.value("sources", Json::object());
  if (!sources.is_object()) return bad(where_file, "sources is not an object");
  LLMPROF_TRY(read_figures(json, sources, where, spec));
  if (const auto peaks = json.find("tflops"); peaks != json.end()) {
    if (!peaks->is_object()) return bad(where, "tflops is not an object");
    LLMPROF_TRY(read_peaks(*peaks, sources, where, spec));
  }
  return spec;
}

}  // namespace

const Figure* DeviceSpec::figure(std::string_view key) const { return find(figures, key); }
const Figure* DeviceSpec::peak(std::string_view type) const { return find(peaks, peak_type(type)); }

std::span<const DeviceSpec> catalog() {
  static const std::vector<DeviceSpec> all = load();
  return all;
}

const DeviceSpec* find_device(std::string_view name) {
  const std::string wanted = normal(name);
  if (wanted.empty()) return nullptr;
  for (const DeviceSpec& spec : catalog()) {
    const std::vector<std::string> names = normal_names(spec);
    if (std::find(names.begin(), names.end(), wanted) != names.end()) return &spec;
  }
  return nullptr;
}

std::vector<const DeviceSpec*> match_devices(std::string_view typed) {
  constexpr std::size_t kLeastLetters = 3;  // shorter ones are part of many names by chance
  const std::string wanted = base::name_key(normal(typed));
  std::vector<const DeviceSpec*> found;
  if (wanted.size() < kLeastLetters) return found;
  for (const DeviceSpec& spec : catalog()) {
    const std::vector<std::string> names = normal_names(spec);
    const auto holds = [&](const std::string& name) { return base::contains(base::name_key(name), wanted); };
    if (std::ranges::any_of(names, holds)) found.push_back(&spec);
  }
  return found;
}

std::vector<std::string> suggest(std::string_view name) {
  std::vector<std::string> known;
  for (const DeviceSpec& spec : catalog()) {
    for (std::string& each : normal_names(spec)) known.push_back(std::move(each));
  }
  std::vector<std::string> names;
  for (const std::string& near : base::near_names(normal(name), {known.begin(), known.end()}, known.size())) {
    const std::string& short_name = find_device(near)->short_names.front();
    if (names.size() < kMostSuggestions && std::ranges::find(names, short_name) == names.end())
      names.push_back(short_name);
  }
  return names;
}

Device device_of(const DeviceSpec& spec) {
  const auto integer = [&](const char* key) {
    const Figure* figure = spec.figure(key);
    return figure == nullptr ? 0 : static_cast<std::int64_t>(figure->value);
  };
  Device device{.kind = "gpu", .name = spec.name, .chip = spec.architecture};
  device.units = integer("units");
  device.memory_bytes = integer("memory");
  device.cache_bytes = integer("cache");
  if (const Figure* clock = spec.figure("clock")) device.clock_mhz = clock->value;
  return device;
}

std::vector<Peak> spec_peaks(const DeviceSpec& spec) {
  std::vector<Peak> peaks;
  for (const Figure& figure : spec.peaks) {
    peaks.push_back({"flops", figure.key, figure.value, figure.unit, "spec", method(spec, figure)});
  }
  if (const Figure* bandwidth = spec.figure("bandwidth")) {
    peaks.push_back({"bandwidth", "read", bandwidth->value, bandwidth->unit, "spec", method(spec, *bandwidth)});
  }
  return peaks;
}

Result<std::vector<DeviceSpec>> parse_catalog(std::string_view json_text, std::string_view where) {
  LLMPROF_LET(const Json file, base::parse_json(json_text, where));
  if (!file.is_object()) return bad(where, "not an object");
  const auto devices = file.find("devices");
  if (devices == file.end() || !devices->is_array()) return bad(where, "has no list of devices");
  std::vector<DeviceSpec> specs;
  for (const Json& device : *devices) {
    LLMPROF_LET(DeviceSpec spec, read_device(device, file, where));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace llmprof::hw
