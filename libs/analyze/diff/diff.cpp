#include "analyze/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/human.h"
#include "base/kernel_name.h"
#include "bench/statistics.h"

namespace llmprof::analyze {

namespace {

constexpr double kNs = 1e-9;

// How the kernel time of a part changed; the three add up to the change.
struct KernelChange {
  double count_ns = 0;  // other numbers of the same kernels
  double other_ns = 0;  // kernels of one side only
  double speed_ns = 0;  // the same kernels, faster or slower
  double calls_before = 0, calls_after = 0;
  std::string gone, come;  // the longest kernel of one side only

  void add(const KernelChange& more) {
    count_ns += more.count_ns;
    other_ns += more.other_ns;
    speed_ns += more.speed_ns;
    calls_before += more.calls_before;
    calls_after += more.calls_after;
  }
};

KernelChange kernel_change(const PartDigest& before, const PartDigest& after) {
  KernelChange change{.calls_before = before.calls, .calls_after = after.calls};
  std::map<std::string, std::pair<KernelUse, KernelUse>> both;
  for (const KernelUse& kernel : before.kernels) both[kernel.name].first = kernel;
  for (const KernelUse& kernel : after.kernels) both[kernel.name].second = kernel;
  double gone_ns = 0, come_ns = 0;
  for (const auto& [name, uses] : both) {
    const auto& [a, b] = uses;
    if (a.executions > 0 && b.executions > 0) {
      const double each_ns = a.ns / a.executions;
      change.count_ns += (b.executions - a.executions) * each_ns;
      change.speed_ns += b.ns - b.executions * each_ns;
      continue;
    }
    change.other_ns += b.ns - a.ns;
    if (a.ns > gone_ns) change.gone = name, gone_ns = a.ns;
    if (b.ns > come_ns) change.come = name, come_ns = b.ns;
  }
  return change;
}

std::string count_text(double count) {
  return std::fabs(count - std::round(count)) < 0.005 ? fmt::format("{:.0f}", count) : fmt::format("{:.2f}", count);
}

std::string short_name(const std::string& kernel) {
  const std::string name = base::kernel_name(kernel);
  return name.size() <= 60 ? name : name.substr(0, 57) + "...";
}

bool differs(double a, double b, double least) {
  return std::fabs(b - a) > least * std::max(std::fabs(a), std::fabs(b));
}

void add_kernel_reasons(const KernelChange& change, const std::string& where, std::vector<Reason>& reasons) {
  const double more = change.calls_after - change.calls_before;
  // New kernels beside others that stayed are more kernels; new ones in place of others are another algorithm.
  const bool counted = differs(change.calls_before, change.calls_after, 0.001);
  const bool replaced = !change.gone.empty() && !change.come.empty();
  if (counted) {
    reasons.push_back(
        {"kernels",
         fmt::format("{} {} kernels a step ({} -> {}){}", count_text(std::fabs(more)), more > 0 ? "more" : "fewer",
                     count_text(change.calls_before), count_text(change.calls_after), where),
         change.count_ns + (replaced ? 0 : change.other_ns)});
  }
  if (replaced) {
    reasons.push_back({"algorithm",
                       fmt::format("another algorithm for the same work{}: {} instead of {}", where,
                                   short_name(change.come), short_name(change.gone)),
                       change.other_ns + (counted ? 0 : change.count_ns)});
  }
}

// What can make the same kernels slower: a lower clock, more work.
void add_speed_reasons(double speed_ns, double kernel_ns, const StageDigest* before, const StageDigest* after,
                       std::vector<Reason>& reasons) {
  std::string cause;
  if (before != nullptr && after != nullptr && before->sm_clock_hz && after->sm_clock_hz &&
      differs(*before->sm_clock_hz, *after->sm_clock_hz, 0.005)) {
    const double at_most_ns = kernel_ns * (*before->sm_clock_hz / *after->sm_clock_hz - 1);
    reasons.push_back({"clock",
                       fmt::format("{} clock ({:.0f} -> {:.0f} MHz): {} at most, if arithmetic bounds the kernels",
                                   *after->sm_clock_hz < *before->sm_clock_hz ? "lower" : "higher",
                                   *before->sm_clock_hz / 1e6, *after->sm_clock_hz / 1e6, base::human_ns(at_most_ns)),
                       std::fabs(at_most_ns) < std::fabs(speed_ns) ? at_most_ns : speed_ns});
  }
  reasons.push_back(
      {"same kernels", speed_ns > 0 ? "the same kernels take longer" : "the same kernels take less time", speed_ns});
}

void add_work(std::string_view what, const std::optional<double>& before, const std::optional<double>& after,
              std::string (*text)(double), std::string& out) {
  if (!before || !after || !differs(*before, *after, 0.002)) return;
  out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", what, text(*before), text(*after));
}
std::string flops_text(double value) { return base::human_rate(value, "FLOP"); }

// The largest first; what explains less than a twentieth of the change is left out, but for the first.
std::vector<Reason> ordered(std::vector<Reason> reasons, double change_ns) {
  const auto explains = [&](const Reason& reason) { return change_ns < 0 ? -reason.ns : reason.ns; };
  std::ranges::stable_sort(reasons, std::greater{}, explains);
  std::erase_if(reasons, [&](const Reason& r) { return std::fabs(r.ns) < 0.05 * std::fabs(change_ns) || r.ns == 0; });
  return reasons;
}

std::string term_text(std::string_view name) {
  if (name == "between_steps") return "time between steps";
  if (name == "gaps") return "idle, nothing launched";
  if (name == "queued") return "idle though work is queued";
  if (name == "waits") return "host waiting for the device, which idles";
  if (name == "copies") return "copies";
  return "kernels of others";
}

double term_of(const StageDigest& stage, std::string_view name) {
  for (const auto& [term, ns] : stage.terms) {
    if (term == name) return ns;
  }
  return 0;
}

void add_terms(const StageDigest& before, const StageDigest& after, std::vector<Reason>& reasons) {
  std::map<std::string, bool> names;
  for (const auto& [name, ns] : before.terms) names[name] = true;
  for (const auto& [name, ns] : after.terms) names[name] = true;
  for (const auto& [name, there] : names) {
    const double a = term_of(before, name), b = term_of(after, name);
    reasons.push_back(
        {"idle", fmt::format("{}: {} -> {} a step", term_text(name), base::human_ns(a), base::human_ns(b)), b - a});
  }
}

// The size of the steps: what they must compute and move, and what follows at peak rates.
void add_size(const StageDigest& before, const StageDigest& after, std::vector<Reason>& reasons) {
  std::string text;
  add_work("bytes", before.bytes, after.bytes, base::human_bytes, text);
  add_work("FLOPs", before.flops, after.flops, flops_text, text);
  if (text.empty()) return;
  std::string size;
  const auto count = [](double value) { return base::human_count(std::round(value * 10) / 10); };
  add_work("batch", before.batch, after.batch, count, size);
  add_work("context", before.context, after.context, count, size);
  add_work("tokens", before.tokens, after.tokens, count, size);
  const double ns = before.floor_ns && after.floor_ns ? *after.floor_ns - *before.floor_ns : 0;
  reasons.push_back({"work", fmt::format("other work a step: {}{}", text, size.empty() ? "" : " (" + size + ")"), ns});
}

std::vector<Reason> reasons_of(const PartDigest& before, const PartDigest& after, const StageDigest* stage_before,
                               const StageDigest* stage_after) {
  std::vector<Reason> reasons;
  const KernelChange change = kernel_change(before, after);
  add_kernel_reasons(change, "", reasons);
  add_speed_reasons(change.speed_ns, before.ns.value, stage_before, stage_after, reasons);
  std::string work;
  add_work("bytes", before.bytes, after.bytes, base::human_bytes, work);
  add_work("FLOPs", before.flops, after.flops, flops_text, work);
  const double change_ns = after.ns.value - before.ns.value;
  const double host_ns = change_ns - change.count_ns - change.other_ns - change.speed_ns;
  reasons.push_back({"host", "the rest: host code, kernels of little time", host_ns});
  reasons = ordered(std::move(reasons), change_ns);
  if (!work.empty()) reasons.push_back({"work", "other work a step: " + work, 0});
  return reasons;
}

std::vector<Reason> reasons_of(const StageDigest& before, const StageDigest& after, const Digest& run_before,
                               const Digest& run_after) {
  std::vector<Reason> reasons;
  add_terms(before, after, reasons);
  KernelChange all;
  const PartDigest none;
  double most_ns = 0, most_other_ns = 0;
  std::string where, where_other;
  const auto add = [&](const PartDigest& a, const PartDigest& b) {
    const KernelChange change = kernel_change(a, b);
    all.add(change);
    const std::string& name = a.name.empty() ? b.name : a.name;
    if (differs(a.calls, b.calls, 0.001) && std::fabs(change.count_ns + change.other_ns) > most_ns) {
      most_ns = std::fabs(change.count_ns + change.other_ns);
      where = ", most of them in " + name;
    }
    if (!change.gone.empty() && !change.come.empty() && std::fabs(change.other_ns) > most_other_ns) {
      most_other_ns = std::fabs(change.other_ns);
      where_other = " (" + name + ")";
      all.gone = change.gone;
      all.come = change.come;
    }
  };
  for (const PartDigest& part : run_before.parts) {
    if (part.kind != "operator" || part.stage != before.name) continue;
    const PartDigest* other = find_part(run_after, part);
    add(part, other == nullptr ? none : *other);
  }
  for (const PartDigest& part : run_after.parts) {
    if (part.kind == "operator" && part.stage == after.name && find_part(run_before, part) == nullptr) add(none, part);
  }
  KernelChange counts = all, others = all;
  counts.gone.clear();
  counts.other_ns = all.gone.empty() ? all.other_ns : 0;
  add_kernel_reasons(counts, where, reasons);
  others.calls_after = others.calls_before;
  others.count_ns = 0;
  add_kernel_reasons(others, where_other, reasons);
  add_speed_reasons(all.speed_ns, before.kernel_ns, &before, &after, reasons);
  add_size(before, after, reasons);
  return ordered(std::move(reasons), after.ns.value - before.ns.value);
}

// After - before; what is not there takes no time.
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
  std::ranges::stable_sort(diff.causes, std::greater{}, rank);
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
