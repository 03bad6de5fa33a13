#pragma once
// A report: what analyze found about one run, laid out as terminal text or as JSON. Computes nothing.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "analyze/summary.h"
#include "base/json_fwd.h"
#include "trace/run_info.h"

namespace llmprof::report {

struct Page {
  std::string run;  // the folder as the user named it
  trace::RunInfo info;
  analyze::Summary summary;
  std::size_t top = 15;      // rows per table of the terminal text
  std::size_t findings = 0;  // of the diagnosis; 0: three on the screen, five in the whole report
  std::string stage;         // show only this one; "" all
  bool diagnosis = false;    // only what was lost and the diagnosis, that one in full
  bool counters = false;     // only the hardware counters, these in full
  bool waterfall = false;    // the waterfall of each stage in full
  bool unicode = true;       // false: bars are drawn with ASCII
  bool verbose = false;      // what only few readers need: serial numbers of devices
};

// Everything, or what Page asks for. Lines of at most line_width() columns (layout.h). Escape sequences only if
// `colour`.
std::string to_text(const Page& page, bool colour);

// The answer on one screen, kScreenLines (layout.h) at most: what ran, where its time went, its stages, what would pay, what was
// lost, what to type next.
std::string screen_text(const Page& page, bool colour);

// A part of the report that can be asked for by name: `report RUN kernels`.
struct ReportPart {
  std::string_view name, meaning;
  std::string_view rows = "";  // the JSON that it shows, where one screen may suggest it
};
std::span<const ReportPart> report_parts();
std::string part_text(const Page& page, std::string_view part, bool colour);  // says so where the run has none of it

// Adds run, coverage, losses and the payload behind what `out` already holds. docs/format/json.md describes every key.
void to_json(const Page& page, base::Json& out);
base::Json report_json(const Page& page);  // these alone
base::Json run_facts(const std::string& run, const trace::RunInfo& info);
std::string loss_words(const analyze::Loss& loss);
base::Json tables_json(const Page& page);  // of these, the rows that the terminal draws as tables

}  // namespace llmprof::report
