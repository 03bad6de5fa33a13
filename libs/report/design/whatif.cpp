#include "report/design/whatif.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"

namespace llmprof::report {
namespace {

namespace design = analyze::design;
using base::Json;

constexpr std::string_view kDocument = "llmprof.whatif";

// The document by the names of its keys.
struct Document {
  std::string subject;
  std::vector<std::string> changes;
  std::string device;
  std::vector<design::ExpectedStage> expected;
  std::vector<design::DiffRow> rows;
  std::vector<design::Gradient> gradients;
  std::vector<design::Cliff> cliffs;
  std::vector<std::string> notes;
};

Document document_of(const WhatIfPage& page) {
  return {page.subject,
          page.changes,
          page.after.roof.device,
          page.expected,
          design::diff(page.before, page.after),
          page.gradients,
          page.cliffs,
          page.notes};
}

Json with_ratios(const std::vector<design::ExpectedStage>& stages) {
  Json rows = base::fields_json(stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    rows[i]["least_ratio"] = stages[i].least_ratio();
    rows[i]["most_ratio"] = stages[i].most_ratio();
  }
  return rows;
}

}  // namespace

std::string to_text(const WhatIfPage& page, bool colour) {
  const Style style{colour};
  const Document document = document_of(page);
  const Json nothing;
  const TableText tables(nothing);
  std::string changes;
  for (const std::string& change : page.changes) changes += (changes.empty() ? "" : ", ") + change;
  std::string out = style.heading(fmt::format("What if: {}", changes)).substr(1);
  out += wrapped(fmt::format("{}, on {}.", page.subject, document.device));
  const auto section = [&](std::string_view key, const Json& rows) {
    const std::string path = fmt::format("{}.{}[]", kDocument, key);
    return rows.empty() ? "" : style.heading(tables.title(path)) + tables.rows(path, rows) + tables.notes(path);
  };
  out += section("expected", with_ratios(document.expected));
  out += "\n" + to_text(DesignDiffPage{page.before, page.after, document.rows}, colour);
  out += section("gradients", base::fields_json(document.gradients)) +
         section("cliffs", base::fields_json(document.cliffs));
  for (const std::string& note : page.notes) out += wrapped("- " + note + ".");
  return out;
}

void to_json(const WhatIfPage& page, Json& out) {
  const Document document = document_of(page);
  Json all = base::fields_json(document);
  all["expected"] = with_ratios(document.expected);
  out.update(described(kDocument, all));
}

}  // namespace llmprof::report
