#include "report/design/parts.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/text_table.h"

namespace llmprof::report {
namespace {

using analyze::design::Design;
using analyze::design::UsedPeak;

std::string source_of(const UsedPeak& peak) {
  return peak.method.empty() ? peak.source : fmt::format("{}: {}", peak.source, peak.method);
}

std::string model_line(const Design& d) {
  const auto& c = d.config;
  std::string line = fmt::format("{}: {}, {} layers, hidden {}, vocabulary {}", model_name(d), c.family, c.layers(),
                                 c.hidden, c.vocab);
  if (c.positions > 0) line += fmt::format(", {} positions", c.positions);
  return line;
}

}  // namespace

std::string grouped(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t end = digits.size(); end > (count < 0 ? 4u : 3u); end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string number_cell(std::optional<double> value) {
  if (!value) return "-";
  return *value >= 9999.5 ? base::human_count(*value) : base::three_digits(*value);
}

std::string bytes_cell(std::optional<double> bytes) { return bytes ? base::human_bytes(*bytes) : "-"; }

std::string floor_cell(std::optional<double> ns) { return ns ? base::human_ns(*ns) : "-"; }

std::string bound_cell(const analyze::design::Floor& floor) {
  return floor.bound() == "unknown" ? "-" : std::string(floor.bound());
}

std::string model_name(const Design& d) { return d.config.name.empty() ? "model" : d.config.name; }

std::string peaks_sentence(const Design& d) {
  if (!d.roof.known()) return "";
  std::string text;
  for (const UsedPeak& peak : d.peaks) {
    const std::string as = peak.note.empty() ? "" : " as " + peak.peak_type;
    text += fmt::format("Peak of {}{}: {} ({}). ", peak.type, as, base::human_rate(peak.per_second, "FLOP/s"),
                        source_of(peak));
  }
  if (d.bandwidth) {
    text +=
        fmt::format("Bandwidth: {} ({}).", base::human_rate(d.bandwidth->per_second, "B/s"), source_of(*d.bandwidth));
  }
  return text;
}

std::string head_section(const Design& d, const Style& style) {
  std::string out = wrapped(model_line(d), 0);
  for (const std::string& sentence : d.architecture) out += wrapped(sentence);
  out += wrapped(d.types + (d.origin.empty() ? "" : "; from " + d.origin));
  out += style.heading("Read first");
  for (const std::string& caveat : d.caveats) out += wrapped("! " + caveat);
  for (const std::string& note : d.notes) out += wrapped("- " + note);
  return out;
}

}  // namespace llmprof::report
