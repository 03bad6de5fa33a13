#include <fmt/format.h>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/sections.h"

namespace llmprof::analyze {

namespace {

double share_of(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

Result<void> fill_kernels(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(summary.gpu.kernels, ask_rows<KernelTime>(run, "kernels"));
  for (KernelTime& kernel : summary.gpu.kernels) {
    kernel.share = share_of(kernel.time_ns, summary.coverage.gpu_ns);
    if (kernel.executions > 0) kernel.mean_ns = kernel.time_ns / kernel.executions;
    if (kernel.flops > 0 && kernel.time_ns > 0)
      kernel.flops_per_s = kernel.flops / (static_cast<double>(kernel.time_ns) * 1e-9);
  }
  return {};
}

std::string label_of(const SourceTime& source) {
  if (source.function.empty()) return "(no stack recorded)";
  if (source.file.empty()) return source.function;
  const std::string file = source.file.substr(source.file.rfind('/') + 1);
  return source.line ? fmt::format("{}:{} {}", file, *source.line, source.function)
                     : fmt::format("{} {}", file, source.function);
}

Result<void> fill_sources(const trace::Run& run, const std::string& by, Summary& summary) {
  if (by.empty()) return {};
  summary.gpu.by = by;
  LLMPROF_LET(summary.gpu.sources, ask_rows<SourceTime>(run, "gpu_by_" + by));
  for (SourceTime& source : summary.gpu.sources) {
    source.share = share_of(source.time_ns, summary.coverage.gpu_ns);
    source.label = label_of(source);
  }
  return {};
}

Result<void> fill_gaps(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(summary.gpu.gaps, ask_rows<GapTime>(run, "gaps"));
  for (const GapTime& gap : summary.gpu.gaps) {
    for (Stage& stage : summary.stages) stage.gap_ns += stage.name == gap.stage ? gap.time_ns : 0;
  }
  LLMPROF_LET(summary.gpu.notes, ask_rows<Note>(run, "notes"));
  return {};
}

// Why the kernels of graph launches are unknown, as far as the run can tell; the collector's own notes say more.
struct UnknownGraphs {
  std::int64_t graphs = 0, launches = 0, time_ns = 0, kernels = 0, named = 0, unseen = 0, launches_by_node = 0;
};
std::string why_unknown(const UnknownGraphs& of) {
  if (of.unseen == of.graphs) return "their nodes were not seen when the graphs were made or updated";
  if (of.named < of.kernels) return fmt::format("{} of their {} kernel nodes have a name", of.named, of.kernels);
  if (of.kernels == 0) return "they have no kernel nodes that are known";
  return "fewer than 90 % of their kernels were recorded elsewhere";
}

Result<void> add_note_of_unknown_graphs(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const UnknownGraphs of, ask_row<UnknownGraphs>(run, "unknown_graphs"));
  if (of.launches == 0) return {};
  summary.gpu.notes.push_back(
      {"graphs",
       fmt::format(
           "the kernels of {} {} of {} {} ({:.1f} % of the GPU time) are unknown: {} recorded node by node, and {}.",
           of.launches, of.launches == 1 ? "launch" : "launches", of.graphs, of.graphs == 1 ? "graph" : "graphs",
           100 * share_of(of.time_ns, summary.coverage.gpu_ns),
           of.launches_by_node == 0 ? "no launch was" : "none of these was", why_unknown(of)),
       1});
  return {};
}

}  // namespace

Result<void> fill_gpu(const trace::Run& run, const std::string& by, Summary& summary) {
  LLMPROF_TRY(fill_gaps(run, summary));
  if (summary.coverage.gpu_ns == 0) return {};
  LLMPROF_TRY(add_note_of_unknown_graphs(run, summary));
  LLMPROF_TRY(fill_kernels(run, summary));
  return fill_sources(run, by, summary);
}

}  // namespace llmprof::analyze
