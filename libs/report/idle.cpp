#include "report/idle.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/tools.h"
#include "base/human.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::IdlePlace;
using analyze::IdleWork;
using analyze::StageIdle;

constexpr double kLeastShare = 0.01;  // of the stage's time that is worth a line, and of the idle time a cause
constexpr std::size_t kPlaces = 6;

std::string percent(double fraction) { return fmt::format("{:.0f} %", fraction * 100); }

std::string place_name(const StageIdle& idle, const IdlePlace& place) {
  if (place.name.empty()) return "no range";
  return place.name == idle.stage ? "the step, in no part of it" : base::printable(place.name);
}

std::string places_text(const StageIdle& idle) {
  const auto total = static_cast<double>(idle.idle_ns());
  std::string out;
  std::size_t shown = 0;
  double rest = 0;
  for (const IdlePlace& place : idle.places) {
    const double share = static_cast<double>(place.time_ns) / total;
    if (shown == kPlaces || share < kLeastShare) {
      rest += share;
      continue;
    }
    ++shown;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", place_name(idle, place), percent(share));
  }
  if (rest >= kLeastShare) out += fmt::format(", others {}", percent(rest));
  return out;
}

const analyze::Stage* stage_of(const Page& page, const StageIdle& idle) {
  const auto found = std::ranges::find(page.summary.stages, idle.stage, &analyze::Stage::name);
  return found == page.summary.stages.end() ? nullptr : &*found;
}

std::string stage_lines(const Page& page, const StageIdle& idle) {
  const analyze::Stage* stage = stage_of(page, idle);
  const auto total = static_cast<double>(idle.idle_ns());
  if (stage == nullptr || idle.warm_up || stage->name == "compile" || analyze::is_preparation(stage->name)) return "";
  if (total < kLeastShare * static_cast<double>(stage->time_ns)) return "";
  std::string out = wrapped(fmt::format(
      "{}: {} in {}{}.", stage->name, time_cell(idle.gap_ns), counted(stage->steps - stage->warm_up_steps, "step"),
      idle.between_ns > 0 ? fmt::format(", {} between them", time_cell(idle.between_ns)) : ""));
  const bool named = std::ranges::any_of(
      idle.places, [&](const IdlePlace& place) { return !place.name.empty() && place.name != idle.stage; });
  if (named) out += wrapped("in: " + places_text(idle) + ".", 4);
  if (const std::string works = works_text(idle, total); !works.empty())
    out += wrapped(fmt::format("doing: {} ({}).", works, counted(idle.samples, "sample")), 4);
  return out;
}

}  // namespace

std::string works_text(const StageIdle& idle, double total_ns) {
  if (idle.samples < analyze::kEnoughSamples || total_ns <= 0) return "";
  std::string out;
  double sum = 0;
  total_ns = std::max(total_ns, static_cast<double>(idle.cpu_ns()));  // samples may stand for more than there was
  for (const IdleWork& work : idle.works) {
    const double share = static_cast<double>(work.cpu_ns) / total_ns;
    sum += share;
    if (share < kLeastShare) continue;
    std::string more = work.what;
    if (!is_launching(work.work) && !work.where.empty()) more += (more.empty() ? "in " : ", in ") + work.where;
    out += fmt::format("{}{}{} {}", out.empty() ? "" : "; ", work_name(work.work),
                       more.empty() ? "" : " (" + base::printable(more) + ")", percent(share));
  }
  if (1 - sum >= kLeastShare) out += fmt::format("; not on a CPU {}", percent(1 - sum));
  return out;
}

std::string idle_section(const Page& page, const Style& style) {
  std::string lines;
  for (const StageIdle& idle : page.summary.idle) {
    if (shown(page, idle.stage) && idle.idle_ns() > 0) lines += stage_lines(page, idle);
  }
  if (lines.empty()) return "";
  return style.heading("Idle time") +
         wrapped(
             "Time in which nothing executes on the GPU and nothing is queued, warm-up left out. in: operator or range "
             "that was "
             "open on the thread that makes the steps. doing: its CPU time then, by stack samples. %: of the idle "
             "time.") +
         lines;
}

}  // namespace llmprof::report
