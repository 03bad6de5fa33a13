#include "report/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/human.h"
#include "base/text_table.h"
#include "report/sections.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::Waterfall;
using analyze::WaterfallTerm;
using base::Align;
using base::Json;

std::string label_of(const Waterfall& waterfall, const WaterfallTerm& term) {
  if (term.name == "above_floor") return term.op_class + " above its floor";
  if (term.name == "faster_than_floor") return term.op_class + " faster than its floor";
  if (term.name == "gaps") return waterfall.on_cpu ? "gaps between operators" : "GPU idle, waiting for CPU";
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kLabels = {
      {{"between_steps", "between steps"},
       {"queued", "GPU idle, work queued"},
       {"waits", "host synchronisation"},
       {"copies", "copies"},
       {"clock", "clock loss"},
       {"other_kernels", "other kernels of the process"},
       {"kernels", "operators, floor unknown"},
       {"unmatched_kernels", "kernels not matched to the model"},
       {"residual", "residual"},
       {"one_after_another", "operators one after another"},
       {"not_seen", "floor of operators not seen"}}};
  const auto found = std::find_if(kLabels.begin(), kLabels.end(), [&](const auto& l) { return l.first == term.name; });
  return found == kLabels.end() ? term.name : std::string(found->second);
}

std::vector<const Waterfall*> shown_waterfalls(const Page& page) {
  std::vector<const Waterfall*> out;
  for (const Waterfall& waterfall : page.summary.waterfalls) {
    if (shown(page, waterfall.stage) && waterfall.samples > 0 && waterfall.measured_ns > 0) out.push_back(&waterfall);
  }
  return out;
}

std::string share_cell(const Waterfall& waterfall, std::int64_t ns) {
  if (ns == 0) return "0";
  const double percent = waterfall.share(ns) * 100;
  if (percent > -0.05 && percent < 0.05) return percent < 0 ? ">-0.1" : "<0.1";
  return fmt::format("{:.1f}", percent);
}

std::string mean_cell(const Waterfall& waterfall, std::int64_t ns) { return base::human_ns(waterfall.mean_ns(ns)); }

// The labels of all terms, each once: a term comes before all that follow it in some stage.
std::vector<std::string> row_labels(const std::vector<const Waterfall*>& waterfalls) {
  std::vector<std::string> labels;
  for (const Waterfall* waterfall : waterfalls) {
    auto place = labels.begin();
    for (const WaterfallTerm& term : waterfall->terms) {
      const std::string label = label_of(*waterfall, term);
      if (const auto found = std::find(labels.begin(), labels.end(), label); found != labels.end()) {
        place = std::max(place, found + 1);
      } else if (term.ns && (*term.ns != 0 || term.name == "residual")) {
        place = labels.insert(place, label) + 1;
      }
    }
  }
  return labels;
}

std::string cell_of(const Waterfall& waterfall, const std::string& label) {
  for (const WaterfallTerm& term : waterfall.terms) {
    if (label_of(waterfall, term) == label) return term.ns ? share_cell(waterfall, *term.ns) : "?";
  }
  return "-";
}

std::string side_by_side(const std::vector<const Waterfall*>& waterfalls, const std::string& first_label) {
  std::vector<base::TextTable::Column> columns = {{"", Align::kLeft, true}};
  for (const Waterfall* waterfall : waterfalls) columns.push_back({waterfall->stage});
  base::TextTable table(columns);
  const auto add = [&](const std::string& label, const auto& cell) {
    std::vector<std::string> row = {label};
    for (const Waterfall* waterfall : waterfalls) row.push_back(cell(*waterfall));
    table.add(row);
  };
  add(first_label, [](const Waterfall& w) { return w.quantity + " " + mean_cell(w, w.measured_ns); });
  for (const std::string& label : row_labels(waterfalls))
    add(label, [&](const Waterfall& w) { return cell_of(w, label); });
  add("floor", [](const Waterfall& w) { return w.floor_ns ? share_cell(w, *w.floor_ns) : "?"; });
  add("floor, time", [](const Waterfall& w) { return w.floor_ns ? mean_cell(w, *w.floor_ns) : "-"; });
  return table.render(line_width());
}

// Whether the term is more than nothing once it is rounded.
bool any_term(const std::vector<const Waterfall*>& waterfalls, std::string_view name) {
  return std::any_of(waterfalls.begin(), waterfalls.end(), [&](const Waterfall* w) {
    return std::any_of(w->terms.begin(), w->terms.end(), [&](const WaterfallTerm& t) {
      return t.name == name && std::abs(w->share(t.ns.value_or(0))) >= 0.0005;
    });
  });
}

std::string notes(const std::vector<const Waterfall*>& waterfalls, bool predicted) {
  std::string out;
  if (any_term(waterfalls, "faster_than_floor"))
    out += wrapped("Faster than its floor: the peak is too low, or the cache helped.");
  if (any_term(waterfalls, "not_seen"))
    out += wrapped("Operators not seen: no range or kernel was matched to them; their time is in the other terms.");
  if (any_term(waterfalls, "one_after_another"))
    out += wrapped("Operators one after another: some wait for memory and some compute, which do not overlap.");
  std::vector<std::pair<std::string, std::string>> unknown;  // what and why, stages
  const auto add = [&](const std::string& what, const std::string& stage) {
    const auto same = std::find_if(unknown.begin(), unknown.end(), [&](const auto& u) { return u.first == what; });
    same == unknown.end() ? unknown.emplace_back(what, stage), void() : void(same->second += ", " + stage);
  };
  for (const Waterfall* waterfall : waterfalls) {
    if (!waterfall->floor_ns) add(fmt::format("the floor is unknown ({})", waterfall->why), waterfall->stage);
    for (const WaterfallTerm& term : waterfall->terms) {
      if (!term.ns && !predicted)
        add(fmt::format("{} is unknown ({})", label_of(*waterfall, term), term.why), waterfall->stage);
    }
  }
  for (const auto& [what, stages] : unknown) out += wrapped(fmt::format("{}: {}.", stages, what));
  return out;
}

// Classes of operators, of one sample.
std::string class_table(const Waterfall& waterfall) {
  Json rows = Json::array();
  for (const WaterfallTerm& term : waterfall.terms) {
    if (!term.measured_ns || !term.floor_ns) continue;
    const double measured = waterfall.mean_ns(*term.measured_ns), floor = waterfall.mean_ns(*term.floor_ns);
    rows.push_back({{"label", label_of(waterfall, term)},
                    {"measured_ns", measured},
                    {"kernel_ns", waterfall.mean_ns(term.kernel_ns.value_or(0))},
                    {"floor_ns", floor},
                    {"of_floor", floor > 0 ? Json(measured / floor) : Json(nullptr)}});
  }
  return rows.empty() ? "" : TableText(rows).rows("waterfalls[].terms[]", rows);
}

Json term_json(const Waterfall& waterfall, const WaterfallTerm& term) {
  Json all = base::fields_json(term);
  all["class"] = all["op_class"], all["label"] = label_of(waterfall, term);
  all["mean_ns"] = term.ns ? Json(waterfall.mean_ns(*term.ns)) : Json(nullptr);
  all["share"] = term.ns ? Json(waterfall.share(*term.ns)) : Json(nullptr);
  return all;
}

}  // namespace

Plot plot_of(const Waterfall& waterfall, const std::string& first_label) {
  const auto seconds = [&](std::int64_t ns) { return waterfall.mean_ns(ns) * 1e-9; };
  const auto text = [&](std::int64_t ns) {
    return fmt::format("{:>8}  {:>5} %", mean_cell(waterfall, ns), share_cell(waterfall, ns));
  };
  std::vector<Drop> drops;
  for (const WaterfallTerm& term : waterfall.terms) {
    if (term.ns) {
      drops.push_back({label_of(waterfall, term), seconds(*term.ns), text(*term.ns), *term.ns < 0 ? 1U : 0U});
    } else {
      drops.push_back({label_of(waterfall, term), 0, fmt::format("unknown ({})", term.why)});
    }
  }
  if (waterfall.floor_ns) drops.push_back({"floor", seconds(*waterfall.floor_ns), text(*waterfall.floor_ns), 2});
  Plot plot = waterfall_plot({first_label, seconds(waterfall.measured_ns), text(waterfall.measured_ns), 2}, drops);
  plot.title = fmt::format("{}: {} down to its floor", waterfall.stage, waterfall.quantity);
  plot.note = fmt::format("mean of {}; % of {}", counted(waterfall.samples, "sample"),
                          mean_cell(waterfall, waterfall.measured_ns));
  plot.x = {"time", "s"};
  return plot;
}

std::string waterfall_section(const Page& page, const Style& style) {
  const std::vector<const Waterfall*> waterfalls = shown_waterfalls(page);
  if (waterfalls.empty()) return "";
  std::string out = style.heading("Waterfall");
  const std::string first_label = is_predicted(page) ? "predicted" : "measured";
  if (!page.waterfall) {
    out += wrapped(
        fmt::format("From the {0} time down to the floor: % of the {0} time, which the rows add up to.", first_label));
    out += side_by_side(waterfalls, first_label);
  }
  for (const Waterfall* waterfall : waterfalls) {
    if (!page.waterfall) continue;
    out += plot_text(plot_of(*waterfall, first_label),
                     {.width = line_width(), .unicode = page.unicode, .colour = style.colour}) +
           class_table(*waterfall) + "\n";
  }
  return out + notes(waterfalls, is_predicted(page));
}

Json waterfall_json(const Page& page) {
  Json out = Json::array();
  for (const Waterfall* waterfall : shown_waterfalls(page)) {
    Json all = base::fields_json(*waterfall);
    all["mean_ns"] = waterfall->mean_ns(waterfall->measured_ns);
    all["terms"] = Json::array();
    for (const WaterfallTerm& term : waterfall->terms) all["terms"].push_back(term_json(*waterfall, term));
    out.push_back(std::move(all));
  }
  return described("waterfalls[]", out);
}

}  // namespace llmprof::report
