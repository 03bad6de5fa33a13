#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "report/layout.h"

namespace llmprof::report {
namespace {

using analyze::CountedStage;
using analyze::CounterValue;
using analyze::KernelStalls;
using analyze::StallPlace;
using analyze::UnmixedClass;
using base::fields_json;
using base::Json;

constexpr std::string_view kCountersInFull = "llmprof report --counters shows all";
constexpr std::size_t kFewRows = 5, kFewNotes = 3;
constexpr std::size_t kMostName = 36;  // columns: names of the chip's metrics are longer
constexpr std::size_t kMostColumns = 3, kMostReasons = 2;

// Of each table: all if counters were asked for, else few, or --top.
std::size_t hardware_rows(const Page& page) {
  if (page.counters) return SIZE_MAX;
  return page.findings > 0 ? page.top : std::min(page.top, kFewRows);  // findings: --top was given
}

// The first rows of a table and how many more there are; "" without any.
std::string first_rows(const Page& page, std::string_view path, const Json& rows, std::string_view what,
                       const TableText::Columns& behind = {}) {
  if (rows.empty()) return "";
  const std::size_t most = hardware_rows(page);
  Json first = Json::array();
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) first.push_back(rows[i]);
  const TableText tables(rows);
  std::string out = "\n" + tables.rows(path, first, SIZE_MAX, {}, behind);
  if (rows.size() > most) out += fmt::format("  {} more {}; {}.\n", rows.size() - most, what, kCountersInFull);
  return out + tables.notes(path);
}

const CounterValue* counter_of(const std::vector<CounterValue>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &CounterValue::counter);
  return found == values.end() ? nullptr : &*found;
}

std::string error_text(const CounterValue& value) {
  const std::string text = with_unit(value.value, value.unit);
  return value.error ? fmt::format("{} ±{}", text, base::human_percent(*value.error)) : text + " ±?";
}

// Counters that have keys of their own; percentages are fractions there.
void add_counters(const std::vector<CounterValue>& values, Json& row) {
  static constexpr std::pair<const char*, std::string_view> kKeys[] = {{"dram_read_bytes", "dram_read_bytes"},
                                                                       {"dram_write_bytes", "dram_write_bytes"},
                                                                       {"l2_hits", "l2_hit_pct"},
                                                                       {"tensor_active", "tensor_active_pct"},
                                                                       {"occupancy", "achieved_occupancy_pct"}};
  for (const auto& [key, name] : kKeys) {
    const CounterValue* value = counter_of(values, name);
    row[key] = value == nullptr ? Json(nullptr) : Json(value->unit == "%" ? value->value / 100 : value->value);
  }
}

const analyze::Stage* stage_of(const Page& page, const std::string& name) {
  const auto& all = page.summary.stages;
  const auto found = std::ranges::find(all, name, &analyze::Stage::name);
  return found == all.end() ? nullptr : &*found;
}

std::optional<double> must_move(const Page& page, const CountedStage& stage) {
  for (const analyze::QuantityEvidence& e : page.summary.counters.evidence)
    if (e.stage == stage.stage && e.quantity == "bytes" && e.analytic) return e.analytic;
  if (stage.work.dram_bytes && stage.redundancy.value_or(0) > 0) return *stage.work.dram_bytes / *stage.redundancy;
  return std::nullopt;
}

// Counters are of one device, whatever others did.
std::optional<double> device_bandwidth(const Page& page) {
  return page.summary.devices.empty() ? std::nullopt : page.summary.devices.front().peak_bandwidth;
}

std::optional<double> of_bandwidth(const Page& page, const CountedStage& stage) {
  const std::optional<double> peak = device_bandwidth(page);
  if (!stage.work.dram_bytes_per_s || peak.value_or(0) <= 0) return std::nullopt;
  return *stage.work.dram_bytes_per_s / *peak;
}

// The counter that scattered most: the others are better known than that.
std::optional<double> widest_spread(const std::vector<CounterValue>& values) {
  std::optional<double> widest;
  for (const CounterValue& value : values)
    if (value.spread) widest = std::max(widest.value_or(0), *value.spread);
  return widest;
}

std::string peak_text(const Page& page) {
  const std::optional<double> peak = device_bandwidth(page);
  if (!peak) return "unknown, this device has no peak bandwidth";
  const std::string& name = page.summary.devices.front().peak_bandwidth_name;
  return fmt::format("of the device's {}{}", base::human_rate(*peak, "B/s"), name.empty() ? "" : " (" + name + ")");
}

// MFU is of the run's own type; HFU of the type that was counted.
std::string hfu_text(const Page& page) {
  std::string types;
  for (const CountedStage& stage : page.summary.counters.stages) {
    const std::string type = stage.hfu_type.empty() ? stage.work.type : stage.hfu_type;
    if (!shown(page, stage.stage) || !stage.hfu || type.empty() || types.find(type) != std::string::npos) continue;
    types += (types.empty() ? "" : ", ") + type;
  }
  return types.empty() ? "" : fmt::format(", of the peak of {}", types);
}

// Of one step of each stage.
std::string counted_stages(const Page& page, const Json& hardware) {
  Json rows = hardware["stages"];
  if (rows.empty()) return "";
  for (Json& row : rows)
    row["measured_steps"] =
        fmt::format("{} of {}", row["measured"].get<std::int64_t>(), row["steps"].get<std::int64_t>());
  const TableText tables(rows);
  return "\n" + tables.rows("hardware_counters.stages[]#memory", rows) + "\n" +
         tables.rows("hardware_counters.stages[]#arithmetic", rows) +
         wrapped(fmt::format(
             "Of one step. measured: steps whose counters were read, of those of the stage. peak %: bytes counted / "
             "time, {}. must "
             "move: by the model's formulas; factor: DRAM bytes counted, of these. L2 hit %: of sectors asked of the "
             "L2 cache. spread %: standard deviation over the measured steps, of the counter that scattered most.",
             peak_text(page))) +
         wrapped(fmt::format(
             "HFU %: FLOPs counted / time{}; MFU %: those of the model. tensor %: cycles in which tensor cores worked; "
             "occup. %: warps resident, of those that fit. FLOP/B: FLOPs counted / DRAM bytes counted; roof %: least "
             "time at the roofs, of the time it took.",
             hfu_text(page)));
}

// Every counter of every stage.
std::string counted_values(const Page& page, const Json& hardware) {
  Json rows = Json::array();
  const auto add = [&](const Json& of, const char* name) {
    for (const Json& each : of) {
      for (const Json& value : each["values"]) {
        Json& row = rows.emplace_back(value);
        row["of_what"] = cut_off(text_at(each, name), kMostName);
        row["name"] = cut_off(text_at(value, "counter"), kMostName);
        row["denominator"] = text_at(value, "denominator");  // nothing, where it is no percentage
      }
    }
  };
  add(hardware["stages"], "stage");
  if (page.stage.empty()) add(hardware["ranges"], "name");
  return rows.empty() ? "" : "\n" + TableText(rows).rows("hardware_counters.stages[].values[]#steps", rows);
}

// The same quantities from other evidence beside them.
std::string evidence_table(const Json& hardware) {
  constexpr std::string_view kPath = "hardware_counters.evidence[]#table";
  const Json& rows = hardware["evidence"];
  if (rows.empty()) return "";
  const TableText tables(rows);
  std::string out = "\n" + tables.rows(kPath, rows) + tables.notes(kPath);
  for (const Json& row : rows) {
    if (!row["explanation"].is_null())
      out += wrapped(
          fmt::format("{}, {}: {}.", text_at(row, "stage"), text_at(row, "quantity"), text_at(row, "explanation")));
  }
  return out;
}

// The counters that most readers want, as far as they are there; then the others.
std::vector<std::string> columns_of(const std::vector<UnmixedClass>& classes) {
  static constexpr std::array<std::string_view, 5> kFirst{"dram_read_bytes", "dram_bytes", "tensor_active_pct",
                                                          "l2_hit_pct", "achieved_occupancy_pct"};
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  };
  for (const std::string_view name : kFirst)
    if (std::ranges::any_of(classes, [&](const UnmixedClass& c) { return counter_of(c.values, name) != nullptr; }))
      add(name);
  for (const UnmixedClass& c : classes)
    for (const CounterValue& value : c.values) add(value.counter);
  if (names.size() > kMostColumns) names.resize(kMostColumns);
  return names;
}

// A few counters of each kernel beside each other.
std::string few_columns(const Page& page) {
  const auto& classes = page.summary.counters.unmixed;
  TableText::Columns columns;
  Json rows = fields_json(classes);
  for (const std::string& name : columns_of(classes)) {
    columns.push_back({.key = name, .title = name, .format = "number"});
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const CounterValue* value = counter_of(classes[i].values, name);
      rows[i][name] = value != nullptr ? error_text(*value) : "-";
    }
  }
  return first_rows(page, "hardware_counters.unmixed[]#table", rows, "kernels", columns);
}

std::string every_value(const Page& page) {
  Json rows = Json::array();
  for (const UnmixedClass& c : page.summary.counters.unmixed) {
    for (const CounterValue& value : c.values) {
      Json& row = rows.emplace_back(fields_json(value));
      row["with_error"] = error_text(value);
      if (&value != &c.values.front()) continue;  // once for all of its counters
      row["of_what"] = base::short_kernel_name(c.name), row["in_samples"] = c.time_ns;
    }
  }
  return first_rows(page, "hardware_counters.stages[].values[]#kernels", rows, "") +
         TableText(rows).notes("hardware_counters.unmixed[]#table");
}

std::string unmixed_table(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  if (c.unmixed.empty()) return c.unmixed_why.empty() ? "" : wrapped("Samples could not be attributed to kernels: " + c.unmixed_why + ".");
  return page.counters ? every_value(page) : few_columns(page);
}

std::string place_text(const StallPlace& place) {
  if (place.file.empty()) return fmt::format("+{:#x}", place.pc_offset);
  return place.line ? fmt::format("{}:{}", place.file, *place.line) : place.file;
}

std::string reasons_text(const KernelStalls& kernel, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(kernel.reasons.size(), most); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", kernel.reasons[i].reason,
                       base::human_percent(kernel.reasons[i].share));
  return out;
}

std::string reasons_table(const Page& page, Json rows) {
  const auto& all = page.summary.counters.stalls;
  for (std::size_t i = 0; i < all.size(); ++i)
    rows[i]["first_reasons"] = cut_off(reasons_text(all[i], kMostReasons), 44);
  return first_rows(page, "hardware_counters.stalls[]#table", rows, "kernels");
}

// The places of all kernels, most samples first.
std::string places_table(const Page& page, const Json& stalls) {
  Json rows = Json::array();
  for (const Json& kernel : stalls) rows.insert(rows.end(), kernel["places"].begin(), kernel["places"].end());
  std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) { return a["samples"] > b["samples"]; });
  return first_rows(page, "hardware_counters.stalls[].places[]#table", rows, "places");
}

std::string stall_tables(const Page& page, const Json& stalls) {
  const analyze::Counters& c = page.summary.counters;
  if (c.stalls.empty() && c.stall_samples == 0) return "";
  const std::string tables = c.stalls.empty() ? "\n" : reasons_table(page, stalls) + places_table(page, stalls);
  const double unknown = c.stall_samples > 0 ? double(c.stall_unknown) / double(c.stall_samples) : 0;
  return tables +
         wrapped(fmt::format("Warps were looked at {} times; {} of it in code that is not known. share %: of all "
                             "samples; of reasons and kernel %: of the kernel's samples. +0x…: bytes from the "
                             "kernel's begin.",
                             c.stall_samples, base::human_percent(unknown)));
}

std::string method_text(std::string_view method) {
  if (method == "range") return "over whole steps as they ran, nothing repeated";
  if (method == "kernel") return "kernel by kernel";
  if (method == "sampled") return "by samples of the whole device";
  if (method == "gpm") return "by readings of the driver (NVML GPM)";
  if (method == "ncu") return "by Nsight Compute";
  return std::string(method);
}

// "range, sampled" -> both in words.
std::string methods_text(std::string_view methods) {
  std::string out;
  while (!methods.empty()) {
    const std::size_t comma = methods.find(", ");
    out += (out.empty() ? "" : ", and ") + method_text(methods.substr(0, comma));
    methods.remove_prefix(comma == std::string_view::npos ? methods.size() : comma + 2);
  }
  return out;
}

std::string how(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  if (c.method.empty()) return asked_set(page).empty() ? "" : wrapped(fmt::format("Asked for: {}.", asked_set(page)));
  std::string line = "Counted " + methods_text(c.method);
  if (const std::string set = asked_set(page); !set.empty()) line += fmt::format("; set {}", set);
  if (!c.chip.empty()) line += fmt::format("; chip {}", c.chip);
  if (c.windows > 0) line += fmt::format("; {} read", counted(c.windows, "window"));
  if (c.samples > 0) line += "; " + counted(c.samples, "sample");
  if (c.samples > 0 && c.period_ns) line += fmt::format(", one every {}", base::human_ns(*c.period_ns));
  return wrapped(line + ".");
}

std::string cost(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  if (c.cost_ns <= 0) return "";
  std::string line = fmt::format("Reading them took {} from the program", base::human_ns(double(c.cost_ns)));
  if (page.summary.coverage.wall_ns > 0)
    line += fmt::format(", {} of its wall time",
                        base::human_percent(double(c.cost_ns) / double(page.summary.coverage.wall_ns)));
  return wrapped(line + ".");
}

std::string clock_line(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  if (!page.counters || !c.clock_shift_ns) return "";
  return wrapped(fmt::format("Times of samples were moved by {} to fit the kernels{}.",
                             with_unit(*c.clock_shift_ns, "ns"),
                             c.clock_fit ? fmt::format("; fit {:.2f} of 1", *c.clock_fit) : ""));
}

// What was not measured, and why, comes before the numbers.
std::string notes(const Page& page) {
  const std::vector<std::string>& all = page.summary.counters.notes;
  const std::size_t shown = page.counters ? all.size() : std::min(all.size(), kFewNotes);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) out += wrapped(all[i].ends_with('.') ? all[i] : all[i] + ".");
  if (shown < all.size())
    out += wrapped(
        fmt::format("{} more; {}.", counted(static_cast<std::int64_t>(all.size() - shown), "note"), kCountersInFull));
  return out;
}

std::string of_kernels(const Page& page, const Json& hardware) {
  if (page.stage.empty())
    return unmixed_table(page) + first_rows(page, "hardware_counters.occupancy[]", hardware["occupancy"], "kernels") +
           stall_tables(page, hardware["stalls"]);
  return page.counters ? wrapped("Tables of kernels are of the whole run: they show without --stage.") : "";
}

}  // namespace

std::string asked_set(const Page& page) {
  if (!page.summary.counters.set.empty()) return page.summary.counters.set;
  return page.info.counters ? page.info.counters->set : "";
}

bool has_hardware(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  return c.any() || !c.notes.empty() || !c.set.empty() || page.info.counters;
}

namespace {

// Counters were asked for, and there are none.
std::string why_none(const Page& page) {
  const analyze::Summary& summary = page.summary;
  if (std::ranges::any_of(summary.losses, [](const auto& loss) { return loss.name.starts_with("counter"); }))
    return "None were read: the losses say why.";
  if (std::ranges::none_of(summary.devices, [](const auto& device) { return device.kind == "gpu"; }))
    return "None were read: no process of the run used a GPU.";
  return "None were read: nothing that was to be measured ran.";
}

}  // namespace

Json hardware_json(const Page& page) {
  if (!has_hardware(page)) return nullptr;
  const analyze::Counters& c = page.summary.counters;
  Json all = fields_json(c);
  all["set"] = base::text_or_null(asked_set(page));
  all["stages"] = Json::array(), all["evidence"] = Json::array(), all["ranges"] = all["modules"];
  for (const CountedStage& stage : c.stages) {
    if (!shown(page, stage.stage)) continue;
    Json& row = all["stages"].emplace_back(fields_json(stage));
    const analyze::Stage* whole = stage_of(page, stage.stage);
    row["of_bandwidth"] = base::maybe(of_bandwidth(page, stage));
    row["must_move"] = base::maybe(must_move(page, stage));
    row["spread"] = base::maybe(widest_spread(stage.values));
    row["mfu"] = base::maybe(whole != nullptr ? whole->efficiency.mfu : std::nullopt);
    add_counters(stage.values, row);
  }
  for (std::size_t i = 0; i < c.modules.size(); ++i) add_counters(c.modules[i].values, all["ranges"][i]);
  for (const analyze::QuantityEvidence& e : c.evidence) {
    if (!shown(page, e.stage)) continue;
    const bool both = e.counted && e.analytic.value_or(0) > 0;
    all["evidence"].emplace_back(fields_json(e))["ratio"] = both ? Json(*e.counted / *e.analytic) : Json(nullptr);
  }
  for (std::size_t i = 0; i < c.stalls.size(); ++i) {
    const std::vector<StallPlace>& places = c.stalls[i].places;
    for (std::size_t k = 0; k < places.size(); ++k) all["stalls"][i]["places"][k]["place"] = place_text(places[k]);
  }
  return described("hardware_counters", all);
}

std::string hardware_section(const Page& page, const Style& style) {
  if (!has_hardware(page)) return "";
  std::string out = style.heading("Hardware counters") + how(page) + cost(page) + clock_line(page);
  if (!page.summary.counters.any()) out += wrapped(why_none(page));
  const Json hardware = hardware_json(page);
  out += notes(page) + counted_stages(page, hardware);
  if (page.stage.empty()) out += first_rows(page, "hardware_counters.ranges[]#table", hardware["ranges"], "ranges");
  if (page.counters) out += counted_values(page, hardware);
  return out + evidence_table(hardware) + of_kernels(page, hardware);
}

std::string hardware_alone(const Page& page, const Style& style, const TableText& tables) {
  const std::string out = hardware_section(page, style) + counter_table(page, style, tables);
  if (!out.empty()) return out;
  return style.heading("Hardware counters") +
         wrapped(
             "None: the run was recorded without them. llmprof record --counters light counts bytes, tensor cores and "
             "occupancy of every stage; llmprof counters lists what there is.");
}

}  // namespace llmprof::report
