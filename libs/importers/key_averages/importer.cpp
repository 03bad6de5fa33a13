// The table that torch.profiler prints: totals per operator and kernel, a run of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/numbers.h"
#include "base/strings.h"
#include "base/text_table.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/key_averages/table.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace {

constexpr std::string_view kHint = "print it with prof.key_averages().table() and keep the whole text";

// torch joins the cells of a line with two spaces; no cell but the name has two in a row inside.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (!line.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t end = std::min(line.find("  "), line.size());
    if (end > 0) cells.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  if (!cells.empty() && cells.back().ends_with(' ')) cells.back().remove_suffix(1);
  return cells;
}

std::optional<double> number(std::string_view text, std::string_view& rest) {
  const auto value = base::leading_number<double>(text, rest);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// "220.802ms" in ns.
std::optional<double> time_of(std::string_view text) {
  std::string_view unit;
  const std::optional<double> value = number(text, unit);
  if (!value || *value < 0 || *value > 1e12) return std::nullopt;
  if (unit == "s") return *value * 1e9;
  if (unit == "ms") return *value * 1e6;
  if (unit == "us") return *value * 1e3;
  if (unit == "ns") return *value;
  return std::nullopt;
}

std::optional<std::int64_t> count_of(std::string_view text) {
  const auto value = base::parse_number<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// "-15.85 MB" in bytes; torch's units are powers of 1024, also where it writes Kb.
std::optional<double> bytes_of(std::string_view text) {
  std::string_view unit;
  const std::optional<double> value = number(text, unit);
  if (!value || std::fabs(*value) > 1e15) return std::nullopt;
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {" b", 1}, {" kb", 1024.0}, {" mb", 1048576.0}, {" gb", 1073741824.0}, {" tb", 1099511627776.0}};
  for (const auto& [name, factor] : kUnits) {
    if (base::lowercase(unit) == name) return *value * factor;
  }
  return std::nullopt;
}

// "134217.728" in the unit of the column; "--" where torch counts none.
std::optional<double> flops_of(std::string_view text, double factor) {
  std::string_view rest;
  const std::optional<double> value = number(text, rest);
  if (!value || !rest.empty() || *value < 0) return std::nullopt;
  return *value * factor;
}

// "Total GFLOPs" -> 1e9
std::optional<double> flops_factor(std::string_view title) {
  static constexpr std::pair<std::string_view, double> kTitles[] = {{"Total FLOPs", 1.0},   {"Total KFLOPs", 1e3},
                                                                    {"Total MFLOPs", 1e6},  {"Total GFLOPs", 1e9},
                                                                    {"Total TFLOPs", 1e12}, {"Total PFLOPs", 1e15}};
  for (const auto& [name, factor] : kTitles) {
    if (title == name) return factor;
  }
  return std::nullopt;
}

// Where the columns that matter stand, counted from the end of a line: names may hold anything, also two spaces.
struct Layout {
  enum class Kind { kTime, kBytes };
  struct Cell {
    std::size_t from_end;
    Kind kind;
    std::optional<double> MeasuredRow::*into;
  };
  std::size_t columns = 0;
  std::optional<std::size_t> calls, shapes, flops;
  double flops_factor = 1;
  bool stacks = false;  // a column "Source Location", which goes on in the lines below
  std::vector<Cell> cells;
};

class Parser {
 public:
  Parser(std::string_view where, const BadLine& bad_line) : where_(where), bad_line_(bad_line) {}

  Result<MeasuredTable> parse(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      if (const Result<void> taken = take(line); !taken) {
        if (!bad_line_ || !seen_header_) return taken.error();
        bad_line_(line_, taken.error().message);
      }
      begin = end + 1;
    }
    if (!seen_header_)
      return reject("has no table of torch.profiler: no line begins with \"Name\" and names \"# of Calls\"");
    if (table_.rows.empty()) return reject("has a table of torch.profiler without rows");
    return std::move(table_);
  }

 private:
  Error reject(const std::string& what) const {
    const std::string place = where_.empty() ? "line 1" : std::string(where_);
    return {ErrorCode::kCorruptInput, fmt::format("{}: {}", place, what), std::string(kHint)};
  }
  Error reject_line(const std::string& what) const {
    const std::string place = where_.empty() ? fmt::format("line {}", line_) : fmt::format("{}:{}", where_, line_);
    return {ErrorCode::kCorruptInput, fmt::format("{}: {}", place, what), std::string(kHint)};
  }

  Result<void> take(std::string_view line) {
    const std::vector<std::string_view> cells = cells_of(line);
    if (cells.empty()) return {};
    if (cells.front().find_first_not_of('-') == std::string_view::npos) {
      // A row of dashes stands above the header, below it, and below the table.
      if (layout_.columns > 0 && !table_.rows.empty()) layout_.columns = 0;
      return {};
    }
    if (line.starts_with("Self ") && base::contains(line, " time total: ")) return take_total(line);
    if (cells.front() == "Name" && !seen_header_) return take_header(cells);
    if (cells.front() == "Name" && layout_.columns == 0 && cells.back() != "Name") ++table_.further_tables;
    if (layout_.columns == 0) return {};
    return take_row(cells);
  }

  Result<void> take_header(const std::vector<std::string_view>& cells) {
    layout_.columns = cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) take_title(cells[i], cells.size() - i);
    if (!layout_.calls) return reject_line("the table has no column \"# of Calls\"");
    seen_header_ = true;
    return {};
  }

  void take_title(std::string_view title, std::size_t from_end) {
    using Kind = Layout::Kind;
    const bool self = title.starts_with("Self "), percent = title.ends_with('%');
    if (title == "# of Calls") layout_.calls = from_end;
    if (title == "Input Shapes") layout_.shapes = from_end;
    if (title == "Source Location") layout_.stacks = true;
    if (const auto factor = flops_factor(title)) layout_.flops = from_end, layout_.flops_factor = *factor;
    if (percent || base::contains(title, "time avg")) return;
    const auto add = [&](Kind kind, std::optional<double> MeasuredRow::*into) {
      layout_.cells.push_back({from_end, kind, into});
    };
    const std::string_view what = self ? title.substr(5) : title;
    if (what.ends_with(" Mem")) {
      const bool cpu = what == "CPU Mem";
      add(Kind::kBytes, self ? (cpu ? &MeasuredRow::self_cpu_bytes : &MeasuredRow::self_device_bytes)
                             : (cpu ? &MeasuredRow::cpu_bytes : &MeasuredRow::device_bytes));
    } else if (title == "Self CPU") {
      add(Kind::kTime, &MeasuredRow::self_cpu_ns);
    } else if (title == "CPU total") {
      add(Kind::kTime, &MeasuredRow::cpu_ns);
    } else if (self && what.find(' ') == std::string_view::npos) {
      add(Kind::kTime, &MeasuredRow::self_device_ns);
      table_.device = base::printable(what.substr(0, 32));
    } else if (title.ends_with(" total")) {
      add(Kind::kTime, &MeasuredRow::device_ns);
    }
  }

  Result<void> take_row(const std::vector<std::string_view>& cells) {
    if (cells.size() < layout_.columns) {
      if (layout_.stacks && cells.size() == 1) return {};  // the stack of the row above goes on
      return reject_line(fmt::format("a row of {} cells in a table of {} columns", cells.size(), layout_.columns));
    }
    if (table_.rows.size() == kMaxMeasuredRows) return reject_line(fmt::format("more than {} rows", kMaxMeasuredRows));
    const std::string_view last_of_name = cells[cells.size() - layout_.columns];
    const char* const begin = cells.front().data();
    MeasuredRow row{.name =
                        base::printable(std::string_view(begin, last_of_name.data() + last_of_name.size() - begin))};
    const auto cell = [&](std::size_t from_end) { return cells[cells.size() - from_end]; };
    const std::optional<std::int64_t> calls = count_of(cell(*layout_.calls));
    if (!calls) return reject_line(fmt::format("'{}' is not a number of calls", base::printable(cell(*layout_.calls))));
    row.calls = *calls;
    for (const Layout::Cell& place : layout_.cells) {
      const std::string_view text = cell(place.from_end);
      const bool time = place.kind == Layout::Kind::kTime;
      row.*place.into = time ? time_of(text) : bytes_of(text);
      if (!(row.*place.into))
        return reject_line(
            fmt::format("'{}' is not a {}", base::printable(text.substr(0, 40)), time ? "time" : "size"));
    }
    if (layout_.flops) row.flops = flops_of(cell(*layout_.flops), layout_.flops_factor);
    if (layout_.shapes) row.shapes = base::printable(cell(*layout_.shapes));
    table_.rows.push_back(std::move(row));
    return {};
  }

  // "Self CPU time total: 14.759s"
  Result<void> take_total(std::string_view line) {
    const std::size_t at = line.find(" time total: ");
    const std::string_view what = line.substr(5, at - 5);
    std::string_view value = line.substr(at + 13);
    value = value.substr(0, value.find_last_not_of(' ') + 1);
    const std::optional<double> ns = time_of(value);
    if (!ns) return reject_line(fmt::format("'{}' is not a time", base::printable(value.substr(0, 40))));
    (what == "CPU" ? table_.cpu_total_ns : table_.device_total_ns) = ns;
    return {};
  }

  std::string_view where_;
  const BadLine& bad_line_;
  std::size_t line_ = 0;
  bool seen_header_ = false;
  Layout layout_;
  MeasuredTable table_;
};

}  // namespace

const MeasuredRow* MeasuredTable::find(std::string_view name) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const MeasuredRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

Result<MeasuredTable> parse_key_averages(std::string_view text, std::string_view where, const BadLine& bad_line) {
  return Parser(where, bad_line).parse(text);
}

namespace key_averages {
namespace {

int sniff(std::string_view head) {
  return base::contains(head, "# of Calls") && base::contains(head, "Self CPU") ? 85 : 0;
}

bool has_cpu_time(const MeasuredRow& row) { return row.cpu_ns.value_or(0) > 0 || row.self_cpu_ns.value_or(0) > 0; }

// A row with time of the device only is a kernel or a copy; a second row of a name that the host spent time in is what
// the device did under an annotation of that name, and counts the kernels again.
std::string_view kind_of(const MeasuredRow& row, const std::unordered_set<std::string_view>& of_host) {
  if (has_cpu_time(row)) return "operator";
  if (row.self_device_ns.value_or(0) <= 0) return "operator";
  return of_host.contains(row.name) ? "range" : "kernel";
}

void add_rows(const MeasuredTable& table, Sink& sink) {
  std::unordered_set<std::string_view> of_host;
  for (const MeasuredRow& row : table.rows) {
    if (has_cpu_time(row)) of_host.insert(row.name);
  }
  for (const MeasuredRow& row : table.rows) {
    trace::SummaryRow out{.id = sink.new_id(), .name = sink.name(row.name), .kind = sink.name(kind_of(row, of_host))};
    out.calls = row.calls;
    out.self_cpu_ns = row.self_cpu_ns, out.cpu_ns = row.cpu_ns;
    out.self_device_ns = row.self_device_ns, out.device_ns = row.device_ns;
    out.cpu_bytes = row.cpu_bytes, out.device_bytes = row.device_bytes;
    out.flops = row.flops;
    if (!row.shapes.empty()) out.shapes = sink.name(row.shapes);
    sink.add(out);
  }
  if (!table.cpu_total_ns && !table.device_total_ns) return;
  sink.add(trace::SummaryRow{.id = sink.new_id(),
                             .name = sink.name("all rows, also those that were not printed"),
                             .kind = sink.name("total"),
                             .self_cpu_ns = table.cpu_total_ns,
                             .self_device_ns = table.device_total_ns});
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string text, input.read_all(kMaxMeasuredBytes));
  const BadLine bad_line = [&](std::size_t line, const std::string&) {
    sink.lose(trace::Loss::kInputDamaged, 1, "rows of the table that could not be read", fmt::format("line {}", line));
  };
  LLMPROF_LET(const MeasuredTable table, parse_key_averages(text, "", bad_line));
  sink.lose(trace::Loss::kInputIgnored, table.further_tables, "further tables behind the first");
  sink.set_facts({.tool = "torch.profiler, printed table"});
  add_rows(table, sink);
  sink.note("key_averages",
            "A printed table: totals only, times rounded to four or five digits, long names shortened, and only as "
            "many rows as were printed.");
  return {};
}

}  // namespace
}  // namespace key_averages

extern const Importer kKeyAverages;
const Importer kKeyAverages{
    "key-averages", "PyTorch profiler, printed table", Role::kSummary, key_averages::sniff, key_averages::parse, false};

}  // namespace llmprof::importers
