// Why a stage or a part of it takes longer or shorter: kernels counted, replaced, slower; idle time; the clock; work.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/diff/diff.h"
#include "base/human.h"
#include "base/kernel_name.h"

namespace llmprof::analyze {
namespace {

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
                       fmt::format("other kernels for the same work{}: {} instead of {}", where,
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

std::string term_text(std::string_view name, bool on_cpu) {
  if (name == "between_steps") return "between steps";
  if (name == "gaps" && on_cpu) return "CPU code outside the model's operators";
  if (name == "gaps") return "GPU idle, waiting for CPU";
  if (name == "queued") return "GPU idle, work queued";
  if (name == "waits") return "GPU idle while the CPU waits for it";
  if (name == "copies") return "copies without a kernel";
  return "other kernels of the process";
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
    reasons.push_back({"idle",
                       fmt::format("{}: {} -> {} a step", term_text(name, before.on_cpu && after.on_cpu),
                                   base::human_ns(a), base::human_ns(b)),
                       b - a});
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

}  // namespace

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
  reasons.push_back({"host", "the rest: CPU code and short kernels", host_ns});
  reasons = ordered(std::move(reasons), change_ns);
  if (!work.empty()) reasons.push_back({"work", "other work a step: " + work, 0});
  return reasons;
}

std::vector<Reason> reasons_of(const StageDigest& before, const StageDigest& after, const Digest& run_before,
                               const Digest& run_after, bool same_work) {
  std::vector<Reason> reasons;
  add_terms(before, after, reasons);
  add_size(before, after, reasons);
  // Other work is other kernels: that they are more or slower would explain nothing.
  if (!same_work) return ordered(std::move(reasons), after.ns.value - before.ns.value);
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
  return ordered(std::move(reasons), after.ns.value - before.ns.value);
}

}  // namespace llmprof::analyze
