#include "hw/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/asset.h"

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

// Letters to insert, delete or replace to get from one to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// 0 begins with it, 1 contains it, 2 and more: as many letters differ; nothing: not alike.
std::optional<std::size_t> distance(const DeviceSpec& spec, const std::string& wanted) {
  std::optional<std::size_t> best;
  const auto take = [&](std::size_t value) { best = std::min(best.value_or(value), value); };
  for (const std::string& name : normal_names(spec)) {
    if (name.starts_with(wanted)) take(0);
    if (name.find(wanted) != std::string::npos) take(1);
    const std::size_t letters = edit_distance(name, wanted);
    if (letters <= 2 && letters < wanted.size() / 2 + 1) take(1 + letters);
  }
  return best;
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

std::vector<std::string> suggest(std::string_view name) {
  const std::string wanted = normal(name);
  if (wanted.empty()) return {};
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const DeviceSpec& spec : catalog()) {
    if (const auto letters = distance(spec, wanted)) near.emplace_back(*letters, spec.short_names.front());
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [letters, short_name] : near) {
    // What begins with the name or contains it is meant; misspellings only count if there is none of those.
    if (names.size() == kMostSuggestions || (letters > 1 && near.front().first <= 1)) break;
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

}  // namespace llmprof::hw
