#include "report/design/whatif.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"

namespace llmprof::report {
namespace {

namespace design = analyze::design;
using base::Json;

constexpr std::string_view kDocument = "llmprof.whatif";

// A prediction of both sides.
struct PredictedRow {
  std::string stage;
  double before_ns = 0, before_least_ns = 0, before_most_ns = 0;
  double after_ns = 0, after_least_ns = 0, after_most_ns = 0;
  double ratio = 0;
  std::string before_interval, after_interval;
};

struct StandsOn {
  std::string source, before, after;
};

// The document by the names of its keys.
struct Document {
  std::string subject;
  std::vector<std::string> changes;
  std::string device;
  std::vector<design::ExpectedStage> expected;
  std::vector<PredictedRow> predicted;
  std::optional<StandsOn> stands_on;
  std::vector<design::DiffRow> rows;
  std::vector<design::Gradient> gradients;
  std::vector<design::Cliff> cliffs;
  std::vector<std::string> notes;
};

std::string interval(double least_ns, double most_ns) {
  return fmt::format("{} … {}", base::human_ns(least_ns), base::human_ns(most_ns));
}

std::vector<PredictedRow> predicted_rows(const design::Priced& before, const design::Priced& after) {
  std::vector<PredictedRow> rows;
  for (const design::PricedStage& a : before.stages) {
    const design::PricedStage* b = after.stage(a.stage);
    if (b == nullptr || !(a.ns > 0)) continue;
    rows.push_back({a.stage, a.ns, a.ns * a.least, a.ns * a.most, b->ns, b->ns * b->least, b->ns * b->most,
                    b->ns / a.ns, interval(a.ns * a.least, a.ns * a.most),
                    interval(b->ns * b->least, b->ns * b->most)});
  }
  return rows;
}

Document document_of(const WhatIfPage& page) {
  Document out{.subject = page.subject,
               .changes = page.changes,
               .device = page.after.roof.device,
               .expected = page.expected,
               .predicted = {},
               .stands_on = std::nullopt,
               .rows = page.changes.empty() ? std::vector<design::DiffRow>() : design::diff(page.before, page.after),
               .gradients = page.gradients,
               .cliffs = page.cliffs,
               .notes = page.notes};
  if (page.predicted && page.predicted->first.source != design::Source::kFloor) {
    out.predicted = predicted_rows(page.predicted->first, page.predicted->second);
    out.stands_on = StandsOn{std::string(design::source_name(page.predicted->first.source)),
                             page.predicted->first.stands_on, page.predicted->second.stands_on};
  }
  return out;
}

Json with_ratios(const std::vector<design::ExpectedStage>& stages) {
  Json rows = base::fields_json(stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    rows[i]["least_ratio"] = stages[i].least_ratio();
    rows[i]["most_ratio"] = stages[i].most_ratio();
    rows[i]["interval"] = interval(stages[i].least_ns, stages[i].most_ns);
  }
  return rows;
}

std::string listed(const std::vector<std::string>& changes) {
  std::string out;
  for (const std::string& change : changes) out += (out.empty() ? "" : ", ") + change;
  return out;
}

std::string title_of(const std::vector<std::string>& changes) {
  return changes.empty() ? "What if: nothing changes" : "What if: " + listed(changes);
}

class Sections {
 public:
  Sections(std::string_view document, const Style& style) : document_(document), style_(style) {}
  std::string operator()(std::string_view key, const Json& rows) const {
    const std::string path = fmt::format("{}.{}[]", document_, key);
    return rows.empty() ? "" : style_.heading(tables_.title(path)) + tables_.rows(path, rows) + tables_.notes(path);
  }

 private:
  std::string_view document_;
  const Style& style_;
  Json nothing_;
  TableText tables_{nothing_};
};

std::string noted(const std::vector<std::string>& notes) {
  std::string out;
  for (const std::string& note : notes) out += wrapped("- " + note + ".");
  return out;
}

// As sentences: what there is to say of a cliff is longer than cells.
std::string cliff_lines(const std::vector<design::Cliff>& cliffs) {
  std::string out;
  for (const design::Cliff& each : cliffs) {
    out += wrapped(fmt::format("- {}. Now: {}. Lies at: {}. Costs: {}.{}", each.what, each.here, each.where, each.cost,
                               each.better.empty() ? "" : " Next better: " + each.better + "."));
  }
  return out;
}

}  // namespace

std::string to_text(const WhatIfPage& page, bool colour) {
  const Style style{colour};
  const Document document = document_of(page);
  const Sections section(kDocument, style);
  std::string out = style.heading(title_of(page.changes)).substr(1);
  out += wrapped(fmt::format("{}, on {}.", page.subject, document.device));
  out += section("expected", with_ratios(document.expected));
  out += section("predicted", base::fields_json(document.predicted));
  if (const auto& by = document.stands_on) {
    out += by->before == by->after
               ? wrapped(fmt::format("By {}: {}.", by->source, by->after))
               : wrapped(fmt::format("By {}. Before: {}. After: {}.", by->source, by->before, by->after));
  }
  if (!page.changes.empty()) out += "\n" + to_text(DesignDiffPage{page.before, page.after, document.rows}, colour);
  out += section("gradients", base::fields_json(document.gradients));
  for (const design::Gradient& each : document.gradients) {
    if (each.parts != 1) out += wrapped(fmt::format("{}: {}, divided by {}.", each.what, each.setting, each.parts));
  }
  if (!page.cliffs.empty())
    out += style.heading(page.changes.empty() ? "Cliffs" : "Cliffs, with the change") + cliff_lines(page.cliffs);
  return out + noted(page.notes);
}

void to_json(const WhatIfPage& page, Json& out) {
  const Document document = document_of(page);
  Json all = base::fields_json(document);
  all["expected"] = with_ratios(document.expected);
  out.update(described(kDocument, all));
}

// ---- servings

std::string to_text(const WhatIfServingPage& page, bool colour) {
  const Style style{colour};
  const predict::ServingChange& d = page.change;
  const Sections section("llmprof.whatif_serving", style);
  std::string out = style.heading(title_of(d.changes)).substr(1);
  const std::string on = d.device == d.device_after ? d.device : fmt::format("{}, then {}", d.device, d.device_after);
  out += wrapped(fmt::format("Predicted, not measured: {}, {}, on {}. {}.", d.model, d.engine, on, d.workload));
  out += section("latency", base::fields_json(d.latency)) + section("amounts", base::fields_json(d.amounts));
  out += style.heading("How far to trust it");
  for (const auto& [word, side] : {std::pair{"Before", &d.before}, std::pair{"After", &d.after}}) {
    out += wrapped(
        fmt::format("{}: stands on {}. Intervals: all steps {:.2f} to {:.2f} times as long as predicted: {}.", word,
                    side->stands_on, side->step_error.least, side->step_error.most, side->step_error.why));
  }
  return out + noted(d.notes);
}

void to_json(const WhatIfServingPage& page, Json& out) {
  out.update(described_fields("llmprof.whatif_serving", page.change));
}

}  // namespace llmprof::report
