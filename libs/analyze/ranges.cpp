#include "analyze/ranges.h"

#include <fmt/format.h>

#include <functional>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

std::string understood(std::string_view kind, std::string_view stage) {
  if (kind == "step") return fmt::format("step of {}", stage);
  if (kind == "stage") return fmt::format("container of {}", stage.empty() ? "steps" : stage);
  if (kind == "module") return stage.empty() ? "part" : fmt::format("part, in {}", stage);
  return stage.empty() ? "-" : fmt::format("-, in {}", stage);
}

}  // namespace

Result<std::vector<RangeNode>> range_tree(const trace::Run& run) {
  LLMPROF_LET(std::vector<RangeNode> rows, ask_rows<RangeNode>(run, "sql/range_tree"));
  std::map<std::int64_t, std::vector<std::size_t>> inside;  // rows by the row around them; they come in order
  for (std::size_t i = 0; i < rows.size(); ++i) inside[rows[i].parent_id].push_back(i);
  std::vector<RangeNode> out;
  const std::function<void(std::int64_t, int)> add = [&](std::int64_t parent, int depth) {
    for (const std::size_t i : inside[parent]) {
      RangeNode& node = out.emplace_back(std::move(rows[i]));
      node.depth = depth;
      node.label = std::string(2 * static_cast<std::size_t>(depth), ' ') + node.name;
      node.understood = understood(node.kind, node.stage);
      add(node.id, depth + 1);
    }
  };
  add(0, 0);
  return out;
}

Result<std::vector<NameMeaning>> name_meanings(const trace::Run& run) {
  LLMPROF_LET(std::vector<NameMeaning> out, ask_rows<NameMeaning>(run, "sql/range_meanings"));
  for (NameMeaning& meaning : out) meaning.understood = understood(meaning.kind, meaning.stage);
  return out;
}

}  // namespace llmprof::analyze
