#include "analyze/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/asset.h"

namespace llmprof::analyze {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

std::string_view stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Up to the separator, which is taken off with it.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// "amount FLOP/s ~estimated_ns of coverage.gpu_ns if gpu"
void read_format(std::string_view text, ColumnDescription& column) {
  column.format = next_part(text, ' ');
  while (!text.empty()) {
    const std::string_view word = next_part(text, ' ');
    if (word.starts_with('~')) {
      column.estimate = word.substr(1);
    } else if (word.starts_with("±")) {
      column.error = word.substr(std::string_view("±").size());
    } else if (word.starts_with('=')) {
      column.place = word.substr(1);
    } else if (word == "wide" || word == "nonzero" || word == "terminal" || word == "left" || word == "optional") {
      (word == "wide"       ? column.wide
       : word == "nonzero"  ? column.nonzero
       : word == "left"     ? column.left
       : word == "optional" ? column.optional
                            : column.terminal) = true;
    } else if (word == "of" || word == "if" || word == "unless") {
      (word == "of" ? column.of : word == "if" ? column.only_if : column.unless) = next_part(text, ' ');
    } else if (!word.empty()) {
      column.unit += (column.unit.empty() ? "" : " ") + std::string(word);
    }
  }
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Result<std::vector<TableDescription>> read(std::string_view markdown) {
    bool in_sql = false;
    while (!markdown.empty()) {
      const std::string_view line = next_part(markdown, '\n');
      if (!in_sql && line.starts_with("## ")) {
        begin_table(line.substr(3));
      } else if (tables_.empty()) {
        continue;  // the title of the file
      } else if (line.starts_with("```")) {
        in_sql = !in_sql;
      } else if (!in_sql) {
        LLMPROF_TRY(read_line(line));
      }
    }
    return std::move(tables_);
  }

 private:
  Error wrong(std::string_view line, std::string_view what) const {
    return {ErrorCode::kInternal, fmt::format("{}: {}: {}", file_, what, line), ""};
  }

  const TableDescription* find(std::string_view path) const {
    const auto found = std::ranges::find(tables_, path, &TableDescription::path);
    return found == tables_.end() ? nullptr : &*found;
  }

  void begin_table(std::string_view heading) {
    const std::string_view path = next_part(heading, ':');
    tables_.push_back({.path = std::string(stripped(path)), .title = std::string(stripped(heading))});
  }

  Result<void> read_line(std::string_view line) {
    TableDescription& table = tables_.back();
    const auto is = [&](std::string_view begin) {
      if (!line.starts_with(begin)) return false;
      line.remove_prefix(begin.size());
      return true;
    };
    if (line.starts_with('|')) return read_column(line);
    if (is("- columns of: ")) {
      const TableDescription* other = find(stripped(line));
      if (other == nullptr) return wrong(line, "no such table");
      const std::vector<ColumnDescription> columns = other->columns;
      table.columns.insert(table.columns.end(), columns.begin(), columns.end());
    } else if (is("- title: ")) {
      table.titles.emplace_back(line);
    } else if (is("- above: ")) {
      table.above.emplace_back(line);
    } else if (is("- note: ")) {
      table.notes.emplace_back(line);
    } else if (is("- order: ")) {
      table.order = line;
    } else if (is("- rows: ")) {
      table.rows = line;
    } else if (!stripped(line).empty()) {
      table.meaning += (table.meaning.empty() ? "" : " ") + std::string(stripped(line));
    }
    return {};
  }

  // "| time_ns | time | ns | Durations, added up. |"; of a view "| time_ns | time |", the rest as in the table it
  // shows.
  Result<void> read_column(std::string_view line) {
    TableDescription& table = tables_.back();
    std::string_view rest = line.substr(1);
    const std::string_view key = stripped(next_part(rest, '|'));
    if (key == "key" || key.starts_with("--")) return {};
    ColumnDescription column{.key = std::string(key), .title = std::string(stripped(next_part(rest, '|')))};
    const std::string_view format = stripped(next_part(rest, '|'));
    column.meaning = stripped(next_part(rest, '|'));
    if (const std::size_t hash = table.path.find('#'); hash != std::string::npos) {
      const TableDescription* shown = find(std::string_view(table.path).substr(0, hash));
      const ColumnDescription* same = shown == nullptr ? nullptr : shown->column(key);
      if (const std::size_t dot = key.find('.'); same == nullptr && dot != std::string_view::npos) {
        const TableDescription* inside = find(fmt::format("{}.{}", table.path.substr(0, hash), key.substr(0, dot)));
        same = inside == nullptr ? nullptr : inside->column(key.substr(dot + 1));
      }
      if (same == nullptr) return wrong(line, "the table that is shown has no such column");
      const std::string title = column.title;
      column = *same;
      column.key = key, column.title = title;
      if (!format.empty()) read_format(column.format + " " + std::string(format), column);
    } else {
      read_format(format, column);
      if (column.format.empty() || column.meaning.empty()) return wrong(line, "a column needs a format and a meaning");
    }
    table.columns.push_back(std::move(column));
    return {};
  }

  std::string_view file_;
  std::vector<TableDescription> tables_;
};

}  // namespace

const ColumnDescription* TableDescription::column(std::string_view key) const {
  const auto found = std::ranges::find(columns, key, &ColumnDescription::key);
  return found == columns.end() ? nullptr : &*found;
}

Result<std::vector<TableDescription>> parse_descriptions(std::string_view markdown, std::string_view file) {
  return Reader(file).read(markdown);
}

const std::vector<TableDescription>& table_descriptions() {
  static const std::vector<TableDescription> all = [] {
    std::vector<TableDescription> out;
    for (const base::Asset& asset : assets()) {
      if (!asset.path.starts_with("tables/")) continue;
      auto tables = parse_descriptions(asset.bytes, asset.path);
      if (tables) out.insert(out.end(), tables->begin(), tables->end());  // tables_test.cpp reads every file
    }
    return out;
  }();
  return all;
}

const TableDescription* find_description(std::string_view path) {
  const auto& all = table_descriptions();
  const auto found = std::ranges::find(all, path, &TableDescription::path);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace llmprof::analyze
