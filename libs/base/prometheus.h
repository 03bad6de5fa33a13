#pragma once
// Metrics as text, line by line: what a server exports at /metrics.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::base {

// One line of Prometheus' text format 0.0.4 or of OpenMetrics.
struct SampleLine {
  std::string_view name;
  std::string_view labels;            // as written, without the braces; "" none
  double value = 0;                   // may be NaN or infinite
  std::optional<std::int64_t> ts_ns;  // since 1970
  bool exemplar = false;
};

inline constexpr std::size_t kMaxLabels = 64;
inline constexpr std::size_t kMaxLabelBytes = 4 << 10;  // of one value

// nullptr: understood. Else what is wrong, in words that are the same for the same mistake.
const char* parse_sample(std::string_view line, SampleLine& sample);

// The value of one label, its escapes undone; "" if it is not there.
std::string label_value(std::string_view labels, std::string_view name);

// "# TYPE name kind", "# HELP name text", "# UNIT name unit": the keyword, the name and the rest.
struct CommentLine {
  std::string_view keyword, name, rest;  // keyword "": a plain comment
};
CommentLine parse_comment(std::string_view line);

// The unit that a metric's name ends with; "" none, and of buckets and counts.
std::string_view metric_unit(std::string_view name);
// What "# TYPE" says: counter, gauge, histogram, summary; untyped where it is none of these.
std::string_view metric_kind(std::string_view kind);

// The family that a series belongs to, among those that known(name) tells; "" none.
template <class Known>
std::string_view metric_family(std::string_view name, const Known& known) {
  if (known(name)) return name;
  for (const std::string_view suffix : {"_bucket", "_sum", "_count", "_total", "_created", "_info"}) {
    if (name.ends_with(suffix) && known(name.substr(0, name.size() - suffix.size())))
      return name.substr(0, name.size() - suffix.size());
  }
  return {};
}

}  // namespace llmprof::base
