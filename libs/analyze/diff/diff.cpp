#include "analyze/diff/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/human.h"
#include "bench/statistics.h"

namespace llmprof::analyze {

namespace {

constexpr double kNs = 1e-9;

bool counts(const DiffRow& row) { return row.significant && row.comparable; }

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
      if (row.moved / diff.rows[at].moved < 0.8) continue;
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
      if (row.stage == "load" || row.stage == "warm-up") continue;  // other work every time
      if (row.kind != kind || !(counts(row) || (row.comparable && (!row.before || !row.after)))) continue;
      const bool outermost = std::none_of(diff.rows.begin(), diff.rows.end(), [&](const DiffRow& other) {
        return other.kind == kind && other.stage == row.stage && counts(other) && inside(row.name, other.name);
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
    return std::pair(stage != nullptr && counts(*stage), std::fabs(row.step_share.value_or(0)));
  };
  std::ranges::stable_sort(diff.causes, std::greater{}, rank);
}

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
  if (row.before && !row.after) row.note = "gone";
  if (!row.before && row.after) row.note = "new";
}

template <class Names>
void add_measures(const Side& before, const Side& after, const Names& stages, Diff& diff) {
  std::set<std::string> seen;
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const MeasureDigest& measure : run.measures) {
        const std::string scope = measure.name.substr(0, measure.name.find('.'));
        const bool whole = scope == "run" || scope == "requests";
        if ((!whole && !stages.contains(scope)) || !seen.insert(measure.name).second) continue;
        const auto find = [&](const Digest& digest) { return find_measure(digest, measure.name); };
        const auto take = [](const MeasureDigest& each) { return each.value; };
        DiffRow row{.kind = "measure", .name = measure.name, .stage = whole ? "" : scope, .unit = measure.unit};
        fill_values(estimates(all_of(before, find), take), estimates(all_of(after, find), take), row);
        if (!row.before && !row.after) continue;
        row.better = measure.better;  // which way is better, until significance is known
        row.caveat = measure_caveat(diff.work, measure.name);
        row.comparable = row.caveat.empty();
        for (const MeasureDigest* each : all_of(row.before ? after : before, find)) {
          if (!each->value && row.note.empty())
            row.note = (row.before ? "unknown after: " : "unknown before: ") + each->why;
        }
        diff.rows.push_back(std::move(row));
      }
    }
  }
}

const Digest& run_of(const Side& side, const StageDigest* stage) {
  for (const Digest& run : side.runs) {
    if (!run.stages.empty() && stage >= run.stages.data() && stage < run.stages.data() + run.stages.size()) return run;
  }
  return side.runs.front();
}

void add_stage(const Side& before, const Side& after, const std::string& name, Diff& diff) {
  const auto find = [&](const Digest& digest) { return find_stage(digest, name); };
  const auto take = [](const StageDigest& stage) { return std::optional(stage.ns); };
  const auto a = all_of(before, find), b = all_of(after, find);
  const StageWork* work = find_stage_work(diff.work, name);
  const Basis basis = work == nullptr ? Basis{} : work->basis;
  DiffRow row{.kind = "stage", .name = name, .stage = name, .unit = "s", .per = basis.per};
  row.comparable = basis.comparable;
  if (work != nullptr) row.caveat = work->why;
  fill_values(scaled(estimates(a, take), kNs / basis.before), scaled(estimates(b, take), kNs / basis.after), row);
  say_one_sided(row);
  if (!a.empty() && !b.empty()) {
    const std::int64_t steps = std::min(a.front()->steps, b.front()->steps);
    if (!row.change.low) row.note = fmt::format("{} {}: too few to judge", steps, steps == 1 ? "step" : "steps");
    row.mean_change = (b.front()->mean_ns - a.front()->mean_ns) * kNs;
    row.moved = (b.front()->ns.value - a.front()->ns.value) * kNs;
    row.why = reasons_of(*a.front(), *b.front(), run_of(before, a.front()), run_of(after, b.front()),
                         (work == nullptr || work->same == "same") && a.front()->ranges == b.front()->ranges);
  }
  diff.rows.push_back(std::move(row));
}

// ---- throughput and latency

// Tokens of a training step over its time, which no measure has.
std::optional<Estimate> training_rate(const StageDigest& stage) {
  if (!stage.tokens || stage.ns.value <= 0) return std::nullopt;
  Estimate rate = stage.ns;
  rate.value = *stage.tokens / (stage.ns.value * kNs);
  if (stage.ns.error) rate.error = *stage.ns.error / stage.ns.value * rate.value;
  return rate;
}

std::string latency_name(const StageDigest& stage) {
  return stage.quantity == "TTFT" || stage.quantity == "TPOT" ? stage.quantity : "step time";
}

void add_pace(DiffRow row, const std::vector<Estimate>& before, const std::vector<Estimate>& after, Diff& diff) {
  row.kind = "pace";
  fill_values(before, after, row);
  if (row.before && row.after) diff.rows.push_back(std::move(row));
}

// The stages that both have: the training step first, then by the time in them.
void add_paces(const Side& before, const Side& after, const StageWork& work, Diff& diff) {
  const auto find = [&](const Digest& digest) { return find_stage(digest, work.stage); };
  const auto a = all_of(before, find), b = all_of(after, find);
  const auto measure = [&](const Side& side, const std::string& name) {
    const auto of = [&](const Digest& digest) { return find_measure(digest, work.stage + "." + name); };
    return estimates(all_of(side, of), [](const MeasureDigest& each) { return each.value; });
  };
  DiffRow row{.name = "tokens/s", .stage = work.stage};
  row.comparable = work.same != "different";
  row.caveat = work.same == "different" ? work.why : "";
  row.better = "higher";
  if (work.stage == kTrainingStep) {
    add_pace(row, estimates(a, training_rate), estimates(b, training_rate), diff);
  } else {
    add_pace(row, measure(before, "tokens_per_s"), measure(after, "tokens_per_s"), diff);
  }
  const auto take = [](const StageDigest& stage) { return std::optional(stage.ns); };
  row.name = latency_name(*b.front()), row.unit = "s", row.better = "lower";
  add_pace(row, scaled(estimates(a, take), kNs), scaled(estimates(b, take), kNs), diff);
  if (work.basis.comparable && work.basis.per != "step") {
    DiffRow per{.name = "time per " + work.basis.per, .stage = work.stage, .unit = "s", .per = work.basis.per};
    per.better = "lower";
    add_pace(per, scaled(estimates(a, take), kNs / work.basis.before),
             scaled(estimates(b, take), kNs / work.basis.after), diff);
  }
  if (work.same == "same" && diff.work.same_device) return;
  const std::string share = comparable_measure(before, after, work.stage);
  if (share.empty()) return;
  const std::string name = share.substr(share.find('.') + 1);
  DiffRow reached{.name = name == "mbu"   ? "MBU"
                          : name == "mfu" ? "MFU"
                                          : "of the least possible time",
                  .stage = work.stage,
                  .unit = "1"};
  reached.better = "higher";
  add_pace(reached, measure(before, name), measure(after, name), diff);
}

// Whether kernels were added or taken away: counted, so no chance.
bool other_count(const PartDigest& a, const PartDigest& b, double least) {
  const double more = b.calls - a.calls;
  return std::fabs(more) > least * std::max(a.calls, b.calls) && (more > 0) == (b.ns.value > a.ns.value);
}

// What a change of a part makes of a step, in seconds and as a share of its stage's step.
void set_moved(const Basis& basis, const StageDigest* before, const StageDigest* after, DiffRow& row) {
  row.moved = (row.after.value_or(0) - row.before.value_or(0)) * basis.after;
  const StageDigest* whole = basis.per == "step" ? before : after;
  if (whole != nullptr && whole->ns.value > 0) row.step_share = row.moved / (whole->ns.value * kNs);
}

void add_part(const Side& before, const Side& after, const PartDigest& part, Diff& diff) {
  const auto find = [&](const Digest& digest) { return find_part(digest, part); };
  const auto take = [](const PartDigest& each) { return std::optional(each.ns); };
  const auto a = all_of(before, find), b = all_of(after, find);
  const StageWork* work = find_stage_work(diff.work, part.stage);
  const bool same_stage = work == nullptr || work->same == "same";
  const StageDigest* stage_before = find_stage(before.runs.front(), part.stage);
  const StageDigest* stage_after = find_stage(after.runs.front(), part.stage);
  const bool both = !a.empty() && !b.empty();
  // What only one side has is new or gone only where both did the same.
  const Basis basis = both ? part_basis(diff.work, *a.front(), *b.front()) : Basis{.comparable = same_stage};
  DiffRow row{.kind = part.kind, .name = part.name, .stage = part.stage, .unit = "s", .per = basis.per};
  row.comparable = basis.comparable;
  if (!same_stage) row.caveat = work->why;
  fill_values(scaled(estimates(a, take), kNs / basis.before), scaled(estimates(b, take), kNs / basis.after), row);
  set_moved(basis, stage_before, stage_after, row);
  say_one_sided(row);
  if (both) {
    const bool estimated = a.front()->estimated > 0 || b.front()->estimated > 0;
    if (basis.per == "step" && basis.comparable)
      row.why = reasons_of(*a.front(), *b.front(), stage_before, stage_after);
    if (!row.change.p && basis.per == "step" && other_count(*a.front(), *b.front(), diff.least)) {
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
  if (row.kind == "measure" || row.kind == "stage" || row.kind == "pace") return true;
  // Of a part's own change, a tenth of the least change has to arrive at its stage.
  return !row.step_share || std::fabs(*row.step_share) >= 0.1 * diff.least;
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
  if (!a || !b) return fmt::format("{}s are known only {}", part.kind, a ? "before" : "after");
  const StageDigest* x = find_stage(before.runs.front(), part.stage);
  const StageDigest* y = find_stage(after.runs.front(), part.stage);
  if (part.kind == "shape" || x == nullptr || y == nullptr || x->ranges == y->ranges) return "";
  return fmt::format("modules are instrumented {} and inferred from shapes {}: they and operators are not compared",
                     x->ranges ? "before" : "after", x->ranges ? "after" : "before");
}

void add_parts(const Side& before, const Side& after, const std::set<std::string>& stages, Diff& diff) {
  std::set<std::string> seen;
  std::map<std::pair<std::string, std::string>, bool> comparable;  // by kind and stage
  std::map<std::string, std::set<std::string>> limits;             // stages, by what they cannot be compared for
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      for (const PartDigest& part : run.parts) {
        if (!stages.contains(part.stage) || !seen.insert(part.kind + '\n' + part.stage + '\n' + part.name).second)
          continue;
        const auto [known, fresh] = comparable.try_emplace({part.kind, part.stage}, true);
        if (fresh) {
          const std::string why = incomparable(before, after, part);
          known->second = why.empty();
          if (!why.empty()) limits[why].insert(part.stage);
        }
        if (known->second) add_part(before, after, part, diff);
      }
    }
  }
  for (const auto& [why, of] : limits) diff.warnings.push_back(fmt::format("{}: {}", fmt::join(of, ", "), why));
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
    const std::string good = row.kind == "measure" || row.kind == "pace" ? row.better : "lower";
    row.better = "neither";
    if (counts(row) && good != "neither")
      row.better = (*row.change.ratio < 0) == (good == "lower") ? "better" : "worse";
  }
}

// What every run says is said once.
void add_notes(const Side& before, const Side& after, Diff& diff) {
  std::map<std::string, std::set<std::string>> runs;  // by note
  std::vector<std::string> notes;
  std::set<std::string> all;
  for (const Side* side : {&before, &after}) {
    for (const Digest& run : side->runs) {
      all.insert(run.name);
      for (const std::string& note : run.notes) {
        if (runs[note].empty()) notes.push_back(note);
        runs[note].insert(run.name);
      }
    }
  }
  for (const std::string& note : notes) {
    if (runs[note] == all) {
      diff.warnings.push_back(note);
    } else {
      for (const std::string& run : runs[note]) diff.warnings.push_back(run + ": " + note);
    }
  }
}

void add_warnings(const Side& before, const Side& after, Diff& diff) {
  add_notes(before, after, diff);
  for (const Side* side : {&before, &after}) {
    for (std::size_t i = 1; i < side->runs.size(); ++i) {
      const WorkDiff work = compare_work({"", {side->runs.front()}}, {"", {side->runs[i]}});
      if (work.same != "different") continue;
      diff.warnings.push_back(
          fmt::format("the runs {} are no repeats of each other ({} and {}): the sizes are those of the first",
                      side == &before ? "before" : "after", side->runs.front().name, side->runs[i].name));
      break;
    }
  }
  const bool one_each = before.runs.size() == 1 && after.runs.size() == 1;
  const auto predicted = [](const Digest& run) {
    const WorkFact* source = find_fact(run, "source");
    return source != nullptr && source->text == "predicted";
  };
  if (predicted(before.runs.front()) || predicted(after.runs.front())) return;  // its note says so
  if (one_each && before.runs.front().folder != after.runs.front().folder) {
    diff.warnings.push_back(
        "one recording each: intervals do not include the spread from run to run; --before and --after take repeats");
  }
}

// The training step first, then by time.
std::vector<StageWork> by_time(const Digest& before, const Digest& after, std::vector<StageWork> stages) {
  const auto rank = [&](const StageWork& work) {
    double time_ns = 0;
    for (const Digest* run : {&before, &after}) {
      const StageDigest* stage = find_stage(*run, work.stage);
      if (stage != nullptr)
        time_ns += stage->time_ns > 0 ? stage->time_ns : stage->mean_ns * static_cast<double>(stage->steps);
    }
    return std::pair(work.stage == kTrainingStep, time_ns);
  };
  std::ranges::stable_sort(stages, std::greater{}, rank);
  return stages;
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
  diff.work = compare_work(before, after);
  for (const StageWork& work : by_time(before.runs.front(), after.runs.front(), diff.work.stages))
    add_paces(before, after, work, diff);
  add_measures(before, after, shared, diff);
  for (const std::string& stage : stages) add_stage(before, after, stage, diff);
  const std::size_t first_part = diff.rows.size();
  add_parts(before, after, shared, diff);
  std::stable_sort(diff.rows.begin() + static_cast<std::ptrdiff_t>(first_part), diff.rows.end(),
                   [](const DiffRow& a, const DiffRow& b) { return std::fabs(a.moved) > std::fabs(b.moved); });
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
