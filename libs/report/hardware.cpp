#include "report/hardware.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/hardware_parts.h"
#include "report/imported.h"
#include "report/with_unit.h"

namespace llmprof::report {
namespace {

constexpr std::size_t kFewRows = 5, kFewNotes = 3;

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

std::string of_kernels(const Page& page) {
  if (page.stage.empty()) return unmixed_table(page) + occupancy_table(page) + stall_tables(page);
  return page.counters ? wrapped("Tables of kernels are of the whole run: they show without --stage.") : "";
}

}  // namespace

std::size_t hardware_rows(const Page& page) {
  if (page.counters) return SIZE_MAX;
  return page.findings > 0 ? page.top : std::min(page.top, kFewRows);  // findings: --top was given
}

std::string rows_left(const Page& page, std::size_t all, std::string_view what) {
  const std::size_t rows = hardware_rows(page);
  return all > rows ? fmt::format("  {} more {}; {}.\n", all - rows, what, kCountersInFull) : "";
}

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

std::string hardware_section(const Page& page, const Style& style) {
  if (!has_hardware(page)) return "";
  std::string out = style.heading("Hardware counters") + how(page) + cost(page) + clock_line(page);
  if (!page.summary.counters.any()) out += wrapped(why_none(page));
  out += notes(page) + counted_stages(page) + counted_modules(page);
  if (page.counters) out += counted_values(page);
  out += evidence_table(page) + of_kernels(page);
  return out;
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
