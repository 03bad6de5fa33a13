#include "report/gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::Coverage;
using base::Align;
using base::Json;
using base::text_or_null;
using base::TextTable;

std::string percent(std::int64_t part, std::int64_t all) {
  return base::human_percent(all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0);
}

std::string time_of(std::int64_t ns) { return base::human_ns(static_cast<double>(ns)); }

std::string stage_cell(const std::string& stage) { return stage.empty() ? "(none)" : stage; }

std::string first_of(const std::string& ops) { return ops.substr(0, ops.find(',')); }

std::string source_cell(const analyze::SourceTime& source) {
  if (source.function.empty()) return "(no stack recorded)";
  if (source.file.empty()) return source.function;
  const std::string file = source.file.substr(source.file.rfind('/') + 1);
  return source.line ? fmt::format("{}:{} {}", file, *source.line, source.function)
                     : fmt::format("{} {}", file, source.function);
}

}  // namespace

std::string device_time_cell(std::int64_t time_ns, std::int64_t estimated_ns) {
  return (estimated_ns > 0 ? "~" : "") + time_cell(time_ns);
}

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
  std::string out =
      wrapped(fmt::format("GPU time {}, kernels added up: {} of it attributed to a stage and a kernel or graph node "
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

std::string kernel_table(const Page& page, const Style& style) {
  TextTable table({{"kernel", Align::kLeft, true},
                   {"calls"},
                   {"time"},
                   {"mean"},
                   {"GPU %"},
                   {"TFLOP/s"},
                   {"stage", Align::kLeft},
                   {"operator", Align::kLeft}});
  std::size_t all = 0;
  for (const analyze::KernelTime& k : page.summary.gpu.kernels) {
    if (!shown(page, k.stage) || ++all > page.top) continue;
    table.add({short_kernel_name(k.name), std::to_string(k.executions), device_time_cell(k.time_ns, k.estimated_ns),
               k.executions > 0 ? time_cell(k.time_ns / k.executions) : "-", percent_cell(k.share),
               k.flops_per_s ? base::three_digits(*k.flops_per_s * 1e-12) : "-", stage_cell(k.stage), first_of(k.ops)});
  }
  if (all == 0) return "";
  std::string out = style.heading("Kernels by GPU time") + table.render(kWidth);
  if (all > page.top) out += fmt::format("  {} more kernels; --top shows more.\n", all - page.top);
  return out +
         wrapped(
             fmt::format("GPU %: of {}, the durations of all kernels added up. TFLOP/s: of the matrix products that it "
                         "stands for.",
                         time_of(page.summary.coverage.gpu_ns))) +
         estimate_line(page, page.stage);
}

std::string source_table(const Page& page, const Style& style) {
  const analyze::Gpu& gpu = page.summary.gpu;
  if (gpu.by.empty()) return "";
  const bool functions = gpu.by == "function";
  std::vector<TextTable::Column> columns{{gpu.by, Align::kLeft, true}, {"kernels"}, {"GPU time"}, {"GPU %"}};
  if (functions) columns.push_back({"self"});
  columns.push_back({"stage", Align::kLeft});
  TextTable table(std::move(columns));
  std::size_t all = 0;
  bool any_stack = false;
  for (const analyze::SourceTime& s : gpu.sources) {
    if (!shown(page, s.stage)) continue;
    any_stack = any_stack || !s.function.empty();
    if (++all > page.top) continue;
    std::vector<std::string> cells{source_cell(s), std::to_string(s.executions),
                                   device_time_cell(s.time_ns, s.estimated_ns), percent_cell(s.share)};
    if (functions) cells.push_back(time_cell(s.self_ns));
    cells.push_back(stage_cell(s.stage));
    table.add(std::move(cells));
  }
  std::string out = style.heading(fmt::format("GPU time by {}", gpu.by));
  if (!any_stack) return out + wrapped("No launch has a stack: record with --stacks python or --stacks python,native.");
  out += table.render(kWidth);
  if (all > page.top) out += fmt::format("  {} more; --top shows more.\n", all - page.top);
  out += wrapped(functions ? "GPU time of what was launched while the function was on the stack; self: it was the "
                             "innermost Python function. Of a graph, the stack at its capture."
                           : "By the stack of the launch or, of a graph, at its capture.");
  return out + estimate_line(page, page.stage);
}

Json kernels_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::KernelTime& k : page.summary.gpu.kernels) {
    if (!shown(page, k.stage)) continue;
    out.push_back({{"name", text_or_null(k.name)},
                   {"stage", text_or_null(k.stage)},
                   {"executions", k.executions},
                   {"time_ns", k.time_ns},
                   {"estimated_ns", k.estimated_ns},
                   {"share", k.share},
                   {"ops", text_or_null(k.ops)},
                   {"flops_per_s", base::maybe(k.flops_per_s)}});
  }
  return out;
}

Json sources_json(const Page& page) {
  Json rows = Json::array();
  for (const analyze::SourceTime& s : page.summary.gpu.sources) {
    if (!shown(page, s.stage)) continue;
    rows.push_back({{"stage", text_or_null(s.stage)},
                    {"kind", text_or_null(s.kind)},
                    {"function", text_or_null(s.function)},
                    {"file", text_or_null(s.file)},
                    {"line", base::maybe(s.line)},
                    {"executions", s.executions},
                    {"time_ns", s.time_ns},
                    {"estimated_ns", s.estimated_ns},
                    {"self_ns", base::maybe(s.self_ns)},
                    {"share", s.share}});
  }
  return {{"by", text_or_null(page.summary.gpu.by)}, {"rows", std::move(rows)}};
}

Json gaps_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::GapTime& gap : page.summary.gpu.gaps) {
    out.push_back({{"stage", text_or_null(gap.stage)}, {"why", gap.why}, {"gaps", gap.gaps}, {"time_ns", gap.time_ns}});
  }
  return out;
}

Json notes_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::Note& note : page.summary.gpu.notes)
    out.push_back({{"subject", note.subject}, {"text", note.text}, {"notes", note.notes}});
  return out;
}

}  // namespace llmprof::report
