#include "analyze/questions.h"

#include <span>

#include "base/asset.h"

namespace llmprof::analyze {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

std::string_view header_value(std::string_view text, std::string_view key) {
  const std::size_t begin = text.find(key);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = text.substr(begin + key.size());
  return rest.substr(0, rest.find('\n'));
}

std::vector<Question> read_questions() {
  std::vector<Question> all;
  for (const base::Asset& asset : assets()) {
    if (!asset.path.ends_with(".sql")) continue;
    all.push_back({.name = asset.path.substr(0, asset.path.size() - 4),
                   .title = header_value(asset.bytes, "-- title: "),
                   .unit = header_value(asset.bytes, "-- unit: "),
                   .sql = asset.bytes});
  }
  return all;
}

const std::vector<Question>& all_questions() {
  static const std::vector<Question> all = read_questions();
  return all;
}

Result<std::string> text_of(std::string_view name) {
  const Question* question = find_question(name);
  if (question == nullptr) return Error{ErrorCode::kInternal, "no analysis named " + std::string(name), ""};
  return std::string(question->sql);
}

}  // namespace

std::vector<Question> questions() { return all_questions(); }

const Question* find_question(std::string_view name) {
  for (const Question& question : all_questions()) {
    if (question.name == name) return &question;
  }
  return nullptr;
}

Result<trace::ResultTable> ask(const trace::Run& run, std::string_view name) {
  LLMPROF_LET(const std::string sql, text_of(name));
  return run.query(sql);
}

Result<trace::Columns> ask_columns(const trace::Run& run, std::string_view name) {
  LLMPROF_LET(const std::string sql, text_of(name));
  return run.columns(sql);
}

}  // namespace llmprof::analyze
