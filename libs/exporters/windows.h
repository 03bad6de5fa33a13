#pragma once
// Times that cut a large result into parts that fit memory and can be sorted there.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::exporters {

struct Window {
  std::int64_t begin_ns, end_ns;  // end_ns is not in it
};

// Windows that hold every row of `sql` (a SELECT with begin_ns) and at most about `rows` each, in order of time. More
// than that only where more than that begin in a thousandth of the whole.
Result<std::vector<Window>> windows_of(const trace::Run& run, const std::string& sql, std::int64_t rows);

}  // namespace llmprof::exporters
