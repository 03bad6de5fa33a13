#include "exporters/windows.h"

#include <fmt/format.h>

namespace llmprof::exporters {
namespace {

constexpr std::int64_t kBuckets = 4096;

}  // namespace

Result<std::vector<Window>> windows_of(const trace::Run& run, const std::string& sql, std::int64_t rows) {
  LLMPROF_LET(const trace::ResultTable ends,
              run.query(fmt::format("SELECT min(begin_ns), max(begin_ns), count(*) FROM ({})", sql)));
  const std::int64_t first = ends.rows[0][0].as_int(), last = ends.rows[0][1].as_int();
  const std::int64_t count = ends.rows[0][2].as_int();
  if (count == 0) return std::vector<Window>{};
  if (count <= rows) return std::vector<Window>{{first, last + 1}};
  const std::int64_t width = (last - first) / kBuckets + 1;
  LLMPROF_LET(const trace::ResultTable buckets,
              run.query(fmt::format("SELECT (begin_ns - {}) // {} AS bucket, count(*) FROM ({}) GROUP BY 1 ORDER BY 1",
                                    first, width, sql)));
  std::vector<Window> windows;
  std::int64_t held = rows;  // so that the first bucket opens a window
  for (const auto& row : buckets.rows) {
    const std::int64_t begin = first + row[0].as_int() * width;
    if (held + row[1].as_int() > rows) {
      windows.push_back({begin, begin + width});
      held = 0;
    }
    windows.back().end_ns = begin + width;
    held += row[1].as_int();
  }
  return windows;
}

}  // namespace llmprof::exporters
