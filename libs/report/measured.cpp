#include "report/measured.h"

#include <fmt/format.h>

#include "base/human.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::MeasuredFindings;
using analyze::design::UsedPeak;
using base::human_bytes;
using base::human_ns;
using base::human_percent;
using base::human_rate;
using base::Json;
using base::text_or_null;

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
  if (f.shares.empty()) return out;
  const Json rows = described_fields("llmprof.model_measured.device_time[]", f.shares);
  out += TableText(rows).rows("llmprof.model_measured.device_time[]", rows);
  if (f.device_total_ns) out += wrapped(fmt::format("device %: of {}, measured.", human_ns(*f.device_total_ns)));
  return out;
}

std::string sentences(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += wrapped(line);
  return out;
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
  Json all = base::fields_json(page.findings);
  all["type_source"] = page.findings.type_inferred ? "inferred" : "config";
  // The findings are one struct; the document groups them.
  const Json findings = all;
  for (const char* part : {"weights", "linear_layers_per_pass"}) all[part] = findings;
  all["passes"] = findings, all["busy"] = findings;
  all["model"] = page.model, all["device"] = text_or_null(page.device), all["file"] = page.file;
  out.update(described("llmprof.model_measured", all));
}

}  // namespace llmprof::report
