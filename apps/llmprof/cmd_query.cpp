// llmprof query: one SELECT over a run, as a table, CSV, JSON or Parquet. The SQL can read the run and nothing else.

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "analyze/context.h"
#include "analyze/derive.h"
#include "base/file.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "given_names.h"
#include "record/open_run.h"
#include "report_verb.h"
#include "run_head.h"
#include "trace/schema.h"
#include "verb.h"

namespace llmprof::app {
namespace query_verb {
namespace {

using trace::Value;
using Row = std::vector<Value>;

constexpr Option kOptions[] = {
    {"--file", "-f", "", "FILE", "", "read the SQL from a file; - is standard input"},
    {"--csv", "", "", "", "", "print CSV with a header line (RFC 4180 quoting)"},
    {"--json", "", "", "", "", "print JSON: run, coverage, losses, columns, rows"},
    {"--parquet", "", "", "FILE", "", "write the result to a Parquet file"},
    {"--limit", "", "", "N", "", "at most N rows; tables on the terminal stop at 1000 if it is not given"},
    {"--memory", "", "LLMPROF_QUERY_MEMORY", "SIZE", "2GB", "memory the statement may use"},
    {"--tables", "", "", "", "",
     "list the tables of the run instead, or the columns of the one named in place of the SQL"},
};
constexpr Positional kPositionals[] = {{"RUN", false}, {"SQL", false}};

constexpr std::int64_t kTableRows = 1000;
constexpr std::uint64_t kMaxSqlBytes = 1u << 20;

Result<std::int64_t> row_limit(const Arguments& arguments) {
  if (arguments.get("--limit").empty()) return std::int64_t{-1};
  return number_in<std::int64_t>(arguments, "--limit", "a number of rows");
}

// SQL has a space in it; the name of a run that is not there seldom has.
Result<RunArgument> words_of(const Arguments& arguments) {
  return run_argument(arguments, [&](const std::string& word) {
    if (arguments.on("--tables")) return trace::find_table(word) != nullptr && !is_run(word);
    return !arguments.given("--file") && word.find_first_of(" \t\n") != std::string::npos && !is_run(word);
  });
}

Result<std::string> sql_text(const Arguments& arguments, const std::vector<std::string>& words) {
  const std::string file = arguments.get("--file");
  const bool typed = !words.empty();
  if (typed == !file.empty()) {
    return Error{ErrorCode::kUsage, typed ? "both SQL and --file are given" : "query needs SQL, or --file FILE",
                 "llmprof query RUN \"SELECT name, count(*) FROM kernel GROUP BY name\""};
  }
  if (typed) return words.front();
  if (file != "-") return base::read_file(file, kMaxSqlBytes);
  std::string sql;
  for (int c = std::getchar(); c != EOF && sql.size() < kMaxSqlBytes; c = std::getchar()) sql += static_cast<char>(c);
  return sql;
}

// Derived tables are computed when a statement names one.
Result<void> derive_if_named(const std::string& sql, trace::Run& run, const base::Progress& progress) {
  std::string names = "kernel_all|work|work_sum";
  for (const trace::Table* table : trace::tables()) {
    if (table->kind == trace::TableKind::kDerived) names += "|" + std::string(table->name);
  }
  if (!std::regex_search(sql, std::regex("\\b(" + names + ")\\b", std::regex::icase))) return {};
  LLMPROF_LET(const analyze::AnalysisContext analysis, analyze::find_context(run, {}));
  return analyze::ensure_derived(run, analysis, progress);
}

std::string cell_text(const Value& value) {
  switch (value.type) {
    case Value::Type::kNull:
      return "";
    case Value::Type::kInt:
      return fmt::format("{}", value.integer);
    case Value::Type::kBool:
      return value.integer != 0 ? "true" : "false";
    case Value::Type::kDouble:
      return fmt::format("{}", value.real);
    case Value::Type::kText:
      return value.text;
  }
  return "";
}

// Output in large pieces: a query may have millions of rows.
class Output {
 public:
  ~Output() { flush(); }
  Output& operator<<(std::string_view text) {
    text_ += text;
    if (text_.size() > (1u << 16)) flush();
    return *this;
  }

 private:
  void flush() {
    print(text_);
    text_.clear();
  }
  std::string text_;
};

// The rows a user wants to see: stops after `limit`, and knows whether there were more.
struct Limiter {
  std::int64_t limit;
  std::int64_t seen = 0;
  bool more = false;

  bool take() {
    more = limit >= 0 && seen >= limit;
    if (!more) ++seen;
    return !more;
  }
};

Result<void> print_csv(const trace::Run& run, const std::string& sql, Limiter& limiter) {
  Output out;
  const auto line = [&](const auto& cells, const auto& cell) {
    for (std::size_t i = 0; i < cells.size(); ++i) out << (i == 0 ? "" : ",") << cell(cells[i]);
    out << "\n";
  };
  return run.user_query_each(
      sql,
      [&](const std::vector<std::string>& names) {
        line(names, [](const std::string& name) { return base::csv_text(name); });
      },
      [&](const Row& row) {
        if (!limiter.take()) return false;
        line(row, [](const Value& value) {
          return value.type == Value::Type::kText ? base::csv_text(value.text) : base::csv_raw(cell_text(value));
        });
        return true;
      });
}

// Keys of an object must differ; the second "n" becomes "n_2".
std::vector<std::string> unique_names(const std::vector<std::string>& names) {
  std::vector<std::string> unique;
  for (const std::string& name : names) {
    std::string candidate = name;
    for (int i = 2; std::ranges::find(unique, candidate) != unique.end(); ++i)
      candidate = fmt::format("{}_{}", name, i);
    unique.push_back(std::move(candidate));
  }
  return unique;
}

Result<void> print_json(const trace::Run& run, const std::string& sql, Limiter& limiter) {
  LLMPROF_LET(base::Json head, run_head("llmprof.query", run));
  Output out;
  std::vector<std::string> keys;
  LLMPROF_TRY(run.user_query_each(
      sql,
      [&](const std::vector<std::string>& names) {
        head["columns"] = keys = unique_names(names);
        std::string text = base::to_text(head);
        text.resize(text.rfind("\n}"));  // the object stays open for the rows
        out << text << ",\n  \"rows\": [";
      },
      [&](const Row& row) {
        if (!limiter.take()) return false;
        base::Json object = base::Json::object();
        for (std::size_t i = 0; i < row.size(); ++i) object[keys[i]] = value_json(row[i]);
        out << (limiter.seen == 1 ? "\n    " : ",\n    ") << base::to_line(object);
        return true;
      }));
  out << (limiter.seen == 0 ? "" : "\n  ") << "],\n  \"truncated\": " << (limiter.more ? "true" : "false") << "\n}\n";
  return {};
}

constexpr std::size_t kUnlimited = 100'000;  // a file or a pipe gets everything

Result<void> print_table(const trace::Run& run, const std::string& sql, Limiter& limiter) {
  std::vector<std::string> names;
  std::vector<Row> rows;
  LLMPROF_TRY(run.user_query_each(
      sql, [&](const std::vector<std::string>& columns) { names = columns; },
      [&](const Row& row) {
        if (!limiter.take()) return false;
        rows.push_back(row);
        return true;
      }));
  std::vector<base::TextTable::Column> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool text = std::ranges::any_of(rows, [&](const Row& row) { return row[i].type == Value::Type::kText; });
    columns.push_back({base::printable(names[i]), text ? base::Align::kLeft : base::Align::kRight, text});
  }
  base::TextTable table(columns);
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const Value& value : row) cells.push_back(value.is_null() ? "NULL" : cell_text(value));
    table.add(std::move(cells));
  }
  print(table.render(output_width(kUnlimited), 0));
  return {};
}

Result<void> print_columns(const std::string& name) {
  const trace::Table* table = trace::find_table(name);
  if (table == nullptr) {
    std::vector<std::string_view> known;
    for (const trace::Table* each : trace::tables()) known.push_back(each->name);
    return Error{ErrorCode::kUsage, fmt::format("there is no table {}", name),
                 base::did_you_mean(name, known) + "llmprof query RUN --tables lists them"};
  }
  base::TextTable out(
      {{"column", base::Align::kLeft}, {"unit", base::Align::kLeft}, {"meaning", base::Align::kLeft, true}});
  for (const trace::Column& column : table->columns)
    out.add({std::string(column.name), std::string(column.unit), std::string(column.meaning)});
  print(fmt::format("{}: one row is {}\n\n{}", table->name, table->row, out.render(output_width(kUnlimited), 0)));
  return {};
}

void print_tables(const trace::Run& run) {
  base::TextTable out({{"table", base::Align::kLeft}, {"rows"}, {"one row is", base::Align::kLeft, true}});
  for (const trace::Table* table : trace::tables()) {
    const bool derived = table->kind == trace::TableKind::kDerived;
    out.add({std::string(table->name), derived ? "(derived)" : fmt::format("{}", rows_of(run, table->name)),
             std::string(table->row)});
  }
  out.add({"kernel_all", "(derived)", "a kernel or an estimate, with its source and confidence"});
  out.add(
      {"work", "(derived)", "kernels with where they belong, for sums: estimates added up per stage and graph node"});
  out.add(
      {"counted_kernel", "(view)", "a launch of a kernel that counters were read of, with its time and its source"});
  out.add({"process_life", "(view)", "a process image from exec to exit, with when its collector began and ended"});
  print(out.render(output_width(kUnlimited), 0));
}

Result<void> write_parquet(const trace::Run& run, const std::string& sql, const std::string& file, std::int64_t limit) {
  const std::string limited = limit < 0 ? sql
                                        : fmt::format("SELECT * FROM ({}\n) LIMIT {}",
                                                      sql.substr(0, sql.find_last_not_of("; \t\r\n") + 1), limit);
  LLMPROF_LET(const std::int64_t rows, run.user_query_to_parquet(limited, file));
  fmt::print(stderr, "{} rows, {}: {}\n", rows, base::human_bytes(static_cast<double>(base::file_bytes(file))),
             base::printable(file));
  return {};
}

Result<void> show(const Arguments& arguments, const trace::Run& run, const std::string& sql) {
  LLMPROF_LET(std::int64_t limit, row_limit(arguments));
  const std::string parquet = arguments.get("--parquet");
  if (static_cast<int>(arguments.on("--csv")) + static_cast<int>(arguments.on("--json")) +
          static_cast<int>(!parquet.empty()) >
      1) {
    return Error{ErrorCode::kUsage, "--csv, --json and --parquet exclude each other", ""};
  }
  if (!parquet.empty()) return write_parquet(run, sql, parquet, limit);
  Limiter limiter{limit};
  if (arguments.on("--csv")) return print_csv(run, sql, limiter);
  if (arguments.on("--json")) return print_json(run, sql, limiter);
  if (limit < 0) limiter.limit = kTableRows;
  LLMPROF_TRY(print_table(run, sql, limiter));
  if (limiter.more && limit < 0) fmt::print(stderr, "the first {} rows; --limit N shows more, --csv all\n", kTableRows);
  return {};
}

Result<int> run(const Arguments& arguments) {
  const base::Progress progress = progress_line();
  if (const std::string parquet = arguments.get("--parquet"); !parquet.empty())
    LLMPROF_TRY(check_ending("--parquet", parquet, {".parquet"}));
  LLMPROF_LET(const RunArgument given, words_of(arguments));
  if (arguments.on("--tables") && !given.rest.empty()) {
    LLMPROF_TRY(print_columns(given.rest.front()));
    return 0;
  }
  LLMPROF_LET(const std::string sql,
              arguments.on("--tables") ? Result<std::string>("") : sql_text(arguments, given.rest));
  LLMPROF_LET(trace::Run run, record::open_run(given.run, progress));
  if (arguments.on("--tables")) {
    print_tables(run);
    return 0;
  }
  LLMPROF_TRY(derive_if_named(sql, run, progress));
  run.limit_user_memory(arguments.get("--memory"));
  LLMPROF_TRY(show(arguments, run, sql));
  return 0;
}

}  // namespace
}  // namespace query_verb

extern const Verb kQuery;
const Verb kQuery{"query", "query a run with SQL", query_verb::kOptions, query_verb::kPositionals,
                  false,   query_verb::run};

}  // namespace llmprof::app
