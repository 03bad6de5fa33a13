#include "analyze/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/diff/causes.h"
#include "analyze/diff/reasons.h"
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
    row.mean_change = (b.front()->mean_ns - a.front()->mean_ns) * kNs;
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

// Why parts of a kind cannot be held against each other in a stage; "" if they can.
std::string incomparable(const Side& before, const Side& after, const PartDigest& part) {
  const auto has = [&](const Side& side) {
    return std::any_of(side.runs.begin(), side.runs.end(), [&](const Digest& run) {
      return std::any_of(run.parts.begin(), run.parts.end(),
                         [&](const PartDigest& each) { return each.kind == part.kind && each.stage == part.stage; });
    });
  };
  const bool a = has(before), b = has(after);
  if (!a || !b) return fmt::format("{}: {}s are known only {}", part.stage, part.kind, a ? "before" : "after");
  const StageDigest* x = find_stage(before.runs.front(), part.stage);
  const StageDigest* y = find_stage(after.runs.front(), part.stage);
  if (part.kind == "shape" || x == nullptr || y == nullptr || x->ranges == y->ranges) return "";
  return fmt::format("{}: ranges name the modules {}, shapes {}: parts are not compared", part.stage,
                     x->ranges ? "before" : "after", x->ranges ? "after" : "before");
}

void add_parts(const Side& before, const Side& after, const std::set<std::string>& stages, Diff& diff) {
  std::set<std::string> seen;
  std::map<std::pair<std::string, std::string>, bool> comparable;  // by kind and stage
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const PartDigest& part : run.parts) {
        if (!stages.contains(part.stage) || !seen.insert(part.kind + '\n' + part.stage + '\n' + part.name).second)
          continue;
        const auto [known, fresh] = comparable.try_emplace({part.kind, part.stage}, true);
        if (fresh) {
          const std::string why = incomparable(before, after, part);
          known->second = why.empty();
          const bool told = std::find(diff.warnings.begin(), diff.warnings.end(), why) != diff.warnings.end();
          if (!why.empty() && !told) diff.warnings.push_back(why);
        }
        if (known->second) add_part(before, after, part, diff);
      }
    }
  }
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

void add_warnings(const Side& before, const Side& after, Diff& diff) {
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const std::string& note : run.notes) {
        std::string warning = run.name + ": " + note;
        const bool said = std::find(diff.warnings.begin(), diff.warnings.end(), warning) != diff.warnings.end();
        if (!said) diff.warnings.push_back(std::move(warning));  // the same run may stand on both sides
      }
    }
  }
  const Digest &a = before.runs.front(), &b = after.runs.front();
  const bool one_each = before.runs.size() == 1 && after.runs.size() == 1;
  if (one_each && a.folder == b.folder) {
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
  if (one_each && a.folder != b.folder) {
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
  add_parts(before, after, shared, diff);
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
