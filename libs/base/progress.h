#pragma once
// Progress of long work. Libraries report; only apps/ shows it. Returning false asks the work to stop (Ctrl-C),
// and the work answers with ErrorCode::kInterrupted.

#include <functional>
#include <optional>
#include <string_view>

namespace llmprof::base {

struct ProgressUpdate {
  std::string_view what;  // "reading logs"
  double done = 0;        // in `unit`
  double total = 0;       // 0: unknown
  std::string_view unit;  // "bytes", "rows"
  std::optional<double> left_seconds = std::nullopt;  // a better guess than the pace so far; none: that
};

using Progress = std::function<bool(const ProgressUpdate&)>;

inline bool no_progress(const ProgressUpdate&) { return true; }

}  // namespace llmprof::base
