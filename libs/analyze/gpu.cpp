#include "analyze/gpu.h"

#include <fmt/format.h>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

double share_of(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

Result<void> fill_kernels(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/kernels"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    KernelTime kernel{.name = row.text("name"),
                      .stage = row.text("stage"),
                      .executions = row.integer("executions"),
                      .time_ns = row.integer("time_ns"),
                      .estimated_ns = row.integer("estimated_ns"),
                      .ops = row.text("ops")};
    kernel.share = share_of(kernel.time_ns, summary.coverage.gpu_ns);
    const double flops = row.real("flops");
    if (flops > 0 && kernel.time_ns > 0) kernel.flops_per_s = flops / (static_cast<double>(kernel.time_ns) * 1e-9);
    summary.gpu.kernels.push_back(std::move(kernel));
  }
  return {};
}

Result<void> fill_sources(const trace::Run& run, const std::string& by, Summary& summary) {
  if (by.empty()) return {};
  summary.gpu.by = by;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/gpu_by_" + by));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    SourceTime source{.stage = row.text("stage"),
                      .kind = row.text("kind"),
                      .function = row.text("function"),
                      .file = row.text("file"),
                      .line = row.maybe_integer("line"),
                      .executions = row.integer("executions"),
                      .time_ns = row.integer("time_ns"),
                      .estimated_ns = row.integer("estimated_ns")};
    if (by == "function") source.self_ns = row.integer("self_ns");
    source.share = share_of(source.time_ns, summary.coverage.gpu_ns);
    summary.gpu.sources.push_back(std::move(source));
  }
  return {};
}

Result<void> fill_gaps(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable gaps, ask(run, "sql/gaps"));
  for (std::size_t i = 0; i < gaps.rows.size(); ++i) {
    const RowView row{gaps, i};
    summary.gpu.gaps.push_back({row.text("stage"), row.text("why"), row.integer("gaps"), row.integer("time_ns")});
    for (Stage& stage : summary.stages) {
      if (stage.name == summary.gpu.gaps.back().stage) stage.gap_ns += summary.gpu.gaps.back().time_ns;
    }
  }
  LLMPROF_LET(const trace::ResultTable notes, ask(run, "sql/notes"));
  for (std::size_t i = 0; i < notes.rows.size(); ++i) {
    const RowView row{notes, i};
    summary.gpu.notes.push_back({row.text("subject"), row.text("text"), row.integer("notes")});
  }
  return {};
}

// Why the kernels of graph launches are unknown, as far as the run can tell; the collector's own notes say more.
std::string why_unknown(const RowView& row) {
  const std::int64_t kernels = row.integer("kernels"), named = row.integer("named");
  if (row.integer("unseen") == row.integer("graphs"))
    return "their nodes were not seen when the graphs were made or updated";
  if (named < kernels) return fmt::format("{} of their {} kernel nodes have a name", named, kernels);
  if (kernels == 0) return "they have no kernel nodes that are known";
  return "fewer than 90 % of their kernels were recorded elsewhere";
}

Result<void> add_note_of_unknown_graphs(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/unknown_graphs"));
  const RowView row{table, 0};
  const std::int64_t launches = row.integer("launches"), graphs = row.integer("graphs");
  if (launches == 0) return {};
  summary.gpu.notes.push_back(
      {"graphs",
       fmt::format(
           "the kernels of {} {} of {} {} ({:.1f} % of the GPU time) are unknown: {} recorded node by node, and {}.",
           launches, launches == 1 ? "launch" : "launches", graphs, graphs == 1 ? "graph" : "graphs",
           100 * share_of(row.integer("time_ns"), summary.coverage.gpu_ns),
           row.integer("launches_by_node") == 0 ? "no launch was" : "none of these was", why_unknown(row)),
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
