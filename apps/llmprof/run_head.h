#pragma once
// What every JSON about a run says first: which run, how much of it there is, and what was lost.

#include "base/fields_json.h"
#include "base/result.h"
#include "trace/loss.h"
#include "trace/run.h"
#include "verb.h"

namespace llmprof::app {

inline std::int64_t rows_of(const trace::Run& run, std::string_view table) {
  std::int64_t rows = 0;
  for (const trace::TableFile& file : run.info().files) rows += file.table == table ? file.rows : 0;
  return rows;
}

inline base::Json run_json(const trace::Run& run) {
  const trace::RunInfo& info = run.info();
  return {{"path", run.folder()},
          {"created", info.created},
          {"source", info.source},
          {"clock", info.clock},
          {"format_version", info.format_version},
          {"recorded_by", info.llmprof_version}};
}

// A loss of the ledger and how often it happened: for trace::describe(), and as JSON by its fields.
inline trace::LossEntry loss_entry(trace::Loss loss, std::int64_t count, std::string_view detail = {}) {
  const trace::LossInfo& info = trace::info_of(loss);
  return {info.name, trace::name_of(info.severity), count, info.unit, info.meaning, info.remedy, detail};
}

inline Result<trace::ResultTable> losses_of(const trace::Run& run) {
  return run.query(
      "SELECT name, severity, sum(count)::BIGINT AS count, any_value(unit) AS unit, any_value(meaning) AS meaning, "
      "any_value(remedy) AS remedy, string_agg(DISTINCT detail, ', ' ORDER BY detail) AS detail FROM loss GROUP BY "
      "name, severity "
      "ORDER BY CASE severity WHEN 'data_loss' THEN 0 WHEN 'degraded' THEN 1 ELSE 2 END, name");
}

inline base::Json value_json(const trace::Value& value) {
  switch (value.type) {
    case trace::Value::Type::kNull:
      return nullptr;
    case trace::Value::Type::kInt:
      return value.integer;
    case trace::Value::Type::kBool:
      return value.integer != 0;
    case trace::Value::Type::kDouble:
      return value.real;  // NaN and infinity are written as null
    case trace::Value::Type::kText:
      return value.text;
  }
  return nullptr;
}

inline Result<base::Json> run_head(std::string_view schema, const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable losses, losses_of(run));
  base::Json head = json_head(schema);
  head["run"] = run_json(run);
  head["coverage"] = {{"processes", rows_of(run, "process")},
                      {"threads", rows_of(run, "thread")},
                      {"kernels", rows_of(run, "kernel")},
                      {"ranges", rows_of(run, "range")},
                      {"gemms", rows_of(run, "gemm")}};
  head["losses"] = base::Json::array();
  for (const auto& row : losses.rows) {
    base::Json loss;
    for (std::size_t i = 0; i < row.size(); ++i) loss[losses.columns[i]] = value_json(row[i]);
    head["losses"].push_back(std::move(loss));
  }
  return head;
}

}  // namespace llmprof::app
