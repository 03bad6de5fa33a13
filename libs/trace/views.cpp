#include "trace/views.h"

#include <fmt/format.h>

namespace llmprof::trace {
namespace {

std::string column_list(const Table& table, const std::set<std::string, std::less<>>* present) {
  std::string list;
  for (const Column& column : table.columns) {
    if (!list.empty()) list += ", ";
    list += present != nullptr && present->contains(column.name)
                ? sql_identifier(column.name)
                : fmt::format("CAST(NULL AS {}) AS {}", sql_type(column), sql_identifier(column.name));
  }
  return list;
}

std::string view_of(const Table& table, const std::vector<OpenFile>& files, const ColumnsOfTables& columns) {
  std::string paths;
  for (const OpenFile& file : files) {
    if (file.listed.table == table.name) paths += (paths.empty() ? "" : ", ") + sql_literal(file.path);
  }
  const auto present = columns.find(table.name);
  const std::string list = column_list(table, present != columns.end() ? &present->second : nullptr);
  return fmt::format("CREATE OR REPLACE VIEW {} AS SELECT {} {}", sql_identifier(table.name), list,
                     paths.empty() ? "WHERE false" : fmt::format("FROM read_parquet([{}])", paths));
}

// An estimate knows its graph launch and node; the rest of a kernel's columns comes from there or stays NULL.
constexpr const char* kKernelAll = R"(
CREATE OR REPLACE VIEW kernel_all AS
SELECT *, 'measured' AS source, CAST(1 AS DOUBLE) AS confidence FROM kernel
UNION ALL BY NAME
SELECT e.id, e.begin_ns, e.end_ns, n.name, l.device_id, l.stream, l.thread_id, l.launch_begin_ns, l.launch_end_ns,
       e.graph_launch_id, e.graph_node_id, 'estimated' AS source, e.confidence
FROM estimate AS e
LEFT JOIN graph_launch AS l ON l.id = e.graph_launch_id
LEFT JOIN graph_node AS n ON n.id = e.graph_node_id)";

}  // namespace

std::vector<std::string> view_statements(const std::vector<OpenFile>& files, const ColumnsOfTables& columns) {
  std::vector<std::string> statements;
  for (const Table* table : tables()) statements.push_back(view_of(*table, files, columns));
  statements.emplace_back(kKernelAll);
  return statements;
}

}  // namespace llmprof::trace
