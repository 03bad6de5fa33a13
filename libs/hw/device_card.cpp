#include "hw/device_card.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::hw {
namespace {

std::string no_peaks_text(const Device& device) {
  return device.kind == "cpu" ? "not measured on this machine: llmprof roofline, or llmprof devices --measure"
                              : "unknown: not measured here (llmprof roofline), and not in the catalogue";
}

}  // namespace

std::optional<double> ridge(const std::vector<Peak>& peaks, std::string_view type) {
  const Peak* flops = find_peak(peaks, "flops", type);
  const Peak* bandwidth = find_peak(peaks, "bandwidth", kMemoryStream);
  if (flops == nullptr || bandwidth == nullptr || bandwidth->value <= 0) return std::nullopt;
  return flops->value / bandwidth->value;
}

std::string device_card(const Device& device, const std::vector<Peak>& peaks) {
  const bool cpu = device.kind == "cpu";
  std::string text = fmt::format("{}  {}\n", device.kind, base::printable(device.name));
  const auto line = [&](std::string_view label, const std::string& value) {
    text += base::shorten(fmt::format("  {:<10} {}", label, base::printable(value)), 100) + "\n";
  };
  const auto known = [](std::int64_t value, const std::string& shown) {
    return value > 0 ? shown : std::string("unknown");
  };
  line(cpu ? "level" : "chip", device.chip.empty() ? "unknown" : device.chip);
  line(cpu ? "cores" : "SMs", known(device.units, fmt::format("{}{}", device.units, cpu ? " usable" : "")));
  line("memory", known(device.memory_bytes, base::human_bytes(static_cast<double>(device.memory_bytes))));
  line("cache", known(device.cache_bytes, base::human_bytes(static_cast<double>(device.cache_bytes)) + ", last level"));
  if (device.clock_mhz) line("clock", fmt::format("{:.0f} MHz, highest reported", *device.clock_mhz));
  if (!device.driver.empty()) line("driver", device.driver);
  if (peaks.empty()) line("peaks", no_peaks_text(device));
  std::size_t others = 0;
  for (const Peak& peak : peaks) {
    if (!principal(peak)) {
      ++others;
      continue;
    }
    const auto point = peak.quantity == "flops" ? ridge(peaks, peak.type) : std::nullopt;
    const std::string ridge_text = point ? fmt::format(", ridge at {} FLOP per byte", base::three_digits(*point)) : "";
    line(peak.type, base::human_rate(peak.value, peak.unit.c_str()) + ridge_text);
    line("", fmt::format("{}: {}", peak.source, peak.method));
  }
  if (others > 0)
    line("more", fmt::format("{} measured, of caches, cores, copies, launches: llmprof roofline --stored", others));
  return text;
}

base::Json device_json(const Device& device, const std::vector<Peak>& peaks) {
  base::Json json{{"kind", device.kind},
                  {"name", device.name},
                  {"chip", device.chip},
                  {"units", device.units},
                  {"memory_bytes", device.memory_bytes},
                  {"cache_bytes", device.cache_bytes}};
  json["clock_mhz"] = device.clock_mhz ? base::Json(*device.clock_mhz) : base::Json();
  json["driver"] = device.driver;
  json["fingerprint"] = fingerprint(device);
  json["peaks"] = base::Json::array();
  for (const Peak& peak : peaks) {
    base::Json row{{"quantity", peak.quantity}, {"type", peak.type},     {"value", peak.value},
                   {"unit", peak.unit},         {"source", peak.source}, {"method", peak.method}};
    if (peak.quantity == "flops") {
      const auto point = ridge(peaks, peak.type);
      row["ridge_flops_per_byte"] = point ? base::Json(*point) : base::Json();
    }
    json["peaks"].push_back(std::move(row));
  }
  if (peaks.empty()) json["why"] = no_peaks_text(device);
  return json;
}

}  // namespace llmprof::hw
