#include "analyze/diff/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"

namespace llmprof::analyze {
namespace {

constexpr double kNs = 1e-9;

bool inside(std::string_view path, std::string_view outer) {
  return path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '.';
}

// From a module inwards as long as one module inside it makes most of its change.
std::size_t innermost(const Diff& diff, std::size_t start) {
  std::size_t at = start;
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (std::size_t i = 0; i < diff.rows.size(); ++i) {
      const DiffRow& row = diff.rows[i];
      if (row.kind != "module" || row.stage != diff.rows[at].stage || !inside(row.name, diff.rows[at].name)) continue;
      if (moved(row) / moved(diff.rows[at]) < 0.8) continue;
      at = i;
      deeper = true;
      break;
    }
  }
  return at;
}

}  // namespace

double moved(const DiffRow& row) { return row.after.value_or(0) - row.before.value_or(0); }

void find_causes(Diff& diff) {
  for (const std::string_view kind : {"module", "operator"}) {
    for (std::size_t i = 0; i < diff.rows.size(); ++i) {
      const DiffRow& row = diff.rows[i];
      if (row.stage == "load" || row.stage == "warm-up") continue;  // other work every time
      if (row.kind != kind || !(row.significant || (!row.note.empty() && row.note.starts_with("only")))) continue;
      const bool outermost = std::none_of(diff.rows.begin(), diff.rows.end(), [&](const DiffRow& other) {
        return other.kind == kind && other.stage == row.stage && other.significant && inside(row.name, other.name);
      });
      if (kind == "module" && !outermost) continue;
      const std::size_t cause = kind == "module" ? innermost(diff, i) : i;
      if (std::find(diff.causes.begin(), diff.causes.end(), cause) == diff.causes.end()) diff.causes.push_back(cause);
    }
    if (!diff.causes.empty()) break;
  }
  // Those of stages that changed first, then those that changed most of a step.
  const auto rank = [&](std::size_t index) {
    const DiffRow& row = diff.rows[index];
    const DiffRow* stage = find_row(diff, "stage", row.stage, row.stage);
    const double step = stage != nullptr && stage->before ? *stage->before : 1;
    return std::pair(stage != nullptr && stage->significant, std::fabs(moved(row)) / step);
  };
  std::stable_sort(diff.causes.begin(), diff.causes.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) > rank(b); });
}

std::string headline(const Diff& diff) {
  const DiffRow* most = nullptr;
  std::int64_t changed = 0, compared = 0;
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "measure") continue;
    compared += row.change.ratio ? 1 : 0;
    changed += row.significant ? 1 : 0;
    if (row.kind != "stage" || !row.significant) continue;
    if (most == nullptr || std::fabs(*row.change.ratio) > std::fabs(*most->change.ratio)) most = &row;
  }
  if (compared == 0) return "Nothing in the two can be compared by stage; see the measures.";
  if (changed == 0) return fmt::format("No significant change in {} stages and parts.", compared);
  std::string text;
  if (most != nullptr) {
    text =
        fmt::format("{} is {} {}: {} instead of {} a step", most->name,
                    base::human_percent(std::fabs(*most->change.ratio)), *most->change.ratio > 0 ? "slower" : "faster",
                    base::human_ns(*most->after / kNs), base::human_ns(*most->before / kNs));
  } else {
    text = "No stage changed significantly, but parts did";
  }
  for (const std::size_t index : diff.causes) {
    const DiffRow& cause = diff.rows[index];
    if (most != nullptr && (cause.stage != most->name || (moved(cause) > 0) != (moved(*most) > 0))) continue;
    const bool most_of_it = most != nullptr && moved(cause) / moved(*most) >= 0.5;
    const char* share = most_of_it ? "most of it" : "first of all";
    text += fmt::format("; {} in {} ({}{} a step{})", share, cause.name, moved(cause) > 0 ? "+" : "",
                        base::human_ns(moved(cause) / kNs), cause.why.empty() ? "" : ": " + cause.why.front().text);
    break;
  }
  return text + ".";
}

}  // namespace llmprof::analyze
