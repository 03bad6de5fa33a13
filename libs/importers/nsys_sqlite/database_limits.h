#pragma once
// What a stranger's database is held to before and while it is read.

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "importers/input.h"

namespace llmprof::importers::nsys {

inline constexpr std::int64_t kHeapBytes = 64 << 20;  // of SQLite, in all
inline constexpr int kMaxValueBytes = 16 << 20;       // of a row; larger ones are passed over
inline constexpr std::size_t kMaxTables = 4096;

struct HeaderFacts {
  std::uint64_t page_bytes = 0;
  std::uint64_t bytes = 0;  // that the header says the file has
  bool truncated = false;
  bool wal = false;
};
Result<HeaderFacts> check_header(Input& input, std::uint64_t plain_bytes);

// Nothing but reading tables is allowed from now on.
void harden(sqlite3* connection);

}  // namespace llmprof::importers::nsys
