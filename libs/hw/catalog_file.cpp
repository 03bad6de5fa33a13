// Reads one file of the catalogue: JSON with the sources by key, and per device [value, source key, note] by quantity.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "hw/catalog.h"

namespace llmprof::hw {
namespace {

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

Error bad(std::string_view where, const std::string& what) {
  return {ErrorCode::kCorruptInput, fmt::format("{}: {}", where, what), ""};
}

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
