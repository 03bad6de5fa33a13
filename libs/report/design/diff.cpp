#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/design/page.h"
#include "report/design/parts.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using analyze::design::Design;
using analyze::design::DiffRow;
using base::Align;
using base::TextTable;

std::string value_cell(const std::optional<double>& value, std::string_view unit) {
  if (!value) return "-";
  if (unit == "B") return base::human_bytes(*value);
  if (unit == "ns") return base::human_ns(*value);
  if (unit == "") return *value < 1e15 ? grouped(static_cast<std::int64_t>(*value)) : base::human_count(*value);
  return base::human_rate(*value, std::string(unit).c_str());
}

std::string subject_of(const Design& d) {
  const std::string devices = d.devices > 1 ? fmt::format("{} x ", d.devices) : "";
  const std::string on = d.roof.known() ? fmt::format(" on {}{}", devices, d.roof.device) : "";
  return fmt::format("{}{}; {}", model_name(d), on, d.types);
}

// "batch 1, prompt 1024, context 1024"; both have the same unless a model is made for less.
std::string load_of(const Design& d) {
  const std::string context = d.training ? "" : fmt::format(", context {}", d.options.context);
  return fmt::format("batch {}, prompt {}{}", d.options.batch, d.options.prompt, context);
}

// Lines of both once, the others with the name of whose they are.
std::string shared_lines(const char* mark, const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto in = [](const std::vector<std::string>& lines, const std::string& line) {
    return std::ranges::find(lines, line) != lines.end();
  };
  std::string out;
  for (const std::string& line : a) out += wrapped(fmt::format("{}{}{}", mark, in(b, line) ? "" : "A: ", line));
  for (const std::string& line : b) {
    if (!in(a, line)) out += wrapped(fmt::format("{}B: {}", mark, line));
  }
  return out;
}

}  // namespace

std::string to_text(const DesignDiffPage& page, bool colour) {
  const Style style{colour};
  const bool same_load = load_of(page.a) == load_of(page.b);
  std::string out;
  for (const auto& [name, design] : {std::pair{"A", &page.a}, std::pair{"B", &page.b}}) {
    out += wrapped(fmt::format("{}: {}{}", name, subject_of(*design), same_load ? "" : "; " + load_of(*design)), 0);
  }
  out += style.heading("Read first");
  out += shared_lines("! ", page.a.caveats, page.b.caveats) + shared_lines("- ", page.a.notes, page.b.notes);
  std::string part;
  TextTable table({{"", Align::kLeft}, {"", Align::kLeft}, {"A"}, {"B"}, {"B / A"}});
  for (const DiffRow& row : page.rows) {
    table.add({row.part == part ? "" : row.part, row.name, value_cell(row.a, row.unit), value_cell(row.b, row.unit),
               row.ratio() ? base::three_digits(*row.ratio()) : "-"});
    part = row.part;
  }
  out += style.heading(same_load ? "Side by side: " + load_of(page.a) : "Side by side") + table.render(kWidth);
  const std::string a = peaks_sentence(page.a), b = peaks_sentence(page.b);
  return out + (a == b ? wrapped(a) : wrapped("A: " + a) + wrapped("B: " + b));
}

}  // namespace llmprof::report
