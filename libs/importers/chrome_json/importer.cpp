// PyTorch profiler (Kineto) or Chrome trace, JSON.
#include "importers/importer.h"

#include "importers/chrome_json/rows.h"

namespace llmprof::importers {
namespace chrome_json {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF", kBlanks = " \t\r\n";

bool has(std::string_view head, std::string_view part) { return head.find(part) != std::string_view::npos; }

// Wide text that would be a trace if it were UTF-8: the reader says so.
bool is_wide(std::string_view head) {
  return head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF") ||
         (head.size() > 3 &&
          (head.substr(0, 2) == std::string_view("{\0", 2) || head.substr(0, 2) == std::string_view("\0{", 2)));
}

int sniff(std::string_view head) {
  if (is_wide(head)) return has(head, std::string_view("t\0r\0a\0c\0e\0E", 11)) ? 60 : 0;
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  const std::size_t first = head.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return 0;
  head.remove_prefix(first);
  const bool event = has(head, "\"ph\"") && (has(head, "\"ts\"") || has(head, "\"name\""));
  if (head.front() == '{') {
    if (has(head, "\"traceEvents\"")) return 95;
    if (has(head, "\"baseTimeNanoseconds\"") || has(head, "\"deviceProperties\"")) return 90;
    return event ? 40 : 0;  // events one after the other, without brackets
  }
  return head.front() == '[' && event ? 85 : 0;
}

Result<void> parse(Input& input, Sink& sink) {
  const auto rows = chrome_json::make_rows(sink);
  LLMPROF_TRY(chrome_json::read_events(input, sink, *rows));
  return chrome_json::finish_rows(*rows);
}

}  // namespace
}  // namespace chrome_json

extern const Importer kKineto;
const Importer kKineto{"kineto", "PyTorch profiler (Kineto) or Chrome trace, JSON", Role::kTrace, chrome_json::sniff,
                       chrome_json::parse};

}  // namespace llmprof::importers
