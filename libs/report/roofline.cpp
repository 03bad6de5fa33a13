#include "report/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "hw/device_card.h"
#include "hw/resolve.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

std::vector<hw::Peak> values_of(const RooflinePage& page) {
  std::vector<hw::Peak> peaks;
  for (const hw::PeakRow& row : page.rows) {
    if (row.why.empty()) peaks.push_back(row.peak);
  }
  return hw::merged_peaks({}, peaks);
}

const hw::DeviceSpec* spec_of_device(const hw::Device& device) {
  return device.kind == "cpu" ? nullptr : hw::find_device(device.name);
}

std::string value_text(const hw::PeakRow& row) {
  if (!row.why.empty()) return "-";
  return row.peak.unit == "s" ? base::human_ns(row.peak.value * 1e9)
                              : base::human_rate(row.peak.value, row.peak.unit.c_str());
}

std::optional<double> share_of_spec(const hw::PeakRow& row, const hw::DeviceSpec* spec) {
  const hw::Figure* figure = hw::spec_of(row.peak, spec);
  if (!row.why.empty() || figure == nullptr || row.peak.source != "measured") return std::nullopt;
  return row.peak.value / figure->value;
}

// A CPU has a grid of bandwidths: streams to the right, levels down.
struct GridRow {
  std::string level;  // "memory", "L3", "L1, one core"
  std::map<std::string, std::string> cells;
};
bool in_grid(const RooflinePage& page, const hw::PeakRow& row) {
  return page.device.kind == "cpu" && row.peak.quantity == "bandwidth";
}

std::string grid_text(const RooflinePage& page) {
  std::vector<GridRow> grid;
  for (const hw::PeakRow& row : page.rows) {
    if (!in_grid(page, row)) continue;
    const std::size_t comma = row.peak.type.find(',');
    std::string level = comma == std::string::npos ? "" : row.peak.type.substr(comma + 2);
    if (level.empty() || level == "one core") level = level.empty() ? "memory" : "memory, one core";
    auto at = std::find_if(grid.begin(), grid.end(), [&](const GridRow& g) { return g.level == level; });
    if (at == grid.end()) at = grid.insert(at, {level, {}});
    at->cells[row.peak.type.substr(0, comma)] = value_text(row);
  }
  if (grid.empty()) return "";
  base::TextTable table({{"bandwidth", base::Align::kLeft}, {"read"}, {"write"}, {"copy"}, {"triad"}});
  for (GridRow& row : grid) {
    const auto cell = [&](const char* stream) { return row.cells.contains(stream) ? row.cells[stream] : "-"; };
    table.add({row.level, cell("read"), cell("write"), cell("copy"), cell("triad")});
  }
  return "\n" + table.render(kWidth, 2);
}

std::string peak_table(const RooflinePage& page) {
  const hw::DeviceSpec* spec = spec_of_device(page.device);
  const std::vector<hw::Peak> peaks = values_of(page);
  std::vector<base::TextTable::Column> columns{{"peak", base::Align::kLeft}, {"value"}};
  if (spec != nullptr) columns.push_back({"of spec"});
  columns.push_back({"ridge"});
  columns.push_back({"method", base::Align::kLeft, true});
  base::TextTable table(columns);
  for (const hw::PeakRow& row : page.rows) {
    if (in_grid(page, row)) continue;
    const bool flops = row.peak.quantity == "flops" && hw::principal(row.peak) && row.why.empty();
    const std::optional<double> ridge = flops ? hw::ridge(peaks, row.peak.type) : std::nullopt;
    std::vector<std::string> cells{row.peak.type, value_text(row)};
    if (spec != nullptr) cells.push_back(base::human_percent(share_of_spec(row, spec)));
    cells.push_back(ridge ? base::three_digits(*ridge) : "-");
    const bool measured = row.peak.source == "measured" || page.stored == false;
    cells.push_back(!row.why.empty() ? "see below" : (measured ? "" : row.peak.source + ": ") + row.peak.method);
    table.add(cells);
  }
  return table.rows() == 0 ? "" : table.render(kWidth, 2);
}

// "spec: bfloat16 989 TFLOP/s, float8 1979 TFLOP/s (dense, 1830 MHz, NVIDIA H200 product page)."
std::string spec_lines(const RooflinePage& page) {
  const hw::DeviceSpec* spec = spec_of_device(page.device);
  std::vector<std::pair<std::string, std::string>> groups;  // source, figures
  for (const hw::PeakRow& row : page.rows) {
    const hw::Figure* figure = hw::spec_of(row.peak, spec);
    if (!share_of_spec(row, spec)) continue;
    const hw::Figure* clock = row.peak.quantity == "flops" ? spec->figure("clock") : nullptr;
    const std::string source =
        clock != nullptr ? fmt::format("dense, {:.0f} MHz, {}", clock->value, figure->source) : figure->source;
    auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == source; });
    if (at == groups.end()) at = groups.insert(at, {source, ""});
    at->second += fmt::format("{}{} {}", at->second.empty() ? "" : ", ", row.peak.type,
                              base::human_rate(figure->value, figure->unit.c_str()));
  }
  std::string out;
  for (const auto& [source, figures] : groups)
    out += wrapped(fmt::format("spec: {} ({}).", figures, source), 2, kWidth);
  return out;
}

std::string head(const RooflinePage& page) {
  std::string out = fmt::format("{}: {}", page.device.kind, base::printable(page.device.name));
  if (page.stored) return out + ", as stored\n\n";
  if (page.seconds) out += fmt::format(", measured in {}", base::human_ns(*page.seconds * 1e9));
  return out + (page.quick ? " (--quick)\n\n" : "\n\n");
}

}  // namespace

std::string to_text(const RooflinePage& page) {
  std::string out = head(page) + peak_table(page) + grid_text(page) + "\n";
  out += wrapped(
      "ridge: FLOP per byte above which arithmetic, not memory, is the limit: peak FLOP/s / bandwidth of the fastest "
      "stream through memory.",
      2, kWidth);
  out += spec_lines(page);
  for (const hw::PeakRow& row : page.rows) {
    if (!row.why.empty()) out += wrapped(fmt::format("not measured: {}: {}", row.peak.type, row.why), 2, kWidth);
  }
  for (const std::string& note : page.notes) out += wrapped("note: " + note, 2, kWidth);
  return out;
}

void to_json(const RooflinePage& page, base::Json& out) {
  const hw::DeviceSpec* spec = spec_of_device(page.device);
  const std::vector<hw::Peak> peaks = values_of(page);
  out["device"] = {{"kind", page.device.kind},
                   {"name", page.device.name},
                   {"chip", page.device.chip},
                   {"units", page.device.units},
                   {"fingerprint", hw::fingerprint(page.device)}};
  out["stored"] = page.stored;
  out["quick"] = page.quick;
  out["seconds"] = page.seconds ? base::Json(*page.seconds) : base::Json();
  out["peaks"] = base::Json::array();
  for (const hw::PeakRow& row : page.rows) {
    const bool known = row.why.empty();
    const auto text_or_null = [](const std::string& text) { return text.empty() ? base::Json() : base::Json(text); };
    base::Json json{{"quantity", row.peak.quantity},
                    {"type", row.peak.type},
                    {"unit", row.peak.unit},
                    {"source", text_or_null(known ? row.peak.source : "")},
                    {"method", text_or_null(known ? row.peak.method : "")},
                    {"why", text_or_null(row.why)}};
    json["value"] = known ? base::Json(row.peak.value) : base::Json();
    const hw::Figure* figure = hw::spec_of(row.peak, spec);
    json["spec"] = figure != nullptr ? base::Json{{"value", figure->value}, {"source", figure->source}} : base::Json();
    const std::optional<double> share = share_of_spec(row, spec);
    json["share_of_spec"] = share ? base::Json(*share) : base::Json();
    if (row.peak.quantity == "flops" && hw::principal(row.peak)) {
      const std::optional<double> ridge = known ? hw::ridge(peaks, row.peak.type) : std::nullopt;
      json["ridge_flops_per_byte"] = ridge ? base::Json(*ridge) : base::Json();
    }
    out["peaks"].push_back(std::move(json));
  }
  out["notes"] = page.notes;
}

}  // namespace llmprof::report
