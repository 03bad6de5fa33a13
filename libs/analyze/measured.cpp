#include "analyze/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text_table.h"

namespace llmprof::analyze {
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
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !std::isfinite(value)) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
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
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Where the columns that matter stand, counted from the end of a line: names may hold anything, also two spaces.
struct Layout {
  std::size_t columns = 0;
  std::optional<std::size_t> self_cpu, cpu, self_device, device, calls;
};

class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  Result<MeasuredTable> parse(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      LLMPROF_TRY(take(line));
      begin = end + 1;
    }
    if (!seen_header_)
      return reject("has no table of torch.profiler: no line begins with \"Name\" and names \"# of Calls\"");
    if (table_.rows.empty()) return reject("has a table of torch.profiler without rows");
    return std::move(table_);
  }

 private:
  Error reject(const std::string& what) const {
    return {ErrorCode::kCorruptInput, fmt::format("{}: {}", where_, what), std::string(kHint)};
  }
  Error reject_line(const std::string& what) const {
    return {ErrorCode::kCorruptInput, fmt::format("{}:{}: {}", where_, line_, what), std::string(kHint)};
  }

  Result<void> take(std::string_view line) {
    const std::vector<std::string_view> cells = cells_of(line);
    if (cells.empty()) return {};
    if (cells.front().find_first_not_of('-') == std::string_view::npos) {
      // A row of dashes stands above the header, below it, and below the table.
      if (layout_.columns > 0 && !table_.rows.empty()) layout_.columns = 0;
      return {};
    }
    if (line.starts_with("Self ") && line.find(" time total: ") != std::string_view::npos) return take_total(line);
    if (cells.front() == "Name" && !seen_header_) return take_header(cells);
    if (layout_.columns == 0) return {};
    return take_row(cells);
  }

  Result<void> take_header(const std::vector<std::string_view>& cells) {
    layout_.columns = cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view title = cells[i];
      const std::size_t from_end = cells.size() - i;
      if (title == "Self CPU") layout_.self_cpu = from_end;
      if (title == "CPU total") layout_.cpu = from_end;
      if (title == "# of Calls") layout_.calls = from_end;
      if (title.starts_with("Self ") && title.find_first_of(" %", 5) == std::string_view::npos && title != "Self CPU") {
        layout_.self_device = from_end;
        table_.device = base::printable(title.substr(5, 32));
      }
      if (title.ends_with(" total") && title != "CPU total") layout_.device = from_end;
    }
    if (!layout_.calls) return reject_line("the table has no column \"# of Calls\"");
    seen_header_ = true;
    return {};
  }

  Result<void> take_row(const std::vector<std::string_view>& cells) {
    if (cells.size() < layout_.columns) {
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
    const std::pair<std::optional<std::size_t>, std::optional<double>*> times[] = {
        {layout_.self_cpu, &row.self_cpu_ns},
        {layout_.cpu, &row.cpu_ns},
        {layout_.self_device, &row.self_device_ns},
        {layout_.device, &row.device_ns}};
    for (const auto& [place, into] : times) {
      if (!place) continue;
      *into = time_of(cell(*place));
      if (!*into) return reject_line(fmt::format("'{}' is not a time", base::printable(cell(*place).substr(0, 40))));
    }
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

Result<MeasuredTable> parse_key_averages(std::string_view text, std::string_view where) {
  return Parser(where).parse(text);
}

}  // namespace llmprof::analyze
