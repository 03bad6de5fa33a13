#pragma once
// Pages of docs/format/ with the parts that are made from catalogues and descriptions renewed; `make docs` writes them.
// A page without the marks stays as it is.

#include <string>

namespace llmprof::report {

std::string with_current_rules(std::string page);         // diagnosis.md
std::string with_current_measures(std::string page);      // measures.md
std::string with_current_descriptions(std::string page);  // json.md and its like

}  // namespace llmprof::report
