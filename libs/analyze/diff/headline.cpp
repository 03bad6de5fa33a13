#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/diff/diff.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace {

constexpr double kNs = 1e-9;

std::string percent_text(const DiffRow& row) {
  if (!row.change.ratio) return "";
  const bool noise = row.change.low && !row.significant;
  if (*row.change.ratio >= 9.995)
    return fmt::format(" ({:.0f} times{})", *row.change.ratio + 1, noise ? ", within noise" : "");
  return fmt::format(" ({:+.1f} %{})", *row.change.ratio * 100, noise ? ", within noise" : "");
}

// "2.04 -> 1.63 ms": the unit once where it is the same.
std::string times_text(double before_ns, double after_ns) {
  const std::string before = base::human_ns(before_ns), after = base::human_ns(after_ns);
  const std::size_t a = before.find(' '), b = after.find(' ');
  const bool same = a != std::string::npos && b != std::string::npos && before.substr(a) == after.substr(b);
  return fmt::format("{} -> {}", same ? before.substr(0, a) : before, after);
}

std::string rate_text(double value) {
  return value >= 9999.5 ? base::human_count(value)
         : value >= 100  ? fmt::format("{:.0f}", value)
                         : base::three_digits(value);
}

std::string pace_text(const DiffRow& row) {
  std::string text;
  if (row.unit == "s") {
    text = fmt::format("{} {}", row.name, times_text(*row.before / kNs, *row.after / kNs));
  } else if (row.unit == "1") {
    text = fmt::format("{} {} -> {}", row.name, base::human_percent(*row.before), base::human_percent(*row.after));
  } else {
    text = fmt::format("{} -> {} {}", rate_text(*row.before), rate_text(*row.after), row.name);
  }
  return text + percent_text(row);
}

// "slower", "faster"; "" where there is no verdict.
std::string verdict_of(const std::vector<const DiffRow*>& paces) {
  bool better = false, worse = false, judged = false, comparable = true;
  for (const DiffRow* row : paces) {
    comparable = comparable && row->comparable;
    judged = judged || row->change.low.has_value();
    better = better || row->better == "better";
    worse = worse || row->better == "worse";
  }
  if (!comparable) return " (other work)";
  if (better != worse) return better ? " is faster" : " is slower";
  return judged && !better ? " shows no significant change" : "";
}

// The stages of the paces, in their order; what a training step is made of is left to the tables.
std::vector<std::string> leading_stages(const Diff& diff) {
  std::vector<std::string> stages;
  for (const DiffRow& row : diff.rows) {
    if (row.kind != "pace" || std::ranges::count(stages, row.stage) > 0) continue;
    const bool training = !stages.empty() && stages.front() == kTrainingStep;
    if (training) break;
    stages.push_back(row.stage);
    if (stages.size() == 2) break;
  }
  return stages;
}

std::string cause_text(const Diff& diff, const std::string& stage) {
  const DiffRow* whole = find_row(diff, "stage", stage, stage);
  const bool stage_moved = whole != nullptr && whole->significant && whole->comparable;
  for (const std::size_t index : diff.causes) {
    const DiffRow& cause = diff.rows[index];
    if (cause.stage != stage && stage != kTrainingStep) continue;
    const bool same_way = stage_moved && cause.per == "step" && whole->per == "step" && cause.moved / whole->moved > 0;
    if (stage_moved && !same_way && cause.per == "step") continue;
    if (cause.per != "step") {
      return fmt::format(" Largest change inside: {}, {} per {}{}.", cause.name,
                         times_text(*cause.before / kNs, *cause.after / kNs), cause.per, percent_text(cause));
    }
    const bool most = same_way && cause.moved / whole->moved >= 0.5;
    return fmt::format(" {} {} ({}{} a step{}).", most ? "Most of it comes from" : "Largest change inside:", cause.name,
                       cause.moved > 0 ? "+" : "", base::human_ns(cause.moved / kNs),
                       cause.why.empty() ? "" : ": " + cause.why.front().text);
  }
  // Without modules that tell it, what the stage itself says.
  if (stage_moved && whole->per == "step" && !whole->why.empty() && whole->why.front().ns / kNs != 0 &&
      (whole->why.front().ns > 0) == (whole->moved > 0)) {
    const Reason& first = whole->why.front();
    return fmt::format(" Mainly: {} ({}{}).", first.text, first.ns > 0 ? "+" : "", base::human_ns(first.ns));
  }
  return "";
}

std::string stage_text(const Diff& diff, const std::string& stage) {
  std::vector<const DiffRow*> paces;
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "pace" && row.stage == stage) paces.push_back(&row);
  }
  std::vector<const DiffRow*> main;
  for (const DiffRow* row : paces) {
    if (row->unit != "1" && !row->name.starts_with("time per")) main.push_back(row);
  }
  std::string text = stage + verdict_of(main) + ":";
  for (std::size_t i = 0; i < main.size(); ++i) text += (i == 0 ? " " : ", ") + pace_text(*main[i]);
  for (const DiffRow* row : paces) {
    if (row->name.starts_with("time per")) text += "; " + pace_text(*row);
  }
  return text + ".";
}

// On other hardware times say little of the program: what each reached of what its device can do.
std::string shares_text(const Diff& diff) {
  if (diff.work.same_device) return "";
  std::string text;
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "pace" && row.unit == "1") text += (text.empty() ? "" : ", ") + row.stage + " " + pace_text(row);
  }
  if (text.empty()) return "\nShares of what each device can do cannot be compared: peaks or work are unknown.";
  return "\nAs shares of what each device can do: " + text + ".";
}

}  // namespace

std::string headline(const Diff& diff) {
  std::int64_t changed = 0, compared = 0;
  for (const DiffRow& row : diff.rows) {
    if (row.kind == "measure" || row.kind == "pace" || !row.comparable) continue;
    compared += row.change.ratio ? 1 : 0;
    changed += row.significant ? 1 : 0;
  }
  const std::vector<std::string> stages = leading_stages(diff);
  if (stages.empty()) {
    const DiffRow* wall = find_row(diff, "measure", "", "run.wall");
    std::string text = "No stage is in both runs.";
    if (wall != nullptr && wall->before && wall->after)
      text +=
          fmt::format(" Wall time: {}{}.", times_text(*wall->before / kNs, *wall->after / kNs), percent_text(*wall));
    return text;
  }
  std::string text;
  const bool quiet = changed == 0 && diff.work.same == "same";
  if (quiet && compared > 0) text = fmt::format("No significant change in {} stages and parts.", compared);
  for (const std::string& stage : stages) {
    text += (text.empty() ? "" : "\n") + stage_text(diff, stage);
    if (&stage == &stages.front()) text += cause_text(diff, stage);
  }
  return text + shares_text(diff);
}

}  // namespace llmprof::analyze
