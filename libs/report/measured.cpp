#include "report/measured.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using analyze::MeasuredFindings;
using analyze::design::UsedPeak;
using base::human_bytes;
using base::human_ns;
using base::human_percent;
using base::human_rate;
using base::Json;
using base::maybe;

std::string grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string sourced(const UsedPeak& peak) {
  return peak.source + (peak.method.empty() ? "" : ": " + peak.method) + (peak.note.empty() ? "" : "; " + peak.note);
}

std::string weights_line(const MeasuredFindings& f) {
  if (!f.bytes_per_parameter) {
    return wrapped(
        fmt::format("{} parameters (analytic), counted as {} as the config says: give --measured-weights to "
                    "infer the type they are stored in.",
                    grouped(f.parameters), f.stored_type));
  }
  return wrapped(fmt::format("{} in memory (measured) / {} parameters (analytic) = {:.3f} B each: {}.",
                             human_bytes(*f.weights_bytes), grouped(f.parameters), *f.bytes_per_parameter,
                             f.type_inferred ? f.stored_type + " (inferred)" : "no type fits, see below"));
}

std::string passes_line(const MeasuredFindings& f) {
  if (!f.passes) return "";
  return wrapped(fmt::format("{} calls of {} (measured) / {} linear layers of the model (analytic) = {} (inferred).",
                             grouped(f.linear_calls), f.linear_name, f.linears_per_pass, counted(*f.passes, "pass")));
}

std::string linear_lines(const MeasuredFindings& f) {
  std::string out;
  if (f.linear_ns) {
    out +=
        wrapped(fmt::format("{} on the device for {} of weights and {} (analytic): {}{}.", human_ns(*f.linear_ns),
                            human_bytes(f.linear_bytes), base::human_count(f.linear_flops) + "FLOP",
                            human_rate(f.linear_bytes_per_s.value_or(0), "B/s"),
                            f.linear_share_of_bandwidth
                                ? fmt::format(", {} of {} bandwidth ({})", human_percent(f.linear_share_of_bandwidth),
                                              human_rate(f.bandwidth->per_second, "B/s"), sourced(*f.bandwidth))
                                : ""));
  }
  if (f.linear_floor_ns) {
    return out + wrapped(fmt::format("Floor {}, bound by {}; {} {} ({}).", human_ns(*f.linear_floor_ns), f.linear_bound,
                                     human_rate(f.arithmetic->per_second, "FLOP/s"), f.arithmetic->peak_type,
                                     sourced(*f.arithmetic)));
  }
  return out + wrapped("Floor: unknown, " + f.floor_why + ".");
}

std::string device_lines(const MeasuredFindings& f) {
  std::string out =
      f.busy ? wrapped(fmt::format("Busy {}: {} of {} (Self CPU time total, what the profiler saw).",
                                   human_percent(f.busy), human_ns(*f.device_total_ns), human_ns(*f.cpu_total_ns)))
             : wrapped("How busy it was is unknown: the text does not have both totals.");
  base::TextTable table(
      {{"device time of", base::Align::kLeft}, {"row", base::Align::kLeft, true}, {"time"}, {"device %"}});
  for (const MeasuredFindings::Share& share : f.shares)
    table.add({share.what, share.name, human_ns(share.ns), percent_cell(share.of_device)});
  if (table.rows() > 0) {
    out += table.render(kWidth);
    if (f.device_total_ns) out += wrapped(fmt::format("device %: of {}, measured.", human_ns(*f.device_total_ns)));
  }
  return out;
}

std::string sentences(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += wrapped(line);
  return out;
}

Json peak_json(const std::optional<UsedPeak>& peak) {
  if (!peak) return nullptr;
  return {{"type", peak->peak_type.empty() ? Json(nullptr) : Json(peak->peak_type)},
          {"per_second", peak->per_second},
          {"source", peak->source},
          {"method", peak->method}};
}

Json linear_json(const MeasuredFindings& f) {
  return {{"time_ns", maybe(f.linear_ns)},
          {"weight_bytes", f.linear_bytes},
          {"flops", f.linear_flops},
          {"bytes_per_s", maybe(f.linear_bytes_per_s)},
          {"share_of_bandwidth", maybe(f.linear_share_of_bandwidth)},
          {"floor_ns", maybe(f.linear_floor_ns)},
          {"bound", f.linear_bound.empty() ? Json(nullptr) : Json(f.linear_bound)},
          {"bandwidth", peak_json(f.bandwidth)},
          {"arithmetic", peak_json(f.arithmetic)},
          {"why", f.floor_why.empty() ? Json(nullptr) : Json(f.floor_why)}};
}

}  // namespace

std::string to_text(const MeasuredPage& page, bool colour) {
  const Style style{colour};
  const MeasuredFindings& f = page.findings;
  std::string out = style.heading(fmt::format("{}: the profile {}", page.model, page.file)).substr(1);
  if (!page.device.empty()) out += wrapped("on " + page.device);
  out += style.heading("Weights") + weights_line(f);
  out += style.heading("Passes") + passes_line(f);
  out += style.heading("Linear layers of one pass") + linear_lines(f);
  out += style.heading("Device") + device_lines(f);
  if (!f.caveats.empty()) out += style.heading("To be read with it") + sentences(f.caveats);
  if (!f.follows.empty()) out += style.heading("What follows") + sentences(f.follows);
  return out;
}

void to_json(const MeasuredPage& page, Json& out) {
  const MeasuredFindings& f = page.findings;
  out["model"] = page.model;
  out["device"] = page.device.empty() ? Json(nullptr) : Json(page.device);
  out["file"] = page.file;
  out["weights"] = {{"parameters", f.parameters},
                    {"bytes", maybe(f.weights_bytes)},
                    {"bytes_per_parameter", maybe(f.bytes_per_parameter)},
                    {"type", f.stored_type},
                    {"type_source", f.type_inferred ? "inferred" : "config"}};
  out["passes"] = {{"row", f.linear_name.empty() ? Json(nullptr) : Json(f.linear_name)},
                   {"calls", f.linear_calls},
                   {"linear_layers", f.linears_per_pass},
                   {"count", f.passes ? Json(*f.passes) : Json(nullptr)}};
  out["linear_layers_per_pass"] = linear_json(f);
  out["busy"] = {{"share", maybe(f.busy)}, {"device_ns", maybe(f.device_total_ns)}, {"cpu_ns", maybe(f.cpu_total_ns)}};
  out["device_time"] = Json::array();
  for (const MeasuredFindings::Share& share : f.shares) {
    out["device_time"].push_back(
        {{"what", share.what}, {"row", share.name}, {"time_ns", share.ns}, {"share", maybe(share.of_device)}});
  }
  out["caveats"] = f.caveats;
  out["follows"] = f.follows;
}

}  // namespace llmprof::report
