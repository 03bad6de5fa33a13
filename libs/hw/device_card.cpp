#include "hw/device_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::hw {

namespace {

std::string no_peaks_text(const Device& device) {
  return device.kind == "cpu" ? "not measured on this machine: llmprof roofline, or llmprof devices --measure"
                              : "unknown: not measured here (llmprof roofline), and not in the catalogue";
}

constexpr std::size_t kWidth = 100, kLabel = 15;

// Memory comes in powers of two: "141 GiB", "50 MiB".
std::string size_text(double bytes) {
  const double gib = bytes / (1 << 30);
  return gib >= 1 ? fmt::format("{:g} GiB", std::round(gib * 10) / 10) : fmt::format("{:g} MiB", bytes / (1 << 20));
}

std::string value_text(const Figure& figure) {
  if (figure.unit == "B") return size_text(figure.value);
  if (figure.unit == "MHz" || figure.unit == "W") return fmt::format("{:g} {}", figure.value, figure.unit);
  if (figure.unit.empty()) return fmt::format("{:g}", figure.value);
  return base::human_rate(figure.value, figure.unit.c_str());
}

std::string source_text(const Figure& figure) {
  const std::string tag = figure.verified() ? figure.tag : "unverified";
  const std::string quoted = figure.read_in.empty() ? "" : ", as quoted by " + figure.read_in;
  return fmt::format("{}: {}{}", tag, figure.source, quoted);
}

// Words in lines of at most kWidth columns, behind a label or under one.
std::string paragraph(std::string_view label, std::string_view text) {
  std::string out = fmt::format("  {:<{}}", label, kLabel);
  std::size_t column = out.size();
  bool first = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!first && column + 1 + base::display_width(word) > kWidth) {
      out += "\n" + std::string(kLabel + 2, ' ');
      column = kLabel + 2;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += base::display_width(word);
    first = false;
    begin = end + 1;
  }
  return out + "\n";
}

// Numbers refer to a list of sources at the end: most of a device's share one.
class Sources {
 public:
  std::string reference(const Figure& figure) {
    const std::string text = source_text(figure);
    auto at = std::find(texts_.begin(), texts_.end(), text);
    if (at == texts_.end()) at = texts_.insert(at, text);
    return fmt::format("{} [{}]", figure.verified() ? "" : " unverified", at - texts_.begin() + 1);
  }
  std::string list() const {
    std::string out;
    for (std::size_t i = 0; i < texts_.size(); ++i) out += paragraph(fmt::format("[{}]", i + 1), texts_[i]);
    return out;
  }

 private:
  std::vector<std::string> texts_;
};

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

std::string cell(const Figure* figure, double per) {
  if (figure == nullptr) return "-";
  return base::three_digits(figure->value / per) + (figure->verified() ? "" : "?");
}

base::Json figure_json(const Figure& figure) {
  base::Json json{{"value", figure.value},   {"unit", figure.unit}, {"tag", figure.tag},
                  {"source", figure.source}, {"read_in", nullptr},  {"note", nullptr}};
  if (!figure.read_in.empty()) json["read_in"] = figure.read_in;
  if (!figure.note.empty()) json["note"] = figure.note;
  return json;
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

std::string catalog_table(std::span<const DeviceSpec> specs) {
  base::TextTable table({{"name", base::Align::kLeft},
                         {"memory"},
                         {"GB/s"},
                         {"float32"},
                         {"float16"},
                         {"bfloat16"},
                         {"float8"},
                         {"int8"},
                         {"float4"},
                         {"ridge"}});
  for (const DeviceSpec& spec : specs) {
    const Figure* memory = spec.figure("memory");
    std::optional<double> point = ridge(spec_peaks(spec), "float16");
    if (!point) point = ridge(spec_peaks(spec), "float32");
    const std::string size = memory == nullptr ? "-" : size_text(memory->value) + (memory->verified() ? "" : "?");
    const auto peak = [&](const char* type) { return cell(spec.peak(type), 1e12); };
    table.add({spec.short_names.front(), size, cell(spec.figure("bandwidth"), 1e9), peak("float32"), peak("float16"),
               peak("bfloat16"), peak("float8"), peak("int8"), peak("float4"),
               point ? base::three_digits(*point) : "-"});
  }
  return table.render(kWidth, 0);
}

std::string spec_card(const DeviceSpec& spec) {
  std::string text = fmt::format("{}\n", spec.name);
  text += paragraph("names", joined(spec.short_names));
  if (!spec.reported_names.empty()) text += paragraph("reported as", joined(spec.reported_names));
  text += paragraph("kind", fmt::format("{}, {}", spec.kind, spec.architecture));
  Sources sources;
  const auto add = [&](const Figure& figure, const std::string& more) {
    const std::string note = figure.note.empty() ? "" : ", " + figure.note;
    text += paragraph(figure.key, value_text(figure) + note + more + sources.reference(figure));
  };
  for (const Figure& figure : spec.figures) add(figure, "");
  const std::vector<Peak> peaks = spec_peaks(spec);
  for (const Figure& figure : spec.peaks) {
    const std::optional<double> point = ridge(peaks, figure.key);
    add(figure, point ? fmt::format(", ridge at {} FLOP per byte", base::three_digits(*point)) : "");
  }
  for (const std::string& conflict : spec.conflicts) text += paragraph("conflict", conflict);
  return text + sources.list();
}

base::Json spec_json(const DeviceSpec& spec) {
  base::Json json{{"name", spec.name}, {"vendor", spec.vendor},           {"architecture", spec.architecture},
                  {"kind", spec.kind}, {"short_names", spec.short_names}, {"reported_names", spec.reported_names}};
  json["figures"] = base::Json::object();
  for (const Figure& figure : spec.figures) json["figures"][figure.key] = figure_json(figure);
  json["peaks"] = base::Json::object();
  const std::vector<Peak> peaks = spec_peaks(spec);
  for (const Figure& figure : spec.peaks) {
    base::Json row = figure_json(figure);
    const std::optional<double> point = ridge(peaks, figure.key);
    row["ridge_flops_per_byte"] = point ? base::Json(*point) : base::Json();
    json["peaks"][figure.key] = std::move(row);
  }
  json["conflicts"] = spec.conflicts;
  return json;
}

}  // namespace llmprof::hw
