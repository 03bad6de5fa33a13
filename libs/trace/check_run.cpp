// check_run: everything about a run that can be verified without knowing what was recorded.
#include <fmt/format.h>

#include <string>

#include "trace/database.h"
#include "trace/run.h"
#include "trace/schema.h"
#include "trace/table_files.h"

namespace llmprof::trace {
namespace {

using Findings = std::vector<CheckFinding>;

// Adds a finding when the number that `sql` gives is not 0; `what` has a place for it.
Result<void> expect_none(const Run& run, const std::string& sql, CheckFinding finding, Findings& findings) {
  LLMPROF_LET(const ResultTable table, run.query(sql));
  const std::int64_t count = table.rows[0][0].as_int();
  if (count == 0) return {};
  finding.what = fmt::format("{} {}", count, finding.what);
  findings.push_back(std::move(finding));
  return {};
}

std::string from(const Table& table) { return "FROM " + sql_identifier(table.name); }

Result<void> check_files(const Run& run, Findings& findings) {
  for (const TableFile& file : run.info().files) {
    if (const auto intact = check_table_file(run.folder(), file); !intact) {
      findings.push_back({file.file, intact.error().message, true});
    }
  }
  return {};
}

Result<void> check_rows(const Run& run, const Table& table, Findings& findings) {
  std::int64_t listed = 0;
  for (const TableFile& file : run.info().files) listed += file.table == table.name ? file.rows : 0;
  return expect_none(
      run, fmt::format("SELECT abs(count(*) - {}) {}", listed, from(table)),
      {std::string(table.name), fmt::format("rows more or less than the {} that run.json lists", listed), true},
      findings);
}

Result<void> check_values(const Run& run, const Table& table, Findings& findings) {
  const std::string name(table.name);
  for (const Column& column : table.columns) {
    if (column.nullable) continue;
    LLMPROF_TRY(expect_none(run,
                            fmt::format("SELECT count(*) - count({}) {}", sql_identifier(column.name), from(table)),
                            {name, fmt::format("rows have no {}", column.name), true}, findings));
  }
  if (table.find("id") != nullptr) {
    LLMPROF_TRY(expect_none(run, "SELECT count(id) - count(DISTINCT id) " + from(table),
                            {name, "ids are there twice", true}, findings));
  }
  for (const std::string prefix : {"", "launch_"}) {
    if (table.find(prefix + "begin_ns") == nullptr || table.find(prefix + "end_ns") == nullptr) continue;
    LLMPROF_TRY(expect_none(run, fmt::format("SELECT count(*) {0} WHERE {1}end_ns < {1}begin_ns", from(table), prefix),
                            {name, fmt::format("rows have {0}end_ns before {0}begin_ns", prefix), true}, findings));
  }
  return {};
}

// What an id column points to; an empty table if that depends on another column.
struct Target {
  std::string_view table, column;
};
Target target_of(const Table& table, const Column& column) {
  if (!column.name.ends_with("_id")) return {};
  if (column.name == "parent_id") return {table.name, "id"};
  if (column.name == "stack_id") return {"stack", "stack_id"};
  if (column.name == "pass_id") return {"model_op", "pass_id"};
  const std::string_view name = column.name.substr(0, column.name.size() - 3);
  return find_table(name) != nullptr ? Target{name, "id"} : Target{};
}

Result<void> check_keys(const Run& run, const Table& table, Findings& findings) {
  for (const Column& column : table.columns) {
    const Target target = target_of(table, column);
    if (target.table.empty() || target.table == table.name) {
      if (column.name != "parent_id") continue;
    }
    const std::string sql =
        fmt::format("SELECT count(*) {} AS a ANTI JOIN {} AS b ON a.{} = b.{} WHERE a.{} <> 0", from(table),
                    sql_identifier(target.table), column.name, target.column, column.name);  // 0: not known
    LLMPROF_TRY(expect_none(
        run, sql,
        {std::string(table.name), fmt::format("rows have a {} that is no {}", column.name, target.table), false},
        findings));
  }
  return {};
}

}  // namespace

Result<std::vector<CheckFinding>> check_run(const Run& run) {
  Findings findings;
  LLMPROF_TRY(check_files(run, findings));
  if (!findings.empty()) return findings;  // reading damaged files any further proves nothing
  for (const Table* table : tables()) {
    if (table->kind == TableKind::kFact) LLMPROF_TRY(check_rows(run, *table, findings));
    LLMPROF_TRY(check_values(run, *table, findings));
    LLMPROF_TRY(check_keys(run, *table, findings));
  }
  return findings;
}

}  // namespace llmprof::trace
