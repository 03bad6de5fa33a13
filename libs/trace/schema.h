#pragma once
// What a table of a run is: a description made once per row type (trace/tables.def), from which the Parquet writer,
// the reader's views, docs/format/run.md and the schema test are made.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace llmprof::trace {

// A string of the run's dictionary (trace/strings.h). 0 is NULL.
struct Name {
  std::uint32_t id = 0;
  friend bool operator==(Name, Name) = default;
};

enum class ColumnType : std::uint8_t { kInt64, kInt32, kDouble, kBool, kName };

struct Column {
  std::string_view name;
  ColumnType type = ColumnType::kInt64;
  bool nullable = false;           // the member is std::optional; kName is NULL when its id is 0
  std::string_view unit;           // "ns", "bytes", "" for ids, names and plain counts
  std::string_view meaning;        // one sentence
  std::size_t offset = 0;          // of the member in the row type
  std::size_t present_offset = 0;  // nullable: of the optional's engaged flag
};

enum class TableKind : std::uint8_t { kFact, kDerived };

struct Table {
  std::string_view name;
  TableKind kind = TableKind::kFact;
  std::string_view row;      // "one row is ..."
  std::string_view lane;     // column whose equal values stand together in a file; "" if none
  std::string_view sort_by;  // column that rows of a file (of a lane) are sorted by; "": in the order they were made
  std::size_t row_bytes = 0;
  std::vector<Column> columns;

  const Column* find(std::string_view column) const;
};

template <class T>
struct ColumnTraits;
template <>
struct ColumnTraits<std::int64_t> {
  static constexpr ColumnType kType = ColumnType::kInt64;
};
template <>
struct ColumnTraits<std::int32_t> {
  static constexpr ColumnType kType = ColumnType::kInt32;
};
template <>
struct ColumnTraits<double> {
  static constexpr ColumnType kType = ColumnType::kDouble;
};
template <>
struct ColumnTraits<bool> {
  static constexpr ColumnType kType = ColumnType::kBool;
};
template <>
struct ColumnTraits<Name> {
  static constexpr ColumnType kType = ColumnType::kName;
};

template <class Row, class Field>
Column column(Field Row::*member, std::string_view name, std::string_view unit, std::string_view meaning) {
  static const Row probe{};
  const auto* field = &(probe.*member);
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(field) - reinterpret_cast<const std::byte*>(&probe));
  if constexpr (requires { typename Field::value_type; }) {  // std::optional: the value first, then the flag
    using Inner = typename Field::value_type;
    static_assert(sizeof(Field) == 2 * sizeof(Inner) || sizeof(Field) == sizeof(Inner) + alignof(Inner));
    return {name, ColumnTraits<Inner>::kType, true, unit, meaning, offset, offset + sizeof(Inner)};
  } else {
    return {name, ColumnTraits<Field>::kType, std::is_same_v<Field, Name>, unit, meaning, offset, 0};
  }
}

// All tables, facts first. The description of one row type.
std::span<const Table* const> tables();
const Table* find_table(std::string_view name);
template <class Row>
const Table& table_of();  // specialised for every row type in rows.h

// The table reference of docs/format/run.md.
std::string table_reference();
// A page, its part between the tables markers renewed; unchanged if it has no markers.
std::string with_current_tables(std::string page);

}  // namespace llmprof::trace
