#include <fmt/format.h>

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

std::string load_of(const Design& d) {
  return fmt::format("{}: batch {}, prompt {}, context {}; {}", model_name(d), d.options.batch, d.options.prompt,
                     d.options.context, d.types);
}

}  // namespace

std::string to_text(const DiffPage& page, bool colour) {
  const Style style{colour};
  std::string out = wrapped(fmt::format("A {}", load_of(page.a)), 0) + wrapped(fmt::format("B {}", load_of(page.b)), 0);
  out += style.heading("Read first");
  for (const auto& [name, design] : {std::pair{"A", &page.a}, std::pair{"B", &page.b}}) {
    for (const std::string& caveat : design->caveats) out += wrapped(fmt::format("! {}: {}", name, caveat));
  }
  for (const std::string& note : page.a.notes) out += wrapped("- " + note);
  std::string part;
  TextTable table({{"", Align::kLeft}, {"", Align::kLeft}, {"A"}, {"B"}, {"B / A"}});
  for (const DiffRow& row : page.rows) {
    table.add({row.part == part ? "" : row.part, row.name, value_cell(row.a, row.unit), value_cell(row.b, row.unit),
               row.ratio() ? base::three_digits(*row.ratio()) : "-"});
    part = row.part;
  }
  out += style.heading("Side by side") + table.render(kWidth);
  return out + wrapped(peaks_sentence(page.b));
}

}  // namespace llmprof::report
