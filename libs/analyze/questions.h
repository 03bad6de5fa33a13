#pragma once
// The analyses that SQL says well: one question per file of sql/, packed into the program. A file begins with its
// header:
//   -- title: Kernel time by operator
//   -- unit: ns
//   -- What it means, in words.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Question {
  std::string_view name;  // "sql/stages": the file without ".sql"
  std::string_view title, unit;
  std::string_view sql;  // the whole file
};

std::vector<Question> questions();
const Question* find_question(std::string_view name);

Result<trace::ResultTable> ask(const trace::Run& run, std::string_view name);
Result<trace::Columns> ask_columns(const trace::Run& run, std::string_view name);

}  // namespace llmprof::analyze
