#pragma once
// The rows of a result one after the other, for results that may be larger than memory.

#include <string>
#include <type_traits>

#include "trace/run.h"

namespace llmprof::trace {

struct ChunkRow {
  const ColumnChunk& chunk;
  std::size_t at;

  std::int64_t operator[](std::size_t column) const { return chunk.values[column][at]; }
  bool known(std::size_t column) const { return chunk.values[column][at] != Columns::kNull; }
  double real(std::size_t column) const { return chunk.reals[column][at]; }
  // "" of NULL.
  const std::string& text(std::size_t column) const {
    return chunk.names[static_cast<std::size_t>(chunk.values[column][at])];
  }
};

// Calls take(row) for every row; one that returns a bool ends it with false.
template <class Take>
Result<void> each_row(const Run& run, const std::string& sql, Take&& take) {
  return run.column_chunks(sql, [&](const ColumnChunk& chunk) {
    for (std::size_t i = 0; i < chunk.count; ++i) {
      if constexpr (std::is_same_v<std::invoke_result_t<Take&, ChunkRow>, bool>) {
        if (!take(ChunkRow{chunk, i})) return false;
      } else {
        take(ChunkRow{chunk, i});
      }
    }
    return true;
  });
}

}  // namespace llmprof::trace
