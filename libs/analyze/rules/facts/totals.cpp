#include "analyze/rules/facts/totals.h"

#include <algorithm>
#include <array>

#include "analyze/totals_findings.h"

namespace llmprof::analyze {
namespace {

constexpr std::array<std::string_view, 5> kWaitingCalls = {"aten::item", "aten::_local_scalar_dense",
                                                           "cudaStreamSynchronize", "cudaDeviceSynchronize",
                                                           "cudaEventSynchronize"};

}  // namespace

TotalsFacts totals_facts(const MeasuredTable& table) {
  TotalsFacts out;
  double copies_ns = 0;
  for (const MeasuredRow& row : table.rows) {
    if (row.name.starts_with("Memcpy ")) copies_ns += row.self_device_ns.value_or(0);
    if (row.name.starts_with("Memcpy ") && row.name.find("Pageable") != row.name.npos) {
      out.pageable_ns += row.self_device_ns.value_or(0);
      out.pageable_copies += static_cast<double>(row.calls);
    }
    if (std::find(kWaitingCalls.begin(), kWaitingCalls.end(), row.name) != kWaitingCalls.end() &&
        static_cast<double>(row.calls) > out.sync_calls) {
      out.sync_calls = static_cast<double>(row.calls);
      out.sync_name = row.name;
    }
  }
  out.device_work_ns = std::max(0.0, table.device_total_ns.value_or(0) - copies_ns);
  if (const MeasuredRow* copy = table.find("aten::copy_"))
    out.copy_wait_ns =
        std::max(0.0, copy->self_cpu_ns.value_or(0) - std::max(copies_ns, copy->self_device_ns.value_or(0)));
  return out;
}

Result<std::optional<TotalsFacts>> totals_facts(const trace::Run& run, const Basis& basis, const Summary& summary) {
  if (!basis.model || summary.imported.totals.empty()) return std::optional<TotalsFacts>();
  LLMPROF_LET(const MeasuredTable table, totals_table(run));
  LLMPROF_LET(std::optional<MeasuredFindings> findings, totals_findings(run, basis, summary));
  if (!findings) return std::optional<TotalsFacts>();
  TotalsFacts out = totals_facts(table);
  out.findings = std::move(*findings);
  return std::optional(std::move(out));
}

}  // namespace llmprof::analyze
