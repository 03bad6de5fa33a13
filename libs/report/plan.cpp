#include "report/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"
#include "base/json.h"
#include "report/layout.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using base::human_ns;
using base::human_percent;
using base::Json;
using predict::plan::PlanDocument;
using predict::plan::PlanRow;

constexpr std::string_view kPlan = "llmprof.plan";

std::string slo_text(const PlanDocument& d) {
  std::string text;
  const auto part = [&](std::string_view name, const std::optional<double>& limit_ns) {
    if (limit_ns) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, human_ns(*limit_ns));
  };
  part("TTFT", d.slo.ttft_ns), part("TPOT", d.slo.tpot_ns), part("E2E", d.slo.e2e_ns);
  return text;
}

std::string searched_text(const PlanDocument& d) {
  const predict::plan::SearchedRow& s = d.searched;
  std::string text =
      fmt::format("{} of {}: {} meet the SLO, {} only as predicted", counted(s.configurations, "configuration"),
                  counted(static_cast<std::int64_t>(d.devices.size()), "device"), s.meet, s.may_meet);
  const auto part = [&](std::int64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  part(s.do_not_fit, "do not fit"), part(s.too_slow, "are too slow even for a request alone");
  part(s.refused, "have no room for the requests"), part(s.too_many_devices, "would need too many devices");
  return text + ".";
}

std::set<std::string> types_of(const PlanDocument& d) {
  std::set<std::string> types;
  for (const PlanRow& row : d.configurations) types.insert(row.dtype);
  for (const predict::plan::LeftOutRow& row : d.left_out) types.insert(row.dtype);
  return types;
}

Flags flags_of(const PlanDocument& d) {
  Flags flags;
  const auto measured = [](const PlanRow& row) { return row.measured + row.interpolated + row.extrapolated > 0; };
  if (std::ranges::any_of(d.configurations, measured)) flags.insert("tables");
  if (types_of(d).size() > 1) flags.insert("types");
  if (d.slo.e2e_ns) flags.insert("e2e");
  if (std::ranges::any_of(d.configurations, [](const PlanRow& row) { return row.tensor > 1; })) flags.insert("ranks");
  if (std::ranges::any_of(d.configurations, [](const PlanRow& row) { return row.highest_rate.has_value(); }))
    flags.insert("rates");
  if (std::ranges::any_of(d.devices, [](const auto& device) { return device.price.has_value(); }))
    flags.insert("priced");
  return flags;
}

std::string reading(const PlanDocument& d, const Flags& flags) {
  const std::string cost = flags.contains("priced")
                               ? "price per hour (as given; devices without a price count as the dearest)"
                               : "number of devices (no prices were given: --price DEVICE=USD_PER_HOUR)";
  std::string text = fmt::format(
      "Shown: what no other row beats in {}, energy and latency together. TTFT and TPOT: what {} of the requests have "
      "at most, with steps as predicted…with all steps as long as they may be. SLO %: the worst limit, likewise. ",
      cost, human_percent(d.slo.share));
  text += "J/1k max: joules of 1000 output tokens, at most. ";
  if (flags.contains("rates"))
    text +=
        "req/s max: the highest rate that the same devices keep within the SLO, by the steps that the row is judged "
        "by. ";
  text += "What the times stand on: roof %, the least times at the device's peaks";
  if (flags.contains("ranks")) text += "; links %, stated costs of links";
  if (flags.contains("tables")) text += "; measured operators";
  return wrapped(text + ".");
}

std::string sources(const PlanDocument& d) {
  std::string out;
  for (const predict::plan::DeviceRow& device : d.devices) {
    const std::string power =
        device.power_w ? fmt::format("power by {}", device.power_source) : std::string("power not known");
    out += wrapped(fmt::format("- {}: {}; between ranks {}.", device.device, power, device.link));
  }
  return out;
}

}  // namespace

std::string to_text(const PlanPage& page, bool colour) {
  const PlanDocument& d = page.document;
  const Style style{colour};
  const Json all = base::fields_json(d);
  Flags flags = flags_of(d);
  const auto section = [&](std::string_view key, const Flags& shown) {
    const TableText tables(all, shown);
    const std::string path = fmt::format("{}.{}[]", kPlan, key);
    const Json& rows = all[std::string(key)];
    return rows.empty() ? "" : style.heading(tables.title(path)) + tables.rows(path, rows) + tables.notes(path);
  };
  const std::set<std::string> types = types_of(d);
  std::string out = style
                        .heading(fmt::format("Plan, predicted, not measured: {}, {}{}", d.model,
                                             types.size() == 1 ? *types.begin() + ", " : "", d.engine))
                        .substr(1);
  out +=
      wrapped(fmt::format("{}. SLO: {}, for {} of the requests.", d.workload, slo_text(d), human_percent(d.slo.share)));
  out += wrapped(searched_text(d));
  out += section("front", flags) + section("may", flags);
  if (!d.front.empty() || !d.may.empty()) out += "\n" + reading(d, flags);
  if (!d.obstacles.empty()) {
    out += style.heading(d.may.empty() ? "Why nothing meets the SLO" : "Why nothing meets the SLO for certain");
    for (const std::string& line : d.obstacles) out += wrapped(line + ".");
  }
  if (page.full) {
    flags.insert("all"), flags.erase("rates");
    out += section("configurations", flags) + section("left_out", flags) + section("devices", flags) + sources(d);
  }
  out += style.heading("How far to trust it");
  for (const std::string& note : d.notes) out += wrapped("- " + note + ".");
  return out + (page.full ? "" : wrapped("--full: every configuration, what was left out and why, the devices."));
}

void to_json(const PlanPage& page, Json& out) { out.update(described_fields(kPlan, page.document)); }

}  // namespace llmprof::report
