#pragma once
// One struct per table, made from trace/tables.def; a member is a column. Adding a line there is a compatible change;
// renaming or removing one raises kRunFormatVersion (trace/run_info.h).

#include <cstdint>
#include <optional>

#include "trace/schema.h"

namespace llmprof::trace {

using Id = std::int64_t;
using Int = std::int64_t;
using Int32 = std::int32_t;
using Double = double;
using OptionalId = std::optional<std::int64_t>;
using OptionalInt = std::optional<std::int64_t>;
using OptionalInt32 = std::optional<std::int32_t>;
using OptionalDouble = std::optional<double>;
using OptionalBool = std::optional<bool>;

// clang-format off
#define TABLE(Row, ...) struct Row {
#define COLUMN(type, name, unit, meaning, ...) type name{__VA_ARGS__};
#define END_TABLE(Row) }; template <> const Table& table_of<Row>();
#include "trace/tables.def"
// clang-format on

}  // namespace llmprof::trace
