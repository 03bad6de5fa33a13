#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/tools.h"
#include "base/human.h"
#include "report/sections.h"
#include "report/table.h"

namespace llmprof::report {

namespace {

using analyze::Coverage;
std::string percent(std::int64_t part, std::int64_t all) {
  return base::human_percent(all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0);
}

std::string time_of(std::int64_t ns) { return base::human_ns(static_cast<double>(ns)); }

}  // namespace

std::string estimate_line(const Page& page, std::string_view stage) {
  const Coverage& c = page.summary.coverage;
  std::int64_t launches = c.graph_launches, by_node = c.graph_launches_by_node, estimated = c.estimated_ns;
  for (const analyze::Stage& s : page.summary.stages) {
    if (s.name != stage) continue;
    launches = s.graph_launches;
    by_node = s.graph_launches_by_node;
    estimated = s.estimated_ns;
  }
  if (estimated == 0) return "";
  if (is_predicted(page)) return wrapped("~: predicted.");
  if (by_node == 0) {  // recorded in another stage, of the same graph
    launches = c.graph_launches;
    by_node = c.graph_launches_by_node;
  }
  if (launches == 0) return wrapped("~: partly estimated, from the same launches at other times.");
  if (by_node == 0) return wrapped("~: estimated, from the same kernels launched outside graphs.");
  return wrapped(fmt::format("~: partly estimated, from {} of {}.", by_node, counted(launches, "graph launch")));
}

std::string gpu_coverage(const Page& page) {
  const Coverage& c = page.summary.coverage;
  if (c.gpu_ns == 0) return "";
  std::string out = wrapped(
      fmt::format("GPU time {}, the sum over kernels: {} of it attributed to a stage and a kernel or graph node "
                  "({} to a stage, {} to a "
                  "kernel or node, {} to a module).",
                  time_of(c.gpu_ns), percent(c.gpu_placed_ns, c.gpu_ns), percent(c.gpu_stage_ns, c.gpu_ns),
                  percent(c.gpu_node_ns, c.gpu_ns), percent(c.gpu_module_ns, c.gpu_ns)));
  if (c.graph_launches > 0) {
    std::string line = fmt::format("{} of {}, {} of them recorded node by node. {} of the GPU time is measured",
                                   counted(c.graph_launches, "launch"), counted(c.graphs, "graph"),
                                   c.graph_launches_by_node, percent(c.gpu_ns - c.estimated_ns, c.gpu_ns));
    if (c.estimated_ns > 0) {
      line += fmt::format("; {} is estimated from {} (~), {} of it attributed to a stage",
                          percent(c.estimated_ns, c.gpu_ns),
                          c.graph_launches_by_node > 0 ? "those" : "the same kernels outside graphs",
                          percent(c.estimated_placed_ns, c.estimated_ns));
    }
    out += wrapped(line + ".");
  }
  if (c.graph_launches == 0 && c.estimated_ns > 0) {
    out += wrapped(fmt::format(
        "Kernels were sampled: all launches were noted, and {} of the GPU time was measured. The times of {} are "
        "estimated from the same launches at other times (~); record --kernels all times every one.",
        percent(c.gpu_ns - c.estimated_ns, c.gpu_ns), counted(c.estimated_kernels, "kernel")));
  }
  if (c.kernels_without_launch > 0) {
    out += wrapped(fmt::format("Of {} the launching call is unknown: placed by begin and thread, or nowhere.",
                               counted(c.kernels_without_launch, "kernel")));
  }
  return out;
}

std::string gap_lines(const Page& page, const Style& style) {
  std::string out;
  for (const analyze::GapTime& gap : page.summary.gpu.gaps) {
    if (!gap.stage.empty()) continue;
    std::string line =
        fmt::format("Not recorded: {} in {} ({})", time_of(gap.time_ns), counted(gap.gaps, "gap"), gap.why);
    for (const analyze::GapTime& part : page.summary.gpu.gaps) {
      if (!part.stage.empty() && part.why == gap.why)
        line += fmt::format("; of {} {}", part.stage, time_of(part.time_ns));
    }
    out += style.warning(wrapped(line + "."));
  }
  for (const analyze::Note& note : page.summary.gpu.notes) {
    const bool stops = note.text.ends_with('.') || note.text.ends_with('!');
    out += wrapped(fmt::format("Note, {}: {}{}{}", note.subject, note.text, stops ? "" : ".",
                               note.notes > 1 ? fmt::format(" ({} times)", note.notes) : ""));
  }
  return out;
}

std::string kernel_table(const Page& page, const Style& style, const TableText& tables) {
  const std::string table = tables.section("kernels[]", style);
  return table.empty() ? "" : table + estimate_line(page, page.stage);
}

std::string source_table(const Page& page, const Style& style, const TableText& tables) {
  const auto& sources = page.summary.gpu.sources;
  if (page.summary.gpu.by.empty()) return "";
  if (std::ranges::none_of(sources, [&](const auto& s) { return shown(page, s.stage) && !s.function.empty(); })) {
    return style.heading(tables.title("gpu_by_source.rows[]")) +
           wrapped("No launch has a stack: record with --stacks python or --stacks python,native.");
  }
  return tables.section("gpu_by_source.rows[]", style) + estimate_line(page, page.stage);
}

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
