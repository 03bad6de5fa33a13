#pragma once
// The analyses that SQL says well. A question of a table stands with the table's description (tables/*.md), in a block
// that begins with "```sql NAME"; the others are grouped in sql/*.sql, each after a line "-- question: NAME".

#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

std::vector<std::string_view> question_names();
std::string_view sql_of(std::string_view name);  // "" if there is no question of that name

Result<trace::ResultTable> ask(const trace::Run& run, std::string_view name);
Result<trace::Columns> ask_columns(const trace::Run& run, std::string_view name);

}  // namespace llmprof::analyze
