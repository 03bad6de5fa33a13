#include "analyze/ranges.h"

#include <functional>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

Result<std::vector<RangeNode>> range_tree(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/range_tree"));
  std::map<std::int64_t, std::vector<std::size_t>> inside;  // rows by the row around them; they come in order
  for (std::size_t i = 0; i < table.rows.size(); ++i) inside[RowView{table, i}.integer("parent_id")].push_back(i);
  std::vector<RangeNode> out;
  const std::function<void(std::int64_t, int)> add = [&](std::int64_t parent, int depth) {
    for (const std::size_t i : inside[parent]) {
      const RowView row{table, i};
      out.push_back({.name = row.text("name"),
                     .kind = row.text("kind"),
                     .stage = row.text("stage"),
                     .depth = depth,
                     .ranges = row.integer("ranges"),
                     .total_ns = row.integer("total_ns"),
                     .self_ns = row.integer("self_ns"),
                     .kernel_ns = row.integer("kernel_ns")});
      add(row.integer("id"), depth + 1);
    }
  };
  add(0, 0);
  return out;
}

Result<std::vector<NameMeaning>> name_meanings(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/range_meanings"));
  std::vector<NameMeaning> out;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.name = row.text("name"),
                   .domain = row.text("domain"),
                   .kind = row.text("kind"),
                   .stage = row.text("stage"),
                   .why = row.text("why"),
                   .ranges = row.integer("ranges"),
                   .total_ns = row.integer("total_ns")});
  }
  return out;
}

}  // namespace llmprof::analyze
