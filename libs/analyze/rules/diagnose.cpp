#include "analyze/rules/diagnose.h"

#include "analyze/rules/rule.h"

namespace llmprof::analyze {

Result<Diagnosis> diagnose(const trace::Run& run, const Basis& basis, const Summary& summary) {
  LLMPROF_LET(const Facts facts, gather_facts(run, basis, summary));
  Diagnosis out;
  for (const Rule* rule : rules()) {
    Checked checked = rule->check({summary, facts});
    out.rules.push_back({std::string(rule->name), checked.findings.empty() ? "not found" : "found", checked.why});
    for (Finding& finding : checked.findings) out.findings.push_back(std::move(finding));
  }
  return out;
}

}  // namespace llmprof::analyze
