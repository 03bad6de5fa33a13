#pragma once
// The table reference of docs/format/run.md, made from the schema.

#include <string>

namespace llmprof::trace {

std::string table_reference();
// A page, its part between the tables markers renewed; unchanged if it has no markers.
std::string with_current_tables(std::string page);

}  // namespace llmprof::trace
