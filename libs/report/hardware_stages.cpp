// Hardware counters of stages and of ranges below them, and the same quantities from other evidence beside them.
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/hardware_parts.h"
#include "report/tables.h"
#include "report/with_unit.h"

namespace llmprof::report {
namespace {

using analyze::CountedStage;
using analyze::CounterValue;
using base::Align;
using base::TextTable;

constexpr std::size_t kMostName = 36;  // columns: names of the chip's metrics are longer

const analyze::Stage* stage_of(const Page& page, const std::string& name) {
  const auto& all = page.summary.stages;
  const auto found = std::find_if(all.begin(), all.end(), [&](const analyze::Stage& s) { return s.name == name; });
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

std::string number_cell(const std::optional<double>& value) { return value ? base::three_digits(*value) : "-"; }
std::string times_cell(const std::optional<double>& value) { return value ? fmt::format("{:.2f}x", *value) : "-"; }
std::string ns_cell(const std::optional<double>& ns) { return ns ? base::human_ns(*ns) : "-"; }

std::string memory_table(const Page& page) {
  TextTable table({{"stage", Align::kLeft, true},
                   {"measured"},
                   {"time"},
                   {"DRAM"},
                   {"written"},
                   {"GB/s"},
                   {"peak %"},
                   {"must move"},
                   {"factor"},
                   {"L2 hit %"},
                   {"spread %"}});
  for (const CountedStage& stage : page.summary.counters.stages) {
    if (!shown(page, stage.stage)) continue;
    const CounterValue* written = counter_of(stage.values, "dram_write_bytes");
    table.add({stage.stage, fmt::format("{} of {}", stage.measured, stage.steps), ns_cell(stage.work.time_ns),
               bytes_cell(stage.work.dram_bytes), written != nullptr ? bytes_cell(written->value) : "-",
               giga_cell(stage.work.dram_bytes_per_s), percent_cell(of_bandwidth(page, stage)),
               bytes_cell(must_move(page, stage)), times_cell(stage.redundancy), percent_of(stage.values, "l2_hit_pct"),
               percent_cell(widest_spread(stage.values))});
  }
  return table.rows() == 0 ? "" : table.render(kWidth);
}

std::string compute_table(const Page& page) {
  TextTable table({{"stage", Align::kLeft, true},
                   {"FLOPs"},
                   {"by tensor cores"},
                   {"HFU %"},
                   {"MFU %"},
                   {"tensor %"},
                   {"occup. %"},
                   {"FLOP/B"},
                   {"bound", Align::kLeft},
                   {"roof %"}});
  for (const CountedStage& stage : page.summary.counters.stages) {
    if (!shown(page, stage.stage)) continue;
    const analyze::Stage* whole = stage_of(page, stage.stage);
    table.add({stage.stage, amount_cell(stage.work.flops), amount_cell(stage.work.tensor_flops),
               percent_cell(stage.hfu), percent_cell(whole != nullptr ? whole->efficiency.mfu : std::nullopt),
               percent_of(stage.values, "tensor_active_pct"), percent_of(stage.values, "achieved_occupancy_pct"),
               number_cell(stage.work.dram_intensity), stage.work.bound.empty() ? "-" : stage.work.bound,
               percent_cell(stage.work.of_roof)});
  }
  return table.rows() == 0 ? "" : table.render(kWidth);
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

std::string evidence_cell(const std::optional<double>& value, std::string_view unit) {
  return value ? value_text(*value, unit) : "-";
}

}  // namespace

const CounterValue* counter_of(const std::vector<CounterValue>& values, std::string_view name) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const CounterValue& v) { return v.counter == name; });
  return found == values.end() ? nullptr : &*found;
}

std::string value_text(double value, std::string_view unit) {
  if (unit == "%") return fmt::format("{:.1f} %", value);
  if (unit == "bytes" || unit == "byte") return with_unit(value, "B");
  if (unit == "bytes/s" || unit == "byte/s") return with_unit(value, "B/s");
  return with_unit(value, unit);
}

std::string with_error(const CounterValue& value) {
  const std::string text = value_text(value.value, value.unit);
  return value.error ? fmt::format("{} ±{}", text, base::human_percent(*value.error)) : text + " ±?";
}

std::string percent_of(const std::vector<CounterValue>& values, std::string_view name) {
  const CounterValue* value = counter_of(values, name);
  return value != nullptr ? percent_cell(value->value / 100) : "-";
}

std::string counted_stages(const Page& page) {
  const std::string memory = memory_table(page);
  if (memory.empty()) return "";
  return "\n" + memory + "\n" + compute_table(page) +
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

std::string counted_modules(const Page& page) {
  const auto& all = page.summary.counters.modules;
  if (all.empty() || !page.stage.empty()) return "";
  TextTable table({{"range of the program", Align::kLeft, true},
                   {"measured"},
                   {"DRAM read"},
                   {"written"},
                   {"L2 hit %"},
                   {"tensor %"},
                   {"occup. %"}});
  for (std::size_t i = 0; i < std::min(all.size(), hardware_rows(page)); ++i) {
    const CounterValue* read = counter_of(all[i].values, "dram_read_bytes");
    const CounterValue* written = counter_of(all[i].values, "dram_write_bytes");
    table.add({all[i].name, std::to_string(all[i].measured), read != nullptr ? bytes_cell(read->value) : "-",
               written != nullptr ? bytes_cell(written->value) : "-", percent_of(all[i].values, "l2_hit_pct"),
               percent_of(all[i].values, "tensor_active_pct"), percent_of(all[i].values, "achieved_occupancy_pct")});
  }
  return "\n" + table.render(kWidth) + rows_left(page, all.size(), "ranges");
}

std::string counted_values(const Page& page) {
  TextTable table({{"stage", Align::kLeft},
                   {"counter", Align::kLeft},
                   {"per step"},
                   {"spread %"},
                   {"measured"},
                   {"method", Align::kLeft},
                   {"of", Align::kLeft, true}});
  const auto add = [&](const std::string& of, const std::vector<CounterValue>& values) {
    for (const CounterValue& v : values)
      table.add({cut_off(of, kMostName), cut_off(v.counter, kMostName), value_text(v.value, v.unit),
                 percent_cell(v.spread), std::to_string(v.occurrences), v.method, v.denominator});
  };
  for (const CountedStage& stage : page.summary.counters.stages)
    if (shown(page, stage.stage)) add(stage.stage, stage.values);
  if (page.stage.empty())
    for (const analyze::CountedModule& module : page.summary.counters.modules) add(module.name, module.values);
  return table.rows() == 0 ? "" : "\n" + table.render(kWidth);
}

std::string evidence_table(const Page& page) {
  TextTable table({{"one step of", Align::kLeft, true},
                   {"quantity", Align::kLeft},
                   {"analytic"},
                   {"shapes"},
                   {"counted"},
                   {"counted/analytic"}});
  std::string why;
  for (const analyze::QuantityEvidence& e : page.summary.counters.evidence) {
    if (!shown(page, e.stage)) continue;
    const bool both = e.counted && e.analytic.value_or(0) > 0;
    table.add({e.stage, e.quantity, evidence_cell(e.analytic, e.unit), evidence_cell(e.shapes, e.unit),
               evidence_cell(e.counted, e.unit), both ? fmt::format("{:.3f}", *e.counted / *e.analytic) : "-"});
    if (!e.explanation.empty()) why += wrapped(fmt::format("{}, {}: {}.", e.stage, e.quantity, e.explanation));
  }
  if (table.rows() == 0) return "";
  return "\n" + table.render(kWidth) +
         wrapped("analytic: the model's formulas; shapes: of the matrix products that were seen; counted: hardware.") +
         why;
}

}  // namespace llmprof::report
