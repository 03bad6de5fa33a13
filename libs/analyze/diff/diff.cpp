#include "analyze/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyze/diff/reasons.h"
#include "base/human.h"
#include "bench/statistics.h"

namespace llmprof::analyze {
namespace {

constexpr double kNs = 1e-9;

// The same thing in every run of a side that has it.
template <class Find>
auto all_of(const Side& side, const Find& find) {
  std::vector<decltype(find(side.runs.front()))> found;
  for (const Digest& run : side.runs) {
    if (const auto* one = find(run)) found.push_back(one);
  }
  return found;
}

template <class Rows, class Take>
std::vector<Estimate> estimates(const Rows& rows, const Take& take) {
  std::vector<Estimate> all;
  for (const auto* row : rows) {
    if (const std::optional<Estimate> value = take(*row)) all.push_back(*value);
  }
  return all;
}

std::vector<Estimate> scaled(std::vector<Estimate> all, double factor) {
  for (Estimate& each : all) {
    each.value *= factor;
    if (each.error) *each.error *= factor;
  }
  return all;
}

void fill_values(const std::vector<Estimate>& before, const std::vector<Estimate>& after, DiffRow& row) {
  if (!before.empty()) row.before = mean_of_runs(before).value;
  if (!after.empty()) row.after = mean_of_runs(after).value;
  row.change = change_between(before, after);
}

void say_one_sided(DiffRow& row) {
  if (row.before && !row.after) row.note = "only before";
  if (!row.before && row.after) row.note = "only after";
}

template <class Names>
void add_measures(const Side& before, const Side& after, const Names& stages, Diff& diff) {
  std::set<std::string> seen;
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const MeasureDigest& measure : run.measures) {
        const std::string scope = measure.name.substr(0, measure.name.find('.'));
        if ((scope != "run" && !stages.contains(scope)) || !seen.insert(measure.name).second) continue;
        const auto find = [&](const Digest& digest) { return find_measure(digest, measure.name); };
        const auto take = [](const MeasureDigest& each) { return each.value; };
        DiffRow row{
            .kind = "measure", .name = measure.name, .stage = scope == "run" ? "" : scope, .unit = measure.unit};
        fill_values(estimates(all_of(before, find), take), estimates(all_of(after, find), take), row);
        if (!row.before && !row.after) continue;
        row.better = measure.better;  // which way is better, until significance is known
        for (const MeasureDigest* each : all_of(row.before ? after : before, find)) {
          if (!each->value && row.note.empty())
            row.note = (row.before ? "unknown after: " : "unknown before: ") + each->why;
        }
        diff.rows.push_back(std::move(row));
      }
    }
  }
}

void add_stage(const Side& before, const Side& after, const std::string& name, Diff& diff) {
  const auto find = [&](const Digest& digest) { return find_stage(digest, name); };
  const auto take = [](const StageDigest& stage) { return std::optional(stage.ns); };
  const auto a = all_of(before, find), b = all_of(after, find);
  DiffRow row{.kind = "stage", .name = name, .stage = name, .unit = "s"};
  fill_values(scaled(estimates(a, take), kNs), scaled(estimates(b, take), kNs), row);
  say_one_sided(row);
  if (!a.empty() && !b.empty()) {
    const std::int64_t steps = std::min(a.front()->steps, b.front()->steps);
    if (!row.change.low)
      row.note = fmt::format("{} {}: too few to tell chance from change", steps, steps == 1 ? "step" : "steps");
    const auto run_of = [](const Side& side, const StageDigest* stage) -> const Digest& {
      for (const Digest& run : side.runs) {
        if (!run.stages.empty() && stage >= run.stages.data() && stage < run.stages.data() + run.stages.size())
          return run;
      }
      return side.runs.front();
    };
    row.why = reasons_of(*a.front(), *b.front(), run_of(before, a.front()), run_of(after, b.front()));
  }
  diff.rows.push_back(std::move(row));
}

// Whether kernels were added or taken away: counted, so no chance.
bool other_count(const PartDigest& a, const PartDigest& b, double least) {
  const double more = b.calls - a.calls;
  return std::fabs(more) > least * std::max(a.calls, b.calls) && (more > 0) == (b.ns.value > a.ns.value);
}

void add_part(const Side& before, const Side& after, const PartDigest& part, Diff& diff) {
  const auto find = [&](const Digest& digest) { return find_part(digest, part); };
  const auto take = [](const PartDigest& each) { return std::optional(each.ns); };
  const auto a = all_of(before, find), b = all_of(after, find);
  DiffRow row{.kind = part.kind, .name = part.name, .stage = part.stage, .unit = "s"};
  fill_values(scaled(estimates(a, take), kNs), scaled(estimates(b, take), kNs), row);
  say_one_sided(row);
  if (!a.empty() && !b.empty()) {
    const bool estimated = a.front()->estimated > 0 || b.front()->estimated > 0;
    row.why = reasons_of(*a.front(), *b.front(), find_stage(before.runs.front(), part.stage),
                         find_stage(after.runs.front(), part.stage));
    if (!row.change.p && other_count(*a.front(), *b.front(), diff.least)) {
      row.change.p = 0;
      row.note = estimated ? "time estimated, kernels counted" : "kernels counted";
    } else if (!row.change.low) {
      row.note = estimated ? "estimated from its graph: no samples of its own" : "too few steps";
    }
  }
  diff.rows.push_back(std::move(row));
}

bool far_enough(const Diff& diff, const DiffRow& row) {
  if (!row.change.ratio || std::fabs(*row.change.ratio) < diff.least) return false;
  if (row.kind == "measure" || row.kind == "stage") return true;
  const DiffRow* stage = find_row(diff, "stage", row.stage, row.stage);
  // Of a part's own change, a tenth of the least change has to arrive at its stage.
  return stage == nullptr || !stage->before || std::fabs(*row.after - *row.before) >= 0.1 * diff.least * *stage->before;
}

void judge(Diff& diff) {
  std::vector<double> p;
  std::vector<DiffRow*> judged;
  for (DiffRow& row : diff.rows) {
    if (!row.change.p || *row.change.p == 0) continue;  // counted ones are no question of chance
    p.push_back(*row.change.p);
    judged.push_back(&row);
  }
  const std::vector<double> adjusted = p.empty() ? p : bench::adjusted(p);
  for (std::size_t i = 0; i < judged.size(); ++i) judged[i]->adjusted_p = adjusted[i];
  for (DiffRow& row : diff.rows) {
    const bool sure = row.adjusted_p ? *row.adjusted_p < 0.05 : row.change.p == 0.0;
    row.significant = sure && far_enough(diff, row);
    const std::string good = row.kind == "measure" ? row.better : "lower";
    row.better = "neither";
    if (row.significant && good != "neither")
      row.better = (*row.change.ratio < 0) == (good == "lower") ? "better" : "worse";
  }
}

double moved(const DiffRow& row) { return row.after.value_or(0) - row.before.value_or(0); }

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

void find_causes(Diff& diff) {
  for (const std::string_view kind : {"module", "operator"}) {
    for (std::size_t i = 0; i < diff.rows.size(); ++i) {
      const DiffRow& row = diff.rows[i];
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

std::string percent(double fraction) { return fmt::format("{:+.1f} %", fraction * 100); }

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
    text = fmt::format("{} is {} {}: {} instead of {} a step", most->name,
                       percent(std::fabs(*most->change.ratio)).substr(1), *most->change.ratio > 0 ? "slower" : "faster",
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

void add_warnings(const Side& before, const Side& after, Diff& diff) {
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const std::string& note : run.notes) diff.warnings.push_back(run.name + ": " + note);
    }
  }
  const Digest &a = before.runs.front(), &b = after.runs.front();
  if (a.folder == b.folder && before.runs.size() == 1 && after.runs.size() == 1) {
    diff.warnings.push_back("both are the same run: nothing can differ");
  }
  const auto named = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  if (a.model != b.model) {
    diff.warnings.push_back(
        fmt::format("different models ({} and {}): parts of the same name are compared, but may be other work",
                    named(a.model), named(b.model)));
  }
  if (a.device != b.device) {
    diff.warnings.push_back(fmt::format("different devices ({} and {})", named(a.device), named(b.device)));
  }
  for (const StageDigest& stage : a.stages) {
    const StageDigest* other = find_stage(b, stage.name);
    if (other != nullptr && stage.batch && other->batch && *stage.batch != *other->batch) {
      diff.warnings.push_back(
          fmt::format("{}: other batch, {:.1f} and {:.1f} sequences a step", stage.name, *stage.batch, *other->batch));
    }
  }
  if (before.runs.size() == 1 && after.runs.size() == 1) {
    diff.warnings.push_back(
        "one recording each: the spread from run to run is not in the intervals; --before and --after take repeats");
  }
}

}  // namespace

Diff compare(const Side& before, const Side& after, const DiffOptions& options) {
  Diff diff{.before = before.name, .after = after.name, .least = options.least};
  if (before.runs.empty() || after.runs.empty()) return diff;
  diff.repeated = before.runs.size() > 1 && after.runs.size() > 1;
  std::set<std::string> shared;
  std::vector<std::string> stages;
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const StageDigest& stage : run.stages) {
        if (std::find(stages.begin(), stages.end(), stage.name) == stages.end()) stages.push_back(stage.name);
        const auto find = [&](const Digest& digest) { return find_stage(digest, stage.name); };
        if (!all_of(before, find).empty() && !all_of(after, find).empty()) shared.insert(stage.name);
      }
    }
  }
  add_measures(before, after, shared, diff);
  for (const std::string& stage : stages) add_stage(before, after, stage, diff);
  const std::size_t first_part = diff.rows.size();
  std::set<std::string> seen;
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const PartDigest& part : run.parts) {
        if (!shared.contains(part.stage) || !seen.insert(part.kind + '\n' + part.stage + '\n' + part.name).second)
          continue;
        add_part(before, after, part, diff);
      }
    }
  }
  std::stable_sort(diff.rows.begin() + static_cast<std::ptrdiff_t>(first_part), diff.rows.end(),
                   [](const DiffRow& a, const DiffRow& b) { return std::fabs(moved(a)) > std::fabs(moved(b)); });
  judge(diff);
  find_causes(diff);
  add_warnings(before, after, diff);
  diff.headline = headline(diff);
  return diff;
}

const DiffRow* find_row(const Diff& diff, std::string_view kind, std::string_view stage, std::string_view name) {
  const auto is = [&](const DiffRow& row) { return row.kind == kind && row.stage == stage && row.name == name; };
  const auto found = std::find_if(diff.rows.begin(), diff.rows.end(), is);
  return found == diff.rows.end() ? nullptr : &*found;
}

}  // namespace llmprof::analyze
