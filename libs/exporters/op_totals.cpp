// Operators with their totals, as PyTorch's profiler adds them up: time on the host and on devices, with and without
// what an operator called, kernels as rows of their own. As CSV, and as the table that PyTorch prints.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/nesting.h"
#include "base/strings.h"
#include "exporters/output_file.h"
#include "exporters/selection.h"

namespace llmprof::exporters {
namespace {

// Times are over all calls; nullopt: not known, as in other tools' totals.
struct OpTotal {
  std::string name;
  std::string shapes;  // of its inputs; "" unknown, or not asked for
  std::string kind;    // "operator", "kernel" (copies too), or what another tool's totals are of
  std::int64_t calls = 0;
  std::optional<double> self_cpu_ns, cpu_ns;        // without, and with, the operators it called
  std::optional<double> self_device_ns, device_ns;  // of kernels and copies it launched itself; and of what it called
  std::optional<double> flops;                      // 2MNK of the products it did itself
};

struct OpTotals {
  std::vector<OpTotal> rows;  // most device time first, then most host time
  // "operators": of the framework; "ranges": annotations of the program, as it has none; "summary": another tool's
  // totals
  std::string source;
  double self_cpu_ns = 0, self_device_ns = 0;  // of all, also of what a tool did not print
};

using trace::Columns;

struct Execution {
  std::int64_t id = 0, begin = 0, end = 0;
  std::int64_t name = 0, shapes = 0;  // codes
  std::size_t parent = kNone;
  double child_cpu_ns = 0, self_device_ns = 0, device_ns = 0, flops = 0;
  static constexpr std::size_t kNone = SIZE_MAX;
};

// Operators of a thread, or the ranges where the program has none, by thread and begin: outer ones first.
std::string executions_sql(const Request& request, bool ranges) {
  if (!ranges) {
    return fmt::format(
        "SELECT id, thread_id, begin_ns, end_ns, name, shapes FROM ({}) ORDER BY thread_id, begin_ns, end_ns DESC",
        selected_rows("op", request.selection));
  }
  return fmt::format(
      "SELECT id, thread_id, begin_ns, end_ns, name, CAST(NULL AS VARCHAR) AS shapes FROM ({}) WHERE kind = 'push_pop' "
      "ORDER BY thread_id, begin_ns, end_ns DESC",
      selected_ranges(request.selection));
}

// What lies inside what, by time: operators of one thread nest.
void find_parents(std::vector<Execution>& all, const std::vector<std::int64_t>& thread) {
  base::Nesting<std::size_t> nesting;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && thread[i] != thread[i - 1]) nesting.clear();
    if (const auto* parent = nesting.around(all[i].begin, all[i].end)) {
      all[i].parent = parent->item;
      all[parent->item].child_cpu_ns += static_cast<double>(all[i].end - all[i].begin);
    }
    nesting.open(all[i].end, i);
  }
}

void add_up_device_time(std::vector<Execution>& all) {
  for (std::size_t i = all.size(); i-- > 0;) {  // children stand behind their parents
    all[i].device_ns += all[i].self_device_ns;
    if (all[i].parent != Execution::kNone) all[all[i].parent].device_ns += all[i].device_ns;
  }
}

// Device time, FLOPs and memory of each operator itself.
Result<void> add_own_work(const Request& request, bool ranges, std::vector<Execution>& all) {
  std::unordered_map<std::int64_t, std::size_t> place;
  for (std::size_t i = 0; i < all.size(); ++i) place.emplace(all[i].id, i);
  const char* key = ranges ? "range_id" : "op_id";
  LLMPROF_LET(
      const Columns kernels,
      request.run.columns(fmt::format(
          "SELECT k.{0}, CAST(sum(k.end_ns - k.begin_ns) AS BIGINT), CAST(sum(CASE WHEN g.kernel_id = k.id THEN "
          "2 * g.m * g.n * g.k * g.batch ELSE 0 END) AS BIGINT) FROM ({1}) AS k LEFT JOIN gemm AS g ON g.id = "
          "k.gemm_id WHERE k.{0} IS NOT NULL GROUP BY 1",
          key, selected_kernels(request.selection))));
  const auto add = [&](const Columns& work, bool products) {
    for (std::size_t row = 0; row < work.rows(); ++row) {
      const auto found = place.find(work.values[0][row]);
      if (found == place.end()) continue;
      all[found->second].self_device_ns += static_cast<double>(work.values[1][row]);
      if (products) all[found->second].flops += static_cast<double>(work.values[2][row]);
    }
  };
  add(kernels, true);
  if (ranges) return {};
  LLMPROF_LET(const Columns copies,
              request.run.columns(fmt::format(
                  "SELECT op_id, CAST(sum(end_ns - begin_ns) AS BIGINT) FROM ({}) WHERE op_id IS NOT NULL GROUP BY 1",
                  selected_rows("copy", request.selection))));
  add(copies, false);
  return {};
}

using Key = std::tuple<std::string, std::string, std::string>;

void add(std::map<Key, OpTotal>& totals, const OpTotal& one) {
  OpTotal& sum = totals[{one.kind, one.name, one.shapes}];
  if (sum.kind.empty()) sum.name = one.name, sum.shapes = one.shapes, sum.kind = one.kind;
  sum.calls += one.calls;
  for (const auto value :
       {&OpTotal::self_cpu_ns, &OpTotal::cpu_ns, &OpTotal::self_device_ns, &OpTotal::device_ns, &OpTotal::flops}) {
    if (one.*value) sum.*value = (sum.*value).value_or(0) + *(one.*value);
  }
}

Result<void> add_executions(const Request& request, bool ranges, bool by_shape, std::map<Key, OpTotal>& totals) {
  LLMPROF_LET(const Columns rows, request.run.columns(executions_sql(request, ranges)));
  std::vector<Execution> all(rows.rows());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].id = rows.values[0][i];
    all[i].begin = rows.values[2][i];
    all[i].end = rows.values[3][i];
    all[i].name = rows.values[4][i];
    all[i].shapes = rows.values[5][i];
  }
  if (!all.empty()) find_parents(all, rows.values[1]);
  LLMPROF_TRY(add_own_work(request, ranges, all));
  add_up_device_time(all);
  const auto text = [&](std::int64_t code) {
    return code > 0 ? rows.names[static_cast<std::size_t>(code)] : std::string();
  };
  for (const Execution& one : all) {
    const auto cpu_ns = static_cast<double>(one.end - one.begin);
    OpTotal total{.name = text(one.name),
                  .kind = "operator",
                  .calls = 1,
                  .self_cpu_ns = std::max(0.0, cpu_ns - one.child_cpu_ns),
                  .cpu_ns = cpu_ns,
                  .self_device_ns = one.self_device_ns,
                  .device_ns = one.device_ns};
    if (by_shape) total.shapes = text(one.shapes);
    if (one.flops > 0) total.flops = one.flops;
    add(totals, total);
  }
  return {};
}

// Kernels and copies are rows of their own, as in PyTorch's table.
Result<void> add_device_rows(const Request& request, std::map<Key, OpTotal>& totals) {
  LLMPROF_LET(const trace::ResultTable rows,
              request.run.query(fmt::format(
                  "SELECT name, count(*), CAST(sum(end_ns - begin_ns) AS BIGINT) FROM ({}) GROUP BY 1 UNION ALL "
                  "SELECT 'copy ' || coalesce(direction, 'unknown'), count(*), CAST(sum(end_ns - begin_ns) AS BIGINT) "
                  "FROM ({}) GROUP BY 1",
                  selected_kernels(request.selection), selected_rows("copy", request.selection))));
  for (const auto& row : rows.rows) {
    const double ns = row[2].as_double();
    add(totals, {.name = row[0].text,
                 .kind = "kernel",
                 .calls = row[1].as_int(),
                 .self_cpu_ns = 0,
                 .cpu_ns = 0,
                 .self_device_ns = ns,
                 .device_ns = ns});
  }
  return {};
}

// What the analysis tells kernels to be, where the program says nothing: its parts by the shapes of products.
Result<void> add_placed_work(const Request& request, std::map<Key, OpTotal>& totals) {
  LLMPROF_LET(
      const trace::ResultTable rows,
      request.run.query(fmt::format(
          "SELECT k.op, count(*), CAST(sum(k.end_ns - k.begin_ns) AS BIGINT) FROM ({}) AS k WHERE k.op IS NOT NULL "
          "GROUP BY 1",
          selected_kernels(request.selection))));
  for (const auto& row : rows.rows) {
    const double ns = row[2].as_double();
    add(totals,
        {.name = row[0].text, .kind = "operator", .calls = row[1].as_int(), .self_device_ns = ns, .device_ns = ns});
  }
  return {};
}

// Rows of kind total are not one of the others: they say what all of them come to, also those that were not printed.
Result<void> add_summary(const Request& request, bool by_shape, std::map<Key, OpTotal>& sums, OpTotals& totals) {
  LLMPROF_LET(const trace::ResultTable rows,
              request.run.query("SELECT name, shapes, calls, self_cpu_ns, cpu_ns, self_device_ns, device_ns, flops, "
                                "coalesce(kind, 'operator') FROM summary"));
  for (const auto& row : rows.rows) {
    const std::string& kind = row[8].text;
    if (kind == "total") {
      totals.self_cpu_ns += row[3].as_double();
      totals.self_device_ns += row[5].as_double();
      continue;
    }
    add(sums, {.name = row[0].text,
               .shapes = by_shape ? row[1].text : "",
               .kind = kind,
               .calls = row[2].as_int(),
               .self_cpu_ns = row[3].maybe_double(),
               .cpu_ns = row[4].maybe_double(),
               .self_device_ns = row[5].maybe_double(),
               .device_ns = row[6].maybe_double(),
               .flops = row[7].maybe_double()});
  }
  return {};
}

// What a reader should know of them; "" nothing.
std::string note_on(const OpTotals& totals) {
  if (totals.source == "ranges") return "the run has no framework operators: the rows are its annotated ranges";
  if (totals.source == "analysis")
    return "the run has no framework operators: the rows are those that the analysis finds by the shapes of products";
  if (totals.source == "summary") return "the run holds another tool's totals: what it does not tell is left empty";
  return "";
}

// By name, and by shapes too if asked.
Result<OpTotals> op_totals(const Request& request, bool by_shape) {
  OpTotals totals;
  std::map<Key, OpTotal> sums;
  LLMPROF_LET(const std::int64_t ops, count_rows(request.run, "op"));
  LLMPROF_LET(const std::int64_t ranges, count_rows(request.run, "\"range\""));
  LLMPROF_LET(const std::int64_t kernels, count_rows(request.run, "kernel_all"));
  LLMPROF_LET(const std::int64_t summaries, count_rows(request.run, "summary"));
  totals.source = ops > 0                         ? "operators"
                  : ranges > 0                    ? "ranges"
                  : kernels > 0 || summaries == 0 ? "analysis"
                                                  : "summary";
  if (totals.source == "summary") {
    LLMPROF_TRY(add_summary(request, by_shape, sums, totals));
  } else if (totals.source == "analysis") {
    LLMPROF_TRY(add_placed_work(request, sums));
    LLMPROF_TRY(add_device_rows(request, sums));
  } else {
    LLMPROF_TRY(add_executions(request, ops == 0, by_shape, sums));
    LLMPROF_TRY(add_device_rows(request, sums));
  }
  const bool told = totals.self_cpu_ns > 0 || totals.self_device_ns > 0;
  for (auto& [key, total] : sums) {
    if (!told) totals.self_cpu_ns += total.self_cpu_ns.value_or(0);
    // Operators repeat the time of their kernels.
    if (!told && total.kind == "kernel") totals.self_device_ns += total.self_device_ns.value_or(0);
    totals.rows.push_back(std::move(total));
  }
  const auto order = [](const OpTotal& row) { return std::pair(-row.device_ns.value_or(0), -row.cpu_ns.value_or(0)); };
  std::ranges::stable_sort(totals.rows, {}, order);
  return totals;
}

}  // namespace

// Operators with their times, a line per name and shapes. The first columns are those that scripts around PyTorch's
// key_averages() write; times are microseconds.
namespace ops_csv {
namespace {

constexpr const char* kHeader =
    "key,cuda_time_total_us,cpu_time_total_us,self_cuda_time_total_us,calls,input_shapes,self_cpu_time_total_us,flops,"
    "kind\n";

std::string us(const std::optional<double>& ns) { return ns ? fmt::format("{:.3f}", *ns / 1000) : ""; }

std::string line_of(const OpTotal& row) {
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", base::csv_text(row.name), us(row.device_ns), us(row.cpu_ns),
                     us(row.self_device_ns), row.calls, base::csv_text(row.shapes), us(row.self_cpu_ns),
                     row.flops ? fmt::format("{:.0f}", *row.flops) : "", base::csv_text(row.kind));
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const OpTotals totals, op_totals(request, true));
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  file.write(kHeader);
  for (const OpTotal& row : totals.rows) file.write(line_of(row));
  LLMPROF_TRY(file.finish());
  Written written{{request.output}, static_cast<std::int64_t>(totals.rows.size()), {}};
  if (std::string note = note_on(totals); !note.empty()) written.notes.push_back(std::move(note));
  return written;
}

}  // namespace
}  // namespace ops_csv

extern const Exporter kOpsCsv;
const Exporter kOpsCsv{"ops-csv", "operators with their times, CSV", ".csv", ops_csv::write, false, ".csv.gz"};

// The table that PyTorch's profiler prints, key_averages().table(): the same columns, units and totals.
namespace key_averages {
namespace {

constexpr std::size_t kNameWidth = 55, kWidth = 12;
constexpr std::size_t kMostRows = 10'000;
constexpr const char* kTitles[] = {"Self CPU %", "Self CPU",    "CPU total %", "CPU total",     "CPU time avg",
                                   "Self CUDA",  "Self CUDA %", "CUDA total",  "CUDA time avg", "# of Calls"};

std::string time_text(double ns) {
  if (ns >= 1e9) return fmt::format("{:.3f}s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:.3f}ms", ns / 1e6);
  return fmt::format("{:.3f}us", ns / 1e3);
}

std::string percent(double part, double whole) { return fmt::format("{:.2f}%", whole > 0 ? 100 * part / whole : 0); }

std::string fitted(std::string name) {
  for (char& c : name) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

std::string rule() {
  std::string line(kNameWidth, '-');
  for (std::size_t i = 0; i < std::size(kTitles); ++i)
    line += "  " + std::string(std::max(kWidth, std::string_view(kTitles[i]).size()), '-');
  return line + "  \n";
}

std::string line_of(const std::string& name, const std::vector<std::string>& cells) {
  std::string line = fmt::format("{:>{}}", name, kNameWidth);
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += fmt::format("  {:>{}}", cells[i], std::max(kWidth, std::string_view(kTitles[i]).size()));
  return line + "  \n";
}

// The table has no word for what is not known: it stands as 0, as PyTorch writes it.
std::string row_text(const OpTotal& row, const OpTotals& all) {
  const double self_cpu_ns = row.self_cpu_ns.value_or(0), cpu_ns = row.cpu_ns.value_or(0);
  const double self_device_ns = row.self_device_ns.value_or(0), device_ns = row.device_ns.value_or(0);
  const auto calls = static_cast<double>(std::max<std::int64_t>(row.calls, 1));
  return line_of(fitted(row.name), {percent(self_cpu_ns, all.self_cpu_ns), time_text(self_cpu_ns),
                                    percent(cpu_ns, all.self_cpu_ns), time_text(cpu_ns), time_text(cpu_ns / calls),
                                    time_text(self_device_ns), percent(self_device_ns, all.self_device_ns),
                                    time_text(device_ns), time_text(device_ns / calls), fmt::format("{}", row.calls)});
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const OpTotals totals, op_totals(request, false));
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  file.write(rule() + line_of("Name", {std::begin(kTitles), std::end(kTitles)}) + rule());
  Written written{{request.output}, 0, {}};
  for (const OpTotal& row : totals.rows) {
    if (static_cast<std::size_t>(written.records) == kMostRows) break;
    file.write(row_text(row, totals));
    ++written.records;
  }
  file.write(rule());
  file.write(fmt::format("Self CPU time total: {}\nSelf CUDA time total: {}\n", time_text(totals.self_cpu_ns),
                         time_text(totals.self_device_ns)));
  LLMPROF_TRY(file.finish());
  if (totals.rows.size() > kMostRows)
    written.notes.push_back(fmt::format("the first {} of {} rows", kMostRows, totals.rows.size()));
  if (std::string note = note_on(totals); !note.empty()) written.notes.push_back(std::move(note));
  return written;
}

}  // namespace
}  // namespace key_averages

extern const Exporter kKeyAverages;
const Exporter kKeyAverages{"key-averages", "the table that PyTorch's profiler prints", ".txt", key_averages::write};

}  // namespace llmprof::exporters
