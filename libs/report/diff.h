#pragma once
// A comparison laid out: terminal text, JSON (docs/format/json-diff.md), JUnit. Computes nothing.

#include <string>
#include <vector>

#include "analyze/diff/diff.h"
#include "base/json_fwd.h"

namespace llmprof::report {

struct DiffPage {
  analyze::Diff diff;
  std::vector<analyze::GateResult> gates;
  bool compared = true;     // false: one run, gates only
  bool full = false;        // every table; else one screen, the most important first
  std::size_t top = 12;     // rows of each table
};

std::string to_text(const DiffPage& page, bool colour);
void to_json(const DiffPage& page, base::Json& out);
std::string gates_junit(const DiffPage& page);
std::string to_text(const std::vector<analyze::BaselineEntry>& entries);

}  // namespace llmprof::report
