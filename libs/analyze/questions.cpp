#include "analyze/questions.h"

#include <map>
#include <span>

#include "base/asset.h"

namespace llmprof::analyze {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

using Questions = std::map<std::string_view, std::string_view, std::less<>>;

// Each begins with `mark` and its name, and goes on until `end`.
void read_questions(std::string_view text, std::string_view mark, std::string_view end, Questions& into) {
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark)) {
    text.remove_prefix(at + mark.size());
    const std::size_t line = text.find('\n');
    const std::string_view name = text.substr(0, line);
    text.remove_prefix(line + 1);
    into.emplace(name, text.substr(0, text.find(end)));
  }
}

const Questions& all_questions() {
  static const Questions all = [] {
    Questions out;
    for (const base::Asset& asset : assets()) {
      if (asset.path.ends_with(".sql")) read_questions(asset.bytes, "-- question: ", "-- question: ", out);
      if (asset.path.ends_with(".md")) read_questions(asset.bytes, "```sql ", "```", out);
    }
    return out;
  }();
  return all;
}

Result<std::string> known_sql(std::string_view name) {
  const std::string_view sql = sql_of(name);
  if (sql.empty()) return Error{ErrorCode::kInternal, "no analysis named " + std::string(name), ""};
  return std::string(sql);
}

}  // namespace

std::vector<std::string_view> question_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, sql] : all_questions()) names.push_back(name);
  return names;
}

std::string_view sql_of(std::string_view name) {
  const auto found = all_questions().find(name);
  return found == all_questions().end() ? std::string_view() : found->second;
}

Result<trace::ResultTable> ask(const trace::Run& run, std::string_view name) {
  LLMPROF_LET(const std::string sql, known_sql(name));
  return run.query(sql);
}

Result<trace::Columns> ask_columns(const trace::Run& run, std::string_view name) {
  LLMPROF_LET(const std::string sql, known_sql(name));
  return run.columns(sql);
}

}  // namespace llmprof::analyze
