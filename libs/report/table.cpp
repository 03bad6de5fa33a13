#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/sections.h"

namespace llmprof::report {
namespace {

using analyze::ColumnDescription;
using analyze::TableDescription;
using base::Align;
using base::Json;

const TableDescription& description_of(std::string_view path) {
  static const TableDescription kNothing;  // an empty object in a page is better than a crash
  const TableDescription* found = analyze::find_description(path);
  assert(found != nullptr && "nobody described this table");
  return found != nullptr ? *found : kNothing;
}

// "llmprof.diff.rows[]" of that document's own JSON: "rows[]".
std::string_view inside_document(std::string_view path) {
  constexpr std::string_view kSchema = "llmprof.";
  if (!path.starts_with(kSchema)) return path;
  const std::size_t end = path.find_first_of(".#", kSchema.size());
  return end == std::string_view::npos ? "" : path.substr(path[end] == '.' ? end + 1 : end);
}

// "mlp.gate_proj, mlp.up_proj" -> "mlp.gate_proj +1": the first used most time.
std::string first_and_more(const std::string& list) {
  const auto more = std::count(list.begin(), list.end(), ',');
  return more == 0 ? list : fmt::format("{} +{}", list.substr(0, list.find(',')), more);
}

std::string text_cell(std::string_view format, const std::string& text) {
  constexpr std::size_t kShortFile = 22, kShortName = 40;
  if (format == "kernel") return short_kernel_name(text);
  if (format == "first") return text.substr(0, text.find(','));
  if (format == "first_and_more") return first_and_more(text);
  if (format == "bound" && text == "unknown") return "-";
  if (format == "kind" && text == "python") return "py";
  if (format == "file") return base::shorten(text.substr(text.rfind('/') + 1), kShortFile);
  return format == "short" ? base::shorten(base::printable(text), kShortName) : text;
}

std::string described_number(std::string_view format, double number) {
  if (format == "ns") return base::human_ns(number);
  if (format == "s") return base::human_ns(std::min(number, 1e9) * 1e9);
  if (format == "bytes") return number < 0 ? "-" + base::human_bytes(-number) : base::human_bytes(number);
  if (format == "gain") return (number < 0 ? "-" : "+") + base::human_bytes(std::abs(number));
  if (format == "gain_ns") return (number < 0 ? "-" : "+") + base::human_ns(std::abs(number));
  if (format == "percent") return percent_cell(number);
  if (format == "amount") return base::human_count(number);
  if (format == "ratio") return fmt::format("{:.1f}", number);
  if (format == "ratio3") return fmt::format("{:.3f}", number);
  if (format == "times") return fmt::format("{:.2f}x", number);
  if (format == "share") return base::human_percent(number);
  if (format == "change") return fmt::format("{:+.1f} %", number * 100);
  if (format == "p") return number < 0.001 ? "<0.001" : fmt::format("{:.3f}", number);
  if (format == "grouped") return grouped(static_cast<std::int64_t>(number));
  if (format == "figure") return number != 0 && std::abs(number) < 0.995 ? fmt::format("{:.3g}", number) : base::three_digits(number);
  if (format == "digits") return number >= 9999.5 ? base::human_count(number) : base::three_digits(number);
  if (format == "whole" || format == "count" || format == "unknown") return fmt::format("{:.0f}", number);
  return base::three_digits(number);
}

// "12.3 ± 0.4": the error decides how many digits there are.
std::string with_error(double value, double error) {
  int decimals = 0;
  for (double step = 1; error < step && decimals < 6; step /= 10) ++decimals;
  return fmt::format("{:.{}f} ± {:.{}f}", value, decimals, error, decimals);
}

// Interpolated in a bucket, with its bounds.
std::string quantile_cell(const Json& quantile) {
  const auto seconds = [&](const char* key) { return described_number("s", quantile[key].get<double>()); };
  if (quantile["high_s"].is_null()) return fmt::format("over {}", seconds("low_s"));
  return fmt::format("{} ({} to {})", seconds("value_s"), seconds("low_s"), seconds("high_s"));
}

std::string unknown_cell(std::string_view format) {
  if (format == "stage") return "(none)";
  if (format == "stack") return "(no stack)";
  if (format == "ranges") return "(no range)";
  if (format == "unknown") return "unknown";
  if (format == "word") return "";
  return format.starts_with("first") || format == "file" ? "" : "-";
}

std::string cell(const ColumnDescription& column, const Json& row) {
  const auto direct = row.find(column.key);
  if (direct == row.end() && column.key.find('.') == std::string::npos) return "";
  const Json& value = direct == row.end() ? value_at(row, column.key) : *direct;
  if (value.is_null()) return unknown_cell(column.format);
  if (value.is_string()) return text_cell(column.format, value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_object() && column.format == "quantile") return quantile_cell(value);
  if (!value.is_number()) return "-";
  const auto number = value.get<double>();
  if (column.nonzero && number == 0) return "-";
  if (column.format == "rate") return base::human_rate(number, column.unit.c_str());
  if (column.format == "value") return with_unit(number, row["unit"].is_string() ? row["unit"].get<std::string>() : "");
  if (column.format == "gauge")
    return row["unit"] == "share" ? fmt::format("{:.1f} %", 100 * number) : fmt::format("{:.6g}", number);
  const auto beside = [&](const std::string& key) {
    const auto other = row.find(key);
    return other != row.end() && other->is_number() ? other->get<double>() : 0;
  };
  if (const double error = beside(column.error); error > 0) return with_error(number, error);
  return (beside(column.estimate) > 0 ? "~" : "") + described_number(column.format, number);
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_number() || value.is_boolean()) return base::to_line(value);
  return base::csv_text(value.is_string() ? value.get<std::string>() : base::to_line(value));
}

Json column_json(const ColumnDescription& column) {
  return {{"key", column.key},
          {"title", base::text_or_null(column.title)},
          {"format", column.format},
          {"unit", base::text_or_null(column.unit)},
          {"of", base::text_or_null(column.of)},
          {"estimate", base::text_or_null(column.estimate)},
          {"error", base::text_or_null(column.error)},
          {"if", base::text_or_null(column.only_if)},
          {"unless", base::text_or_null(column.unless)},
          {"nonzero", column.nonzero},
          {"meaning", column.meaning}};
}

// Without what is null, false or empty: most columns need few of their keys.
void drop_unset(Json& value) {
  for (auto member = value.begin(); member != value.end();) {
    if (member->is_structured()) drop_unset(*member);
    const bool unset = member->is_null() || *member == false || (member->is_structured() && member->empty());
    member = unset && value.is_object() ? value.erase(member) : std::next(member);
  }
}

Json described_row(const TableDescription& table, const Json& all) {
  if (!all.is_object()) return all;  // null: nothing is known
  Json out = Json::object();
  for (const ColumnDescription& column : table.columns) {
    if (column.terminal) continue;
    const auto found = all.find(column.key);
    if (found == all.end() && column.place.empty()) continue;
    const Json& value = column.place.empty() ? *found : value_at(all, column.place);
    const bool rows = column.format == "rows";
    if (rows || column.format == "object") {
      out[column.key] = described(table.path + "." + column.key + (rows ? "[]" : ""), value);
    } else {
      out[column.key] = column.format == "word" && value.is_null() ? Json("") : value;
    }
  }
  return out;
}

}  // namespace

const Json& value_at(const Json& object, std::string_view path) {
  static const Json nothing;
  path = path.substr(0, path.find_first_of("[#"));
  const Json* place = &object;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const auto found = place->find(std::string(path.substr(0, dot)));
    if (found == place->end()) return nothing;
    place = &*found;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return *place;
}

std::string text_at(const Json& object, std::string_view path) {
  const Json& value = value_at(object, path);
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : base::to_line(value);
}

bool is_text(const ColumnDescription& column) {
  static constexpr std::string_view kTexts[] = {"text",  "kernel", "first", "first_and_more", "file",  "stage",
                                                "bound", "kind",   "stack", "ranges",         "short", "word"};
  return column.left || std::ranges::find(kTexts, column.format) != std::end(kTexts);
}

Json described(std::string_view path, const Json& all) {
  const TableDescription& table = description_of(path);
  if (!all.is_array()) return described_row(table, all);
  Json out = Json::array();
  for (const Json& row : all) out.push_back(described_row(table, row));
  return out;
}

Json descriptions_json(const Json* report) {
  Json out = Json::object();
  for (const TableDescription& table : analyze::table_descriptions()) {
    if (table.path.starts_with("llmprof.")) continue;  // of another document
    if (report != nullptr && value_at(*report, table.path).empty()) continue;
    Json columns = Json::array();
    for (const ColumnDescription& column : table.columns) {
      if (!column.terminal) columns.push_back(column_json(column));
    }
    Json one = {{"title", base::text_or_null(table.title)},
                {"titles", table.titles},
                {"meaning", base::text_or_null(table.meaning)},
                {"rows", base::text_or_null(table.rows)},
                {"order", base::text_or_null(table.order)},
                {"columns", std::move(columns)},
                {"above", table.above},
                {"notes", table.notes}};
    if (report != nullptr) drop_unset(one);
    out[table.path] = std::move(one);
  }
  return out;
}

bool TableText::applies(const std::string& only_if, const std::string& unless) const {
  return (only_if.empty() || flags_.contains(only_if)) && (unless.empty() || !flags_.contains(unless));
}

// "of {coverage.gpu_ns}": the value where the JSON has it, as its own column says.
std::string TableText::filled(std::string_view text) const {
  std::string out;
  while (true) {
    const std::size_t open = text.find('{'), close = text.find('}', std::min(open, text.size()));
    out += text.substr(0, open);
    if (close == std::string_view::npos) return out;
    const std::string_view place = text.substr(open + 1, close - open - 1);
    const std::size_t dot = place.rfind('.');
    const ColumnDescription* column = description_of(place.substr(0, dot)).column(place.substr(dot + 1));
    assert(column != nullptr);
    out += cell(*column, value_at(report_, inside_document(place.substr(0, dot))));
    text.remove_prefix(close + 1);
  }
}

std::string TableText::title(std::string_view path) const {
  const TableDescription& table = description_of(path);
  for (const std::string& line : table.titles) {
    if (const auto text = if_applies(line)) return *text;
  }
  return filled(table.title);
}

std::string TableText::section(std::string_view path, const Style& style) const {
  const Json& all = value_at(report_, inside_document(path));
  if (!all.is_array() || all.empty()) return "";
  return style.heading(title(path)) + above(path) + rows(path, all) + notes(path);
}

std::string TableText::rows(std::string_view path, const Json& rows, std::size_t top, const Columns& before,
                            const Columns& behind) const {
  const TableDescription& table = description_of(path);
  std::vector<const ColumnDescription*> columns;
  std::vector<base::TextTable::Column> titles;
  const auto wide = [](const auto& all) { return std::ranges::any_of(all, &ColumnDescription::wide); };
  const bool any_wide = wide(table.columns) || wide(before) || wide(behind);
  for (const Columns* all : {&before, &table.columns, &behind}) {
    for (const ColumnDescription& column : *all) {
      if (column.title.empty() || !applies(column.only_if, column.unless)) continue;
      titles.push_back({column.title == "-" ? "" : filled(column.title), is_text(column) ? Align::kLeft : Align::kRight,
                        column.wide || (!any_wide && columns.empty()), column.optional});
      columns.push_back(&column);
    }
  }
  base::TextTable text(std::move(titles));
  std::size_t all = 0;
  Json sorted;
  if (!table.order.empty()) {
    sorted = rows;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const Json& a, const Json& b) { return a[table.order] > b[table.order]; });
  }
  for (const Json& row : table.order.empty() ? rows : sorted) {
    // What belongs to the row above (the products of an operator) is shown with it; what remains, always.
    if (!row.contains("below") && !row.contains("last")) ++all;
    if (all > top && !row.contains("last")) continue;
    std::vector<std::string> cells;
    for (const ColumnDescription* column : columns) cells.push_back(cell(*column, row));
    text.add(std::move(cells));
  }
  return text.render(width_, indent_) + (all > top ? fmt::format("  {} more{}; --top shows more.\n", all - top,
                                                                 table.rows.empty() ? "" : " " + table.rows)
                                                   : "");
}

std::optional<std::string> TableText::if_applies(std::string_view line) const {
  std::string only_if, unless;
  if (line.starts_with("(if ") || line.starts_with("(unless ")) {
    const std::size_t begin = line.find(' ') + 1, end = line.find(") ");
    (line.starts_with("(if ") ? only_if : unless) = line.substr(begin, end - begin);
    line.remove_prefix(end + 2);
  }
  return applies(only_if, unless) ? std::optional(filled(line)) : std::nullopt;
}

std::string TableText::lines(const std::vector<std::string>& all) const {
  std::string out;
  for (const std::string& line : all) out += wrapped(if_applies(line).value_or(""));
  return out;
}

std::string TableText::above(std::string_view path) const { return lines(description_of(path).above); }
std::string TableText::notes(std::string_view path) const { return lines(description_of(path).notes); }

std::string to_csv(const std::vector<std::string>& keys, const Json& rows) {
  std::string out;
  for (std::string key : keys) {
    std::ranges::replace(key, '.', '_');
    out += (out.empty() ? "" : ",") + base::csv_text(key);
  }
  out += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (const std::string& key : keys) line += (&key == &keys.front() ? "" : ",") + csv_cell(value_at(row, key));
    out += line + "\n";
  }
  return out;
}

std::string to_csv(std::string_view path, const Json& rows) {
  std::vector<std::string> keys;
  for (const ColumnDescription& column : description_of(path).columns) {
    if (!column.terminal) keys.push_back(column.key);
  }
  return to_csv(keys, rows);
}

}  // namespace llmprof::report
